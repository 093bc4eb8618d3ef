// cli/main.cc
// The binary `plumb`: declares the subcommands, finds their settings, runs the one that was named.
// Read next: cli/serve.cc, where the parts of the server are put together.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/command_line.h"
#include "cli/model_command.h"
#include "cli/report.h"
#include "cli/version_command.h"

namespace plumb::cli {
namespace {

int Main(int argc, const char* const* argv) {
  CLI::App app(
      "plumb runs large language models exactly, on CPUs, and serves them over an OpenAI-style "
      "API.",
      "plumb");
  app.footer(
      "Start here:\n  plumb serve                          serve the default model\n"
      "  plumb chat                           talk to it in this terminal\n"
      "  plumb <subcommand> --help            flags, units, defaults, examples");
  app.set_version_flag("--version", "plumb " + std::string(kVersion));

  ModelCommand model;
  CLI::App* model_app = app.add_subcommand("model", "Get, list, inspect and check models.");
  DeclareModel(*model_app, model);
  CLI::App* version_app =
      app.add_subcommand("version", "Print the version, the compiler and this machine's vectors.");

  if (const std::optional<int> exit_code = ParseCommandLine(app, argc, argv)) return *exit_code;
  if (model_app->parsed()) return Report(RunModel(model, ProcessVariable));
  if (version_app->parsed()) {
    Print(VersionText());
    return kExitOk;
  }
  PrintError(app.help());
  return kExitUsage;
}

}  // namespace
}  // namespace plumb::cli

int main(int argc, char** argv) { return plumb::cli::Main(argc, argv); }
