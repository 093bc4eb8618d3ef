// model/families/llama.cc
// The Llama family (Llama 2 and 3, SmolLM2, Mistral, TinyLlama) and its siblings Qwen2 and Qwen3:
// pre-normalised layers of grouped-query attention and a gated feed-forward. Read top to bottom:
// weights, loading, Forward. Variants are data: biases, normalised heads (Qwen3), tied output,
// rotary pairing, frequency factors, sliding window. Sources: Touvron et al. 2023 ("LLaMA", "Llama
// 2"); Qwen2 technical report 2024; Qwen3 technical report 2025.
#include "model/families/llama.h"

#include <utility>
#include <vector>

#include "model/layers.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;

struct Layer {
  std::vector<float> attention_norm;  // [embedding]
  AttentionWeights attention;
  std::vector<float> feed_norm;  // [embedding]
  GatedWeights feed;
};

struct LlamaWeights {
  OuterWeights outer;
  std::vector<Layer> layers;
  tensor::RotaryTable rotary;
};

HeadNorms NormsOf(const Config& config) {
  return config.family == Family::kQwen3 ? HeadNorms::kYes : HeadNorms::kNo;
}

std::vector<WeightSpec> Weights(const Config& config) {
  std::vector<WeightSpec> specs;
  ExpectOuter(config, specs);
  for (uint32_t i = 0; i < config.layers; ++i) {
    ExpectVector(i, "attn_norm.weight", config.embedding, specs);
    ExpectAttention(config, NormsOf(config), i, specs);
    ExpectVector(i, "ffn_norm.weight", config.embedding, specs);
    ExpectGated(config, i, specs);
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
  ASSIGN_OR_RETURN(layer.feed, LoadGated(reader, config, index));
  return layer;
}

Result<LlamaWeights> LoadWeights(const Checkpoint& checkpoint, const Config& config,
                                 const LoadOptions& options) {
  LlamaWeights weights;
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

class LlamaModel final : public FamilyModel {
 public:
  LlamaModel(const Config& config, const LoadOptions& options, ModelInfo info, LlamaWeights weights,
             ForwardPass pass)
      : FamilyModel(config, options, std::move(info), std::move(pass)),
        weights_(std::move(weights)) {}

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
      pass_.FeedForward(layer.feed, GateFunction::kSwiGlu, {pass_.normed(), pass_.rows()},
                        {pass_.hidden(), true});
    }
    pass_.Outputs(weights_.outer);
  }

 private:
  const LlamaWeights weights_;
};

}  // namespace

Status CheckLlama(const Checkpoint& checkpoint, const Config& config) {
  RETURN_IF_ERROR(CheckAttention(config));
  return CheckWeights(checkpoint, Weights(config), config.architecture);
}

Result<std::unique_ptr<Model>> LoadLlama(const Checkpoint& checkpoint, const Config& config,
                                         const LoadOptions& options) {
  RETURN_IF_ERROR(CheckLlama(checkpoint, config));
  ASSIGN_OR_RETURN(LlamaWeights weights, LoadWeights(checkpoint, config, options));
  ASSIGN_OR_RETURN(ForwardPass pass, ForwardPass::Create(config, options));
  ModelInfo info = DescribeModel(checkpoint, config, weights.outer, options);
  return std::unique_ptr<Model>(std::make_unique<LlamaModel>(config, options, std::move(info),
                                                             std::move(weights), std::move(pass)));
}

}  // namespace plumb::model
