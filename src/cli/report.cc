// cli/report.cc
// The last line that a user sees, behind cli/report.h.
#include "cli/report.h"

#include <cstdio>
#include <string>

namespace plumb::cli {

int Report(const base::Status& status) {
  if (status.ok() && std::ferror(stdout) == 0) return kExitOk;
  if (status.ok()) {
    PrintError("plumb: standard output could not be written: it is full or closed\n");
    return kExitFailed;
  }
  PrintError("plumb: " + status.message() + "\n");
  return status.code() == base::Code::kInvalidArgument ? kExitUsage : kExitFailed;
}

base::Status NamingFlag(const base::Status& status, const std::string& flag) {
  if (status.ok() || flag.empty() || status.message().find(flag) != std::string::npos)
    return status;
  return base::Status(status.code(), flag + ": " + status.message())
      .WithField(flag)
      .WithReason(status.reason())
      .WithRetryAfterMs(status.retry_after_ms());
}

void Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void PrintError(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace plumb::cli
