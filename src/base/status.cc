// base/status.cc: the names of the codes and the form a status takes in a log line.
// Read base/status.h for what each code means.
#include "base/status.h"

namespace plumb::base {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "kOk";
    case Code::kInvalidArgument:
      return "kInvalidArgument";
    case Code::kUnauthenticated:
      return "kUnauthenticated";
    case Code::kForbidden:
      return "kForbidden";
    case Code::kNotFound:
      return "kNotFound";
    case Code::kQuotaExceeded:
      return "kQuotaExceeded";
    case Code::kOverloaded:
      return "kOverloaded";
    case Code::kCancelled:
      return "kCancelled";
    case Code::kDeadline:
      return "kDeadline";
    case Code::kUnavailable:
      return "kUnavailable";
    case Code::kCorrupt:
      return "kCorrupt";
    case Code::kUnsupported:
      return "kUnsupported";
    case Code::kInternal:
      return "kInternal";
  }
  return "kUnknown";
}

std::string Status::ToString() const {
  if (ok()) return "kOk";
  std::string text(CodeName(code_));
  text += ": ";
  text += message_;
  if (!field_.empty()) text += " (field " + field_ + ")";
  if (!reason_.empty()) text += " (reason " + reason_ + ")";
  return text;
}

}  // namespace plumb::base
