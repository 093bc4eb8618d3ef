// model/families/moe.cc
// Families with routed experts: Mixtral (Llama's attention) and Qwen3-MoE (Qwen3's, which
// normalises the heads of queries and keys). Each layer's feed-forward is a choice of experts
// (families/experts.h); the rest is as in families/llama.cc. Sources: Jiang et al. 2024, "Mixtral
// of Experts"; Qwen3 technical report 2025.
#include "model/families/moe.h"

#include <utility>
#include <vector>

#include "model/families/experts.h"
#include "model/layers.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;

struct Layer {
  std::vector<float> attention_norm;  // [embedding]
  AttentionWeights attention;
  std::vector<float> feed_norm;  // [embedding]
  ExpertWeights feed;
};

struct MoeWeights {
  OuterWeights outer;
  std::vector<Layer> layers;
  tensor::RotaryTable rotary;
};

HeadNorms NormsOf(const Config& config) {
  return config.family == Family::kQwen3Moe ? HeadNorms::kYes : HeadNorms::kNo;
}

std::vector<WeightSpec> Weights(const Config& config) {
  std::vector<WeightSpec> specs;
  ExpectOuter(config, specs);
  for (uint32_t i = 0; i < config.layers; ++i) {
    ExpectVector(i, "attn_norm.weight", config.embedding, specs);
    ExpectAttention(config, NormsOf(config), i, specs);
    ExpectVector(i, "ffn_norm.weight", config.embedding, specs);
    ExpectExperts(config, i, specs);
  }
  return specs;
}

Result<Layer> LoadLayer(WeightReader& reader, const Config& config, uint32_t index) {
  Layer layer;
  ASSIGN_OR_RETURN(layer.attention_norm,
                   reader.Vector(LayerName(index, "attn_norm.weight"), config.embedding));
  ASSIGN_OR_RETURN(layer.attention, LoadAttention(reader, config, NormsOf(config), index));
  ASSIGN_OR_RETURN(layer.feed_norm,
                   reader.Vector(LayerName(index, "ffn_norm.weight"), config.embedding));
  ASSIGN_OR_RETURN(layer.feed, LoadExperts(reader, config, index));
  return layer;
}

Result<MoeWeights> LoadWeights(const Checkpoint& checkpoint, const Config& config,
                               const LoadOptions& options) {
  MoeWeights weights;
  WeightReader reader(checkpoint, options, weights.outer.arena);
  ASSIGN_OR_RETURN(weights.outer.embedding, LoadEmbedding(reader, config));
  weights.layers.reserve(config.layers);
  for (uint32_t i = 0; i < config.layers; ++i) {
    ASSIGN_OR_RETURN(Layer layer, LoadLayer(reader, config, i));
    weights.layers.push_back(std::move(layer));
  }
  RETURN_IF_ERROR(FinishOuter(reader, config, weights.outer));
  ASSIGN_OR_RETURN(weights.rotary, BuildRotary(config, config.rope_base, config.rope_scale,
                                               weights.outer.rope_factors, options));
  return weights;
}

class MoeModel final : public FamilyModel {
 public:
  MoeModel(const Config& config, const LoadOptions& options, ModelInfo info, MoeWeights weights,
           ForwardPass pass, ExpertLayer experts)
      : FamilyModel(config, options, std::move(info), std::move(pass)),
        weights_(std::move(weights)),
        experts_(std::move(experts)) {}

  void Forward(std::span<const SequenceRows> sequences, std::span<float> logits) override {
    pass_.Begin(sequences, logits);
    pass_.Embed(weights_.outer);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      const Layer& layer = weights_.layers[i];
      pass_.Norm(pass_.hidden(), layer.attention_norm, pass_.normed());
      pass_.Attend(i, layer.attention,
                   {&weights_.rotary, config_.attention_scale, config_.layer_windows[i]});
      pass_.ProjectHeads(layer.attention.output, {pass_.hidden(), true});
      pass_.Norm(pass_.hidden(), layer.feed_norm, pass_.normed());
      experts_.Add(pass_, layer.feed);
    }
    pass_.Outputs(weights_.outer);
  }

 private:
  const MoeWeights weights_;
  ExpertLayer experts_;
};

}  // namespace

Status CheckMoe(const Checkpoint& checkpoint, const Config& config) {
  RETURN_IF_ERROR(CheckAttention(config));
  return CheckWeights(checkpoint, Weights(config), config.architecture);
}

Result<std::unique_ptr<Model>> LoadMoe(const Checkpoint& checkpoint, const Config& config,
                                       const LoadOptions& options) {
  RETURN_IF_ERROR(CheckMoe(checkpoint, config));
  ASSIGN_OR_RETURN(MoeWeights weights, LoadWeights(checkpoint, config, options));
  ASSIGN_OR_RETURN(ForwardPass pass, ForwardPass::Create(config, options));
  ASSIGN_OR_RETURN(ExpertLayer experts, ExpertLayer::Create(config, options));
  ModelInfo info = DescribeModel(checkpoint, config, weights.outer, options);
  return std::unique_ptr<Model>(std::make_unique<MoeModel>(
      config, options, std::move(info), std::move(weights), std::move(pass), std::move(experts)));
}

}  // namespace plumb::model
