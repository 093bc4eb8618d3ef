// cli/command_line.h
// Cuts the command line with CLI11 and words its errors as everything else here does: one line that
// names what was wrong and the nearest thing that would be right.
#pragma once

#include <CLI/App.hpp>
#include <optional>

namespace plumb::cli {

// Nothing when the command line is good; else the exit code, after printing help or the error.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv);

}  // namespace plumb::cli
