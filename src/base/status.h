// base/status.h
// How an operation ended: ok, or one of a closed set of codes with a message for people and, where
// the caller's input is at fault, the path of the offending field. Circumstances travel as Status;
// bugs are CHECK (base/check.h). A value with it: base/result.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace plumb::base {

// What it means, the HTTP status it becomes, and who may retry: table in STYLE.md.
enum class Code : uint8_t {
  kOk,
  kInvalidArgument,  // 400, the caller's input; field() names it
  kUnauthenticated,  // 401
  kForbidden,        // 403
  kNotFound,         // 404
  kQuotaExceeded,    // 429, the tenant's limit; retry_after_ms() is set
  kOverloaded,       // 503, our limit; retry_after_ms() is set
  kCancelled,        // 499, the client left
  kDeadline,         // 504
  kUnavailable,      // 503, a peer or tier is gone
  kCorrupt,          // 500, checksum or format
  kUnsupported,      // 501
  kInternal,         // 500, should not happen, survivable
};

// "kInvalidArgument" and so on; for logs and tests.
std::string_view CodeName(Code code);

// A value type. The message says what was attempted, with which value, and what to do; it never
// holds an address, a path of the server or a stack, since it may be shown to a stranger.
class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // Path of the input field at fault, as the caller spells it ("messages[1].content", "--port").
  const std::string& field() const { return field_; }
  // A machine-readable refinement of the code ("context_length_exceeded"), or empty.
  const std::string& reason() const { return reason_; }
  // When a retry makes sense; 0 = not said.
  uint32_t retry_after_ms() const { return retry_after_ms_; }

  Status&& WithField(std::string field) && {
    field_ = std::move(field);
    return std::move(*this);
  }
  Status&& WithReason(std::string reason) && {
    reason_ = std::move(reason);
    return std::move(*this);
  }
  Status&& WithRetryAfterMs(uint32_t ms) && {
    retry_after_ms_ = ms;
    return std::move(*this);
  }

  // "kNotFound: no model is called x (field model)"; for logs and tests.
  std::string ToString() const;

 private:
  Code code_ = Code::kOk;
  uint32_t retry_after_ms_ = 0;
  std::string message_;
  std::string field_;
  std::string reason_;
};

inline Status OkStatus() { return Status(); }
inline Status InvalidArgument(std::string field, std::string message) {
  return Status(Code::kInvalidArgument, std::move(message)).WithField(std::move(field));
}
inline Status Corrupt(std::string message) { return Status(Code::kCorrupt, std::move(message)); }
inline Status Unsupported(std::string message) {
  return Status(Code::kUnsupported, std::move(message));
}
inline Status NotFound(std::string message) { return Status(Code::kNotFound, std::move(message)); }
inline Status Internal(std::string message) { return Status(Code::kInternal, std::move(message)); }

}  // namespace plumb::base
