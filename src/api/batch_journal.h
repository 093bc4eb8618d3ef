// api/batch_journal.h
// The lines of a batch that are done, as they are done: an append-only file of records, each with
// its line's number, its kind, its length and a hash over all of it. What Append has returned ok
// for survives a crash; of what came after, only whole records count when the journal is opened
// again, and the rest is cut off, so that a line that is not known to be done is simply done again.
// The output files are made from it at the end, in the order of the input.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/file_store.h"
#include "base/disk.h"
#include "base/result.h"

namespace plumb::api {

// Into which of the two files a line's result goes.
enum class ResultKind : uint8_t { kOutput, kError };

struct LineResult {
  uint32_t line = 0;  // of the batch, from 0
  ResultKind kind = ResultKind::kOutput;
  std::string text;  // JSON, without a line break
};

// A resource type. Thread: one at a time.
class BatchJournal {
 public:
  // Reads what is there of a batch of that many lines, and cuts off what is not whole. Errors of
  // base/disk.h.
  static base::Result<std::unique_ptr<BatchJournal>> Open(const std::string& path, uint32_t lines);

  bool Has(uint32_t line) const { return places_[line].bytes > 0; }
  uint32_t count(ResultKind kind) const { return counts_[static_cast<size_t>(kind)]; }
  uint64_t bytes() const { return size_; }            // on the disk
  static uint64_t BytesOf(const LineResult& result);  // that Append adds for it
  uint32_t done() const { return counts_[0] + counts_[1]; }

  // All of them, with one flush; none that it has (CHECK). StorageError: none is kept, and the
  // journal is as it was.
  base::Status Append(std::span<const LineResult> results);

  // Calls `write` with what the journal has of each line in order, its line break included, and
  // stops at its first error. StorageError: the journal cannot be read.
  template <typename Write>
  base::Status Read(ResultKind kind, Write write) const {
    if (done() == 0) return base::OkStatus();
    ASSIGN_OR_RETURN(const auto map, Map());
    for (const Place& place : places_) {
      if (place.bytes == 0 || place.kind != kind) continue;
      RETURN_IF_ERROR(write(TextAt(*map, place)));
    }
    return base::OkStatus();
  }

 private:
  struct Place {  // of a line's text
    uint64_t offset = 0;
    uint32_t bytes = 0;  // with its line break; 0: the line is not done
    ResultKind kind = ResultKind::kOutput;
  };

  BatchJournal(std::string path, uint32_t lines) : path_(std::move(path)), places_(lines) {}
  void ReadRecords(std::string_view bytes);
  base::Status Reopen();
  void Keep(uint32_t line, Place place);
  base::Result<std::unique_ptr<base::MappedFile>> Map() const;
  static std::string_view TextAt(const base::MappedFile& map, const Place& place);

  const std::string path_;
  std::vector<Place> places_;  // by line
  uint32_t counts_[2] = {0, 0};
  uint64_t size_ = 0;                       // of what is whole
  std::unique_ptr<base::AppendFile> file_;  // null after an error, until it can be opened again
};

}  // namespace plumb::api
