// api/batch_record.h
// One batch: what its caller asked for, how far it is, and both as JSON, for the caller in OpenAI's
// shape and for our disk. Read next: api/batch_store.h, api/batch_runner.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/result.h"

namespace plumb::api {

constexpr std::string_view kBatchIdPrefix = "batch_";

enum class BatchStatus : uint8_t {
  kValidating,  // waits for its turn, or its lines are being checked
  kInProgress,
  kFinalizing,  // every line is done, or the time is over: the files are being written
  kCompleted,
  kFailed,  // its input is no batch
  kCancelling,
  kCancelled,
  kExpired,
};
std::string_view BatchStatusName(BatchStatus status);
std::optional<BatchStatus> BatchStatusFromName(std::string_view name);
// Whether nothing more will happen.
bool HasEnded(BatchStatus status);

// What is wrong with the input.
struct BatchError {
  std::string code;
  std::string message;
  std::string param;  // empty = null
  uint32_t line = 0;  // from 1; 0 = null
};

struct BatchCounts {
  uint32_t total = 0;
  uint32_t completed = 0;
  uint32_t failed = 0;
};

// A value type. Times are Unix seconds, 0 = not yet.
struct Batch {
  std::string id;
  uint64_t sequence = 0;  // in order of creation
  base::Hash256 caller;   // engine::Request::isolation
  std::string endpoint;
  std::string input_file_id;
  std::vector<std::pair<std::string, std::string>> metadata;
  // Chosen at the beginning, so that writing them again after a crash gives the same files; told
  // only once they are there.
  std::string output_file_id;
  std::string error_file_id;
  int64_t output_expires_after = 0;  // seconds; 0: never

  BatchStatus status = BatchStatus::kValidating;
  BatchCounts counts;
  bool has_output = false;
  bool has_errors = false;
  std::vector<BatchError> errors;
  int64_t created_at = 0;
  int64_t expires_at = 0;
  int64_t in_progress_at = 0;
  int64_t finalizing_at = 0;
  int64_t completed_at = 0;
  int64_t failed_at = 0;
  int64_t expired_at = 0;
  int64_t cancelling_at = 0;
  int64_t cancelled_at = 0;
};

// Now, as a moment of a batch: never 0, which stands for "not yet".
int64_t BatchNow(const base::Clock& clock);

// OpenAI's object.
std::string BatchJson(const Batch& batch);

// The same for our disk, and back. kInvalidArgument: damaged, or a status without its moment.
std::string BatchRecordJson(const Batch& batch);
base::Result<Batch> ReadBatchRecord(std::string_view text);

}  // namespace plumb::api
