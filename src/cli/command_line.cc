// cli/command_line.cc
// CLI11's exceptions stop here, behind cli/command_line.h.
#include "cli/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <vector>

#include "cli/format.h"
#include "cli/report.h"
#include "cli/suggest.h"

namespace plumb::cli {
namespace {

// The innermost subcommand that was named.
CLI::App& Innermost(CLI::App& app) {
  CLI::App* inner = &app;
  while (!inner->get_subcommands().empty()) inner = inner->get_subcommands().front();
  return *inner;
}

std::string FullName(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : FullName(*parent) + " " + app.get_name();
}

// What may stand where `given` stood.
std::vector<std::string> Alternatives(const CLI::App& app, bool flag) {
  std::vector<std::string> known;
  if (flag) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  } else {
    for (const CLI::App* child : app.get_subcommands(nullptr)) known.push_back(child->get_name());
  }
  return known;
}

std::string UnexpectedText(CLI::App& app) {
  const CLI::App& inner = Innermost(app);
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  const std::string given = extras.empty() ? "" : extras.front();
  const bool flag = given.starts_with('-');
  const std::string name = given.substr(0, given.find('='));
  const bool wants_subcommand = !flag && !inner.get_subcommands(nullptr).empty();
  return FullName(inner) + ": " +
         (flag               ? "there is no flag '"
          : wants_subcommand ? "there is no subcommand '"
                             : "unexpected argument '") +
         Printable(name, 80) + "'" + DidYouMean(name, Alternatives(inner, flag));
}

}  // namespace

std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv) {
  std::string message;
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    Print(app.help());  // delegates to the subcommand that was named
    return kExitOk;
  } catch (const CLI::CallForAllHelp&) {
    Print(app.help("", CLI::AppFormatMode::All));
    return kExitOk;
  } catch (const CLI::CallForVersion& version) {
    Print(std::string(version.what()) + "\n");
    return kExitOk;
  } catch (const CLI::ExtrasError&) {
    message = UnexpectedText(app);
  } catch (const CLI::ParseError& error) {
    message = FullName(Innermost(app)) + ": " + Printable(error.what(), 300);
  }
  PrintError(message + "\n(" + FullName(Innermost(app)) + " --help explains)\n");
  return kExitUsage;
}

}  // namespace plumb::cli
