// model/config_keys.h
// Inside ReadConfig only: typed keys with ranges, and the parts of a config that differ by family.
// Read next: model/config_families.cc.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/config.h"

namespace plumb::model {

// Keys "<architecture>.<name>" with the errors of ReadConfig.
class KeyReader {
 public:
  KeyReader(const Checkpoint& gguf, std::string_view architecture)
      : gguf_(gguf), architecture_(architecture) {}

  std::string Key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  bool Has(std::string_view name) const { return gguf_.Has(Key(name)); }

  base::Result<uint32_t> Integer(std::string_view name, uint32_t min, uint32_t max) const {
    const std::string key = Key(name);
    auto value = gguf_.Unsigned(key);
    if (!value.ok()) return Fail(key, value.status());
    if (*value < min || *value > max) {
      return base::Corrupt(fmt::format("{} is {}, expected {} to {}", key, *value, min, max))
          .WithField(key);
    }
    return static_cast<uint32_t>(*value);
  }
  base::Result<uint32_t> IntegerOr(std::string_view name, uint32_t fallback, uint32_t min,
                                   uint32_t max) const {
    if (!Has(name)) return fallback;
    return Integer(name, min, max);
  }

  base::Result<float> Float(std::string_view name, double min, double max) const {
    const std::string key = Key(name);
    auto value = gguf_.Number(key);
    if (!value.ok()) return Fail(key, value.status());
    if (!(*value >= min && *value <= max)) {  // also refuses NaN
      return base::Corrupt(fmt::format("{} is {}, expected {} to {}", key, *value, min, max))
          .WithField(key);
    }
    return static_cast<float>(*value);
  }
  base::Result<float> FloatOr(std::string_view name, float fallback, double min, double max) const {
    if (!Has(name)) return fallback;
    return Float(name, min, max);
  }

  base::Result<bool> BoolOr(std::string_view name, bool fallback) const {
    if (!Has(name)) return fallback;
    auto value = gguf_.Bool(Key(name));
    if (!value.ok()) return Fail(Key(name), value.status());
    return *value;
  }

 private:
  static base::Status Fail(const std::string& key, const base::Status& status) {
    return base::Corrupt(status.message()).WithField(key);
  }
  const Checkpoint& gguf_;
  std::string architecture_;
};

// Each fills its fields of `config`. Errors: as ReadConfig.
// How many experts; an architecture llama with experts becomes Family::kMixtral.
base::Status ReadExperts(const KeyReader& keys, Config& config);
base::Status ReadFeedForward(const KeyReader& keys, Config& config);
// Which layers see all positions.
base::Status ReadWindows(const Checkpoint& gguf, const KeyReader& keys, Config& config);
// Of attention scores and logits.
base::Status ReadScales(const KeyReader& keys, Config& config);

// kUnsupported for features of other models that share the architecture's name.
base::Status RefuseFeatures(const Checkpoint& gguf, const KeyReader& keys, Family family);

}  // namespace plumb::model
