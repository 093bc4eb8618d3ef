// cli/option_table.cc
// Precedence and the wording of errors, behind cli/option_table.h.
#include "cli/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/format.h"
#include "cli/suggest.h"

namespace plumb::cli {
namespace {

constexpr size_t kHelpColumn = 30;
constexpr size_t kHelpWidth = 66;

std::string HelpText(const Option& option) {
  std::string text = option.help + " [" + VariableName(option.name);
  if (!option.default_text.empty()) text += "; default " + option.default_text;
  if (option.repeatable) text += "; repeatable";
  return Wrap(text + "]", kHelpWidth);
}

// The same error, saying where the text stood.
base::Status At(const std::string& where, base::Status status) {
  if (status.ok()) return status;
  return base::InvalidArgument(where, where + ": " + status.message());
}

}  // namespace

std::optional<std::string> ProcessVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::string VariableName(std::string_view option_name) {
  std::string name = "PLUMB_";
  for (const char c : option_name) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

OptionTable::OptionTable(CLI::App& app, std::string section)
    : app_(app), section_(std::move(section)) {
  app_.get_formatter()->column_width(kHelpColumn);
  AddRow(Text("config", config_path_, "FILE", "TOML file with settings for any of these flags."));
}

void OptionTable::Add(Option option) { AddRow(std::move(option)); }

void OptionTable::AddRow(Option option) {
  Row& row = rows_.emplace_back(Row{std::move(option), {}, false});
  const std::string flag = "--" + row.option.name;
  const std::string help = HelpText(row.option);
  if (row.option.kind.empty()) {
    app_.add_flag(flag, row.given_switch, help);
  } else {
    app_.add_option(flag, row.given, help)
        ->type_name(row.option.kind)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

std::vector<std::string> OptionTable::names() const {
  std::vector<std::string> names;
  for (const Row& row : rows_) names.push_back(row.option.name);
  std::rotate(names.begin(), names.begin() + 1, names.end());
  return names;
}

base::Status OptionTable::Resolve(const VariableReader& variables,
                                  std::span<const OptionTable* const> siblings) {
  ConfigFile file;
  RETURN_IF_ERROR(ResolveRow(rows_.front(), variables, file));
  if (!config_path_.empty()) {
    base::Result<ConfigFile> loaded = ConfigFile::Load(config_path_);
    if (!loaded.ok()) return At("--config", loaded.status());
    file = std::move(loaded).value();
    RETURN_IF_ERROR(CheckKeys(file, siblings));
  }
  for (const Row& row : rows_) {
    if (&row != &rows_.front()) RETURN_IF_ERROR(ResolveRow(row, variables, file));
  }
  return base::OkStatus();
}

base::Status OptionTable::ResolveRow(const Row& row, const VariableReader& variables,
                                     const ConfigFile& file) const {
  const Option& option = row.option;
  if (row.given_switch) return option.set("true");
  if (!row.given.empty()) {
    const std::string flag = "--" + option.name;
    if (row.given.size() > 1 && !option.repeatable) {
      return base::InvalidArgument(flag, flag + ": given more than once");
    }
    for (const std::string& text : row.given) RETURN_IF_ERROR(At(flag, option.set(text)));
    return base::OkStatus();
  }
  const std::string variable = VariableName(option.name);
  const std::optional<std::string> value = variables(variable);
  if (value && !value->empty()) return At(variable, option.set(*value));

  const ConfigEntry* entry = file.Find(section_, option.name);
  if (entry == nullptr) return base::OkStatus();
  if (entry->texts.size() != 1 && !option.repeatable) {
    return At(file.Where(*entry), base::InvalidArgument("", "takes one value, not a list"));
  }
  for (const std::string& text : entry->texts) {
    RETURN_IF_ERROR(At(file.Where(*entry), option.set(text)));
  }
  return base::OkStatus();
}

base::Status CheckKeys(const ConfigFile& file, std::span<const OptionTable* const> tables) {
  std::vector<std::string> sections;
  for (const OptionTable* table : tables) sections.push_back(table->section());
  for (const ConfigEntry& entry : file.entries) {
    const bool top = entry.section.empty();
    if (!top && std::ranges::find(sections, entry.section) == sections.end()) {
      return base::InvalidArgument(
          entry.section,
          fmt::format("{}:{}: there is no section [{}]{}", file.path, entry.line,
                      Printable(entry.section, 60), DidYouMean(entry.section, sections)));
    }
    std::vector<std::string> known;
    for (const OptionTable* table : tables) {
      if (!top && table->section() != entry.section) continue;
      for (const std::string& name : table->names()) {
        if (name != "config") known.push_back(name);
      }
    }
    if (std::ranges::find(known, entry.key) == known.end()) {
      return base::InvalidArgument(
          entry.key, file.Where(entry) + ": no such setting" + DidYouMean(entry.key, known));
    }
  }
  return base::OkStatus();
}

}  // namespace plumb::cli
