// cli/process.h
// Runs another program and streams what it prints: an argument vector, never a shell, standard
// input empty, both outputs read as they come.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plumb::cli {

struct ProcessResult {
  int exit_code = 0;       // 128 + N when signal N ended it
  std::string error_text;  // the last kErrorBytesMax bytes of its standard error
};
constexpr size_t kErrorBytesMax = 16384;

// Takes standard output piece by piece. An error ends the process, and is what RunProcess returns.
using OutputSink = std::function<base::Status(std::string_view)>;

// Waits for the end. argv[0] is looked up on PATH. kNotFound: no such program; kInternal: the
// system refused; else the sink's own error. A program that fails is no error here: see exit_code.
base::Result<ProcessResult> RunProcess(const std::vector<std::string>& argv,
                                       const OutputSink& sink);

// The same, with all of standard output as a text; kInternal beyond `size_max` bytes.
base::Result<ProcessResult> RunProcess(const std::vector<std::string>& argv, size_t size_max,
                                       std::string& output);

// The last non-empty line of `text`, cut for one line of a message.
std::string LastLine(std::string_view text);

}  // namespace plumb::cli
