// cli/generate_output.h
// The output file of `plumb generate`. Whole lines are appended as answers are complete, so that a
// kill leaves at most one torn line, the last, which the next run cuts. Every line has a `key`, a
// digest of its input line and of all else that decides the answer: answers to another question are
// noticed, never mixed in. When all are there, the file is put in the input's order in one step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/disk.h"
#include "base/result.h"
#include "cli/file_lock.h"

namespace plumb::cli {

constexpr uint64_t kOutputLineBytesMax = 256u << 20;
constexpr uint64_t kAnswersMax = 1u << 28;

// 16 hex digits of SHA-256 over both.
std::string LineKey(std::string_view input_line, std::string_view settings);

// A resource type. Thread: one at a time.
class GenerateOutput {
 public:
  // Creates or continues the file. kInvalidArgument: it holds something else than answers of this
  // command, or one answer twice (the message names the line); kOverloaded: another process writes
  // it; kInternal: the disk.
  static base::Result<std::unique_ptr<GenerateOutput>> Open(const std::string& path);

  // Keys of the answers that were there when it was opened, by index.
  const std::unordered_map<uint64_t, std::string>& found() const { return found_; }

  // `line` ends with LF. kInternal: disk full or gone.
  base::Status Append(std::string_view line) { return file_->Append(line); }
  base::Status Flush() { return file_->Flush(); }

  // Rewrites the file in the order of indexes and replaces it in one step; nothing may be appended
  // afterwards. A file in order already is left alone.
  base::Status Sort();

 private:
  explicit GenerateOutput(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  FileLock lock_;
  std::unique_ptr<base::AppendFile> file_;
  std::unordered_map<uint64_t, std::string> found_;  // never iterated
};

}  // namespace plumb::cli
