// cli/version_command.h
// `plumb version`: what was built, and for which processor features.
#pragma once

#include <string>
#include <string_view>

namespace plumb::cli {

constexpr std::string_view kVersion = "0.1.0";

// Several lines: version, compiler, and the vector instructions of this machine that matter.
std::string VersionText();

}  // namespace plumb::cli
