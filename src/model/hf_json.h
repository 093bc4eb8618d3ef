// model/hf_json.h
// The small JSON files of a Hugging Face folder (config.json and its kin), untrusted: bounded in
// depth, and read key by key with errors that name file and key. Internal to the readers of such
// folders. Read next: model/hf_config.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plumb::model {

constexpr uint32_t kHfJsonDepthMax = 64;

// The object in `text`. kCorrupt: no JSON, no object, or nested deeper than kHfJsonDepthMax; the
// message begins with `file`, and shows the place where the text stops being JSON.
base::Result<nlohmann::json> ParseHfJson(std::string_view text, std::string_view file);

// Reads an object's values; absent and null are the same, nothing or the fallback, but for Absent.
class HfObject {
 public:
  // `file` is how errors name it ("config.json", "config.json: rope_scaling"). Both must outlive
  // the object.
  HfObject(const nlohmann::json& object, std::string_view file) : object_(object), file_(file) {}

  // Null when absent (or null).
  const nlohmann::json* Find(const char* key) const;
  bool Has(const char* key) const { return Find(key) != nullptr; }
  // Not even null: where a class has a default of its own, null overrules it.
  bool Absent(const char* key) const { return !object_.contains(key); }

  // kCorrupt: of another type; field() and message name file and key.
  base::Result<std::optional<uint64_t>> Unsigned(const char* key) const;
  base::Result<std::optional<double>> Number(const char* key) const;
  base::Result<std::optional<bool>> Bool(const char* key) const;
  base::Result<std::optional<std::string>> Text(const char* key) const;
  // Also kCorrupt: absent.
  base::Result<uint64_t> RequiredUnsigned(const char* key) const;

  // Statuses for this key.
  base::Status Missing(const char* key) const;                            // kCorrupt
  base::Status Wrong(const char* key, std::string_view wanted) const;     // kCorrupt
  base::Status Refused(const char* key, std::string_view message) const;  // kUnsupported

 private:
  std::string Name(const char* key) const;

  const nlohmann::json& object_;
  std::string file_;
};

}  // namespace plumb::model
