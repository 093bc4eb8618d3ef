// cli/report.h
// How a command ends: exit code 0; 1 when it could not do its work; 2 when it was called wrongly.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace plumb::cli {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Prints "plumb: <message>" as one line to standard error unless ok; returns the exit code. Ok is
// not enough when something that was printed did not reach standard output.
int Report(const base::Status& status);

// The error with "--flag: " in front, so that its reader knows which of many to change; unchanged
// when ok, without a flag, or when the message names it already. The code stays.
base::Status NamingFlag(const base::Status& status, const std::string& flag);

// To standard output; Report tells when that failed.
void Print(std::string_view text);
// To standard error.
void PrintError(std::string_view text);

}  // namespace plumb::cli
