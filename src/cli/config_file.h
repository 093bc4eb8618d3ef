// cli/config_file.h
// The TOML file of settings, read into a flat list. Keys at the top hold for every subcommand that
// knows them; a table [serve] holds for that subcommand and wins over the top.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plumb::cli {

struct ConfigEntry {
  std::string section;             // "serve"; empty = top of the file
  std::string key;                 // "port"
  std::vector<std::string> texts;  // one, or the elements of a list
  uint32_t line = 0;               // 1-based
};

struct ConfigFile {
  std::string path;                  // as given, for messages; empty = no file
  std::vector<ConfigEntry> entries;  // in key order

  static constexpr uint64_t kBytesMax = 1u << 20;

  // kNotFound, kInternal: not readable; kInvalidArgument: not TOML, or a value of a kind that no
  // setting has (the message names file, line and key).
  static base::Result<ConfigFile> Load(const std::string& path);
  static base::Result<ConfigFile> Parse(std::string path, std::string_view content);

  // The entry for `key` in [section], else at the top; null when neither has it.
  const ConfigEntry* Find(std::string_view section, std::string_view key) const;
  // "plumb.toml:3: serve.port"
  std::string Where(const ConfigEntry& entry) const;
};

}  // namespace plumb::cli
