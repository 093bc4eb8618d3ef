// model/hf_config_testing.h
// Tests only. A config.json of each class, and what becomes of it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/checkpoint.h"
#include "model/hf_config.h"

namespace plumb::model {

// Metadata with the typed reads of a checkpoint.
class Values final : public Checkpoint {
 public:
  explicit Values(const Metadata& metadata) : metadata_(metadata) {}
  const std::map<std::string_view, GgufValue>& values() const override {
    return metadata_.values();
  }
  std::span<const GgufTensor> tensors() const override { return {}; }
  const GgufTensor* FindTensor(std::string_view) const override { return nullptr; }
  base::Result<std::span<const std::byte>> Rows(const GgufTensor&, RowRange,
                                                tensor::AlignedBuffer&) const override {
    return base::Internal("no tensors");
  }
  std::string Format() const override { return "test"; }
  uint64_t file_bytes() const override { return 0; }

 private:
  const Metadata& metadata_;
};

inline nlohmann::json Base(const char* class_name) {
  return {{"architectures", nlohmann::json::array({class_name})},
          {"num_hidden_layers", 4},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 512},
          {"vocab_size", 320},
          {"rms_norm_eps", 1e-5}};
}

struct Read {
  Metadata metadata;
  base::Result<HfConfig> config;
  Values values{metadata};

  explicit Read(const nlohmann::json& source)
      : config(ReadHfConfig(source.dump(), "tiny", metadata)) {}
  uint64_t Unsigned(const char* key) const { return values.Unsigned(key).value_or(999999); }
  double Number(const char* key) const { return values.Number(key).value_or(-1.0); }
};

}  // namespace plumb::model
