// cli/generate_output.h
// The output file of `plumb generate`: whole lines are appended as answers are complete, so that a
// process killed at any moment leaves at most one torn line, the last. Opening it again cuts that
// line and tells which answers are there. When all are there, the file is put in the order of the
// input in one step.
// Every line carries `key`, a digest of its input line and of what else decides the answer (model,
// settings): answers to another question are noticed, never mixed in. Lines may be added to the
// input's end between runs.
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
