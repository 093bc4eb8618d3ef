// api/batch_input.h
// The lines of a batch's input file, and what each asks for: {"custom_id", "method", "url",
// "body"}. Lines are found once and read when they are needed, from the map, so that an input of
// any size takes a few bytes a line. Read next: api/batch_runner.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "api/batch_record.h"
#include "base/disk.h"

namespace plumb::api {

struct BatchInputLimits {
  uint32_t lines_max = 50'000;
  uint64_t line_bytes_max = 8u << 20;  // as a body that is sent alone
};
constexpr size_t kCustomIdBytesMax = 512;

// A resource type. Thread: one at a time.
class BatchInput {
 public:
  // Lines without anything but blanks are left out. An error of the whole file: empty_file,
  // too_many_tasks.
  static std::variant<std::unique_ptr<BatchInput>, BatchError> Split(
      std::shared_ptr<const base::MappedFile> file, const BatchInputLimits& limits);

  uint32_t size() const { return static_cast<uint32_t>(places_.size()); }
  uint64_t bytes() const { return text_.size(); }
  std::string_view Line(uint32_t index) const {
    return text_.substr(places_[index].offset, places_[index].bytes);
  }
  // Its number in the file, from 1.
  uint32_t NumberOf(uint32_t index) const { return places_[index].number; }

 private:
  struct Place {
    uint64_t offset;
    uint64_t bytes;
    uint32_t number;
  };
  explicit BatchInput(std::shared_ptr<const base::MappedFile> file);

  const std::shared_ptr<const base::MappedFile> file_;
  const std::string_view text_;
  std::vector<Place> places_;
};

// A value type.
struct BatchLine {
  std::string custom_id;
  std::string body;  // JSON
};

// One line for that endpoint. The error's `line` is not set.
std::variant<BatchLine, BatchError> ReadBatchLine(std::string_view line, std::string_view endpoint,
                                                  const BatchInputLimits& limits);

// Checks the lines of an input one after the other, in pieces, since all of them may take long.
class BatchCheck {
 public:
  // Borrows the input.
  BatchCheck(const BatchInput& input, std::string endpoint, const BatchInputLimits& limits)
      : input_(input), endpoint_(std::move(endpoint)), limits_(limits) {}

  // Goes on for about so many bytes. True: the check is done, or found as many errors as are told.
  bool GoOn(uint64_t bytes);
  std::vector<BatchError> TakeErrors() { return std::move(errors_); }

 private:
  const BatchInput& input_;
  const std::string endpoint_;
  const BatchInputLimits limits_;
  uint32_t next_ = 0;
  std::unordered_set<std::string> custom_ids_;
  std::vector<BatchError> errors_;
};

}  // namespace plumb::api
