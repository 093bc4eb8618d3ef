// cli/config_file.cc
// The only place that sees toml++, built without exceptions.
#include "cli/config_file.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <optional>

#include "base/disk.h"
#include "cli/format.h"

namespace plumb::cli {
namespace {

// A scalar as the text that a flag would have; nothing for dates, tables and nested lists.
std::optional<std::string> ScalarText(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

base::Status AddEntry(ConfigFile& file, std::string section, const toml::key& key,
                      const toml::node& node) {
  ConfigEntry entry{std::move(section), std::string(key.str()), {}, key.source().begin.line};
  const base::Status bad = base::InvalidArgument(
      entry.key,
      file.Where(entry) + ": a setting is a text, a number, true, false or a list of texts");
  if (const auto* list = node.as_array()) {
    for (const toml::node& element : *list) {
      std::optional<std::string> text = ScalarText(element);
      if (!text) return bad;
      entry.texts.push_back(std::move(*text));
    }
  } else {
    std::optional<std::string> text = ScalarText(node);
    if (!text) return bad;
    entry.texts.push_back(std::move(*text));
  }
  file.entries.push_back(std::move(entry));
  return base::OkStatus();
}

}  // namespace

base::Result<ConfigFile> ConfigFile::Load(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, base::ReadFile(path, kBytesMax));
  return Parse(path, content);
}

base::Result<ConfigFile> ConfigFile::Parse(std::string path, std::string_view content) {
  const toml::parse_result parsed = toml::parse(content);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return base::InvalidArgument("--config",
                                 fmt::format("{}:{}: {}", path, error.source().begin.line,
                                             Printable(error.description(), 200)));
  }
  ConfigFile file;
  file.path = std::move(path);
  for (const auto& [key, node] : parsed.table()) {
    if (const auto* table = node.as_table()) {
      for (const auto& [inner_key, inner] : *table) {
        RETURN_IF_ERROR(AddEntry(file, std::string(key.str()), inner_key, inner));
      }
    } else {
      RETURN_IF_ERROR(AddEntry(file, "", key, node));
    }
  }
  return file;
}

const ConfigEntry* ConfigFile::Find(std::string_view section, std::string_view key) const {
  const ConfigEntry* top = nullptr;
  for (const ConfigEntry& entry : entries) {
    if (entry.key != key) continue;
    if (entry.section == section) return &entry;
    if (entry.section.empty()) top = &entry;
  }
  return top;
}

std::string ConfigFile::Where(const ConfigEntry& entry) const {
  const std::string prefix = entry.section.empty() ? "" : entry.section + ".";
  return fmt::format("{}:{}: {}", path, entry.line, prefix + entry.key);
}

}  // namespace plumb::cli
