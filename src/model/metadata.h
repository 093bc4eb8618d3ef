// model/metadata.h
// Metadata values that own their bytes, in the form in which a GGUF file has them: for checkpoints
// whose numbers come from elsewhere. Read next: model/hf_config.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "model/checkpoint.h"

namespace plumb::model {

// A resource type; views in values() live as long as the object. Thread: one at a time; any once
// it is filled.
class Metadata {
 public:
  Metadata() = default;
  Metadata(const Metadata&) = delete;
  Metadata& operator=(const Metadata&) = delete;

  // A key is set once (CHECK).
  void SetText(std::string key, std::string_view value);
  void SetUnsigned(std::string key, uint64_t value);
  void SetNumber(std::string key, double value);
  void SetBool(std::string key, bool value);
  void SetBools(std::string key, std::span<const bool> values);
  void SetIds(std::string key, std::span<const uint32_t> values);

  const std::map<std::string_view, GgufValue>& values() const { return values_; }

 private:
  void Set(std::string key, GgufValue value, std::string_view bytes);

  std::map<std::string, std::string> bytes_;  // by key; nodes do not move
  std::map<std::string_view, GgufValue> values_;
};

}  // namespace plumb::model
