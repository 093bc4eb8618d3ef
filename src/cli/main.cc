// cli/main.cc
// The binary `plumb`: declares the subcommands, finds their settings, runs the one that was named.
// Read next: cli/serve.cc, where the parts of the server are put together.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>

#include "cli/bench.h"
#include "cli/bus_error.h"
#include "cli/chat.h"
#include "cli/command_line.h"
#include "cli/generate.h"
#include "cli/help_texts.h"
#include "cli/model_command.h"
#include "cli/report.h"
#include "cli/serve.h"
#include "cli/version_command.h"

namespace plumb::cli {
namespace {

CLI::App* Add(CLI::App& app, const char* name, const HelpText& help) {
  CLI::App* command = app.add_subcommand(name, help.what);
  command->footer(help.examples);
  return command;
}

int Main(int argc, const char* const* argv) {
  ExplainBusErrors();
  CLI::App app(kMainHelp.what, "plumb");
  app.footer(kMainHelp.examples);
  app.set_version_flag("--version", "plumb " + std::string(kVersion));

  ServeSettings serve;
  CLI::App* serve_app = Add(app, "serve", kServeHelp);
  const auto serve_table = DeclareServe(*serve_app, serve);
  ChatSettings chat;
  CLI::App* chat_app = Add(app, "chat", kChatHelp);
  const auto chat_table = DeclareChat(*chat_app, chat);
  GenerateSettings generate;
  CLI::App* generate_app = Add(app, "generate", kGenerateHelp);
  const auto generate_table = DeclareGenerate(*generate_app, generate);
  GenerateSettings rollout{.kind = LineKind::kRollout};
  CLI::App* rollout_app = Add(app, "rollout", kRolloutHelp);
  const auto rollout_table = DeclareGenerate(*rollout_app, rollout);
  ModelCommand model;
  CLI::App* model_app = Add(app, "model", kModelHelp);
  DeclareModel(*model_app, model);
  BenchSettings bench;
  CLI::App* bench_app = Add(app, "bench", kBenchHelp);
  const auto bench_table = DeclareBench(*bench_app, bench);
  CLI::App* version_app = Add(app, "version", kVersionHelp);
  if (const std::optional<int> exit_code = ParseCommandLine(app, argc, argv)) return *exit_code;

  const std::array<const OptionTable*, 5> tables = {serve_table.get(), chat_table.get(),
                                                    generate_table.get(), rollout_table.get(),
                                                    bench_table.get()};
  const auto run = [&](OptionTable& table, const auto& command) {
    base::Status status = table.Resolve(ProcessVariable, tables);
    if (status.ok()) status = command();
    return Report(status);
  };
  if (serve_app->parsed())
    return run(*serve_table, [&] { return RunServe(serve, ProcessVariable); });
  if (chat_app->parsed()) return run(*chat_table, [&] { return RunChat(chat, ProcessVariable); });
  if (generate_app->parsed()) {
    return run(*generate_table, [&] { return RunGenerate(generate, ProcessVariable); });
  }
  if (rollout_app->parsed()) {
    return run(*rollout_table, [&] { return RunGenerate(rollout, ProcessVariable); });
  }
  if (model_app->parsed()) return Report(RunModel(model, ProcessVariable));
  if (bench_app->parsed()) {
    return run(*bench_table, [&] { return RunBench(bench, ProcessVariable); });
  }
  if (version_app->parsed()) {
    Print(VersionText());
    return Report(base::OkStatus());
  }
  PrintError(app.help());
  return kExitUsage;
}

}  // namespace
}  // namespace plumb::cli

int main(int argc, char** argv) { return plumb::cli::Main(argc, argv); }
