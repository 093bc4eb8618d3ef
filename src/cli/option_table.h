// cli/option_table.h
// The settings of one subcommand, found in four places: flag, then variable PLUMB_..., then the
// file given by --config, then the default. CLI11 only cuts the command line and prints the help;
// reading values is ours, so that every error names the place at fault. No file is read unless
// --config (or PLUMB_CONFIG) names it: a plumb.toml that happens to lie in the folder must not
// change a run.
#pragma once

#include <CLI/App.hpp>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/config_file.h"
#include "cli/option.h"

namespace plumb::cli {

// The value of an environment variable; nothing when unset. The process's own: ProcessVariable.
using VariableReader = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> ProcessVariable(const std::string& name);

// Main thread. Borrows `app` and the targets of its options.
class OptionTable {
 public:
  // `section` is the subcommand's name and its table in the file.
  OptionTable(CLI::App& app, std::string section);
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  void Add(Option option);

  // After CLI11 has parsed: assigns every target. kInvalidArgument with field "--port",
  // "PLUMB_PORT" or "serve.port": the first bad value, or --config's own errors. `siblings` are the
  // tables of all subcommands, this one included: a key of the file that none of them knows is an
  // error.
  base::Status Resolve(const VariableReader& variables,
                       std::span<const OptionTable* const> siblings);

  const std::string& section() const { return section_; }
  // In the order of Add, "config" last.
  std::vector<std::string> names() const;

 private:
  struct Row {
    Option option;
    std::vector<std::string> given;  // texts from the command line
    bool given_switch = false;
  };
  base::Status ResolveRow(const Row& row, const VariableReader& variables,
                          const ConfigFile& file) const;
  void AddRow(Option option);

  CLI::App& app_;
  std::string section_;
  std::string config_path_;
  std::deque<Row> rows_;  // stable addresses: CLI11 keeps references
};

// "PLUMB_KV_MEMORY" for "kv-memory".
std::string VariableName(std::string_view option_name);

// Unknown sections and keys, each with the nearest known name; ok when there are none.
base::Status CheckKeys(const ConfigFile& file, std::span<const OptionTable* const> tables);

}  // namespace plumb::cli
