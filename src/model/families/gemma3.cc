// model/families/gemma3.cc
// Gemma 3, text only: embeddings scaled by sqrt(width), norms before and after each half of a
// layer, normalised heads of queries and keys, GeGLU, and most layers seeing only a window of
// positions, with rotary frequencies of their own. The file's norm weights include Gemma's 1 +.
// Sources: Gemma 3 technical report 2025; tensor names as by llama.cpp's converter.
#include "model/families/gemma3.h"

#include <cmath>
#include <utility>
#include <vector>

#include "model/layers.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;

struct Layer {
  std::vector<float> attention_norm;  // [embedding], as the three below
  AttentionWeights attention;
  std::vector<float> attention_post_norm;
  std::vector<float> feed_norm;
  GatedWeights feed;
  std::vector<float> feed_post_norm;
};

struct Gemma3Weights {
  OuterWeights outer;
  std::vector<Layer> layers;
  tensor::RotaryTable rotary;        // of layers that see all positions
  tensor::RotaryTable rotary_local;  // of layers with a window
};

constexpr std::string_view kNorms[] = {"attn_norm.weight", "post_attention_norm.weight",
                                       "ffn_norm.weight", "post_ffw_norm.weight"};

std::vector<WeightSpec> Weights(const Config& config) {
  std::vector<WeightSpec> specs;
  ExpectOuter(config, specs);
  for (uint32_t i = 0; i < config.layers; ++i) {
    for (const std::string_view name : kNorms) ExpectVector(i, name, config.embedding, specs);
    ExpectAttention(config, HeadNorms::kYes, i, specs);
    ExpectGated(config, i, specs);
  }
  return specs;
}

Result<Layer> LoadLayer(WeightReader& reader, const Config& config, uint32_t index) {
  Layer layer;
  std::vector<float>* const norms[] = {&layer.attention_norm, &layer.attention_post_norm,
                                       &layer.feed_norm, &layer.feed_post_norm};
  for (size_t i = 0; i < std::size(norms); ++i) {
    ASSIGN_OR_RETURN(*norms[i], reader.Vector(LayerName(index, kNorms[i]), config.embedding));
  }
  ASSIGN_OR_RETURN(layer.attention, LoadAttention(reader, config, HeadNorms::kYes, index));
  ASSIGN_OR_RETURN(layer.feed, LoadGated(reader, config, index));
  return layer;
}

Result<Gemma3Weights> LoadWeights(const Checkpoint& checkpoint, const Config& config,
                                  const LoadOptions& options) {
  Gemma3Weights weights;
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
  ASSIGN_OR_RETURN(weights.rotary_local,
                   BuildRotary(config, config.rope_base_local, 1.0, {}, options));
  return weights;
}

class Gemma3Model final : public FamilyModel {
 public:
  Gemma3Model(const Config& config, const LoadOptions& options, ModelInfo info,
              Gemma3Weights weights, ForwardPass pass)
      : FamilyModel(config, options, std::move(info), std::move(pass)),
        // In f32, as transformers in f32 and llama.cpp; bf16 would round it first.
        embedding_scale_(std::sqrt(static_cast<float>(config.embedding))),
        weights_(std::move(weights)) {}

  void Forward(std::span<const SequenceRows> sequences, std::span<float> logits) override {
    pass_.Begin(sequences, logits);
    pass_.Embed(weights_.outer, embedding_scale_);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      const Layer& layer = weights_.layers[i];
      Attention(i, layer);
      FeedForward(layer);
    }
    pass_.Outputs(weights_.outer, config_.final_soft_cap);
  }

 private:
  void Attention(uint32_t index, const Layer& layer) {
    const uint32_t window = config_.layer_windows[index];
    const tensor::RotaryTable& rotary = window != 0 ? weights_.rotary_local : weights_.rotary;
    pass_.Norm(pass_.hidden(), layer.attention_norm, pass_.normed());
    pass_.Attend(index, layer.attention, {&rotary, config_.attention_scale, window});
    pass_.ProjectHeads(layer.attention.output, {pass_.normed(), false});
    pass_.AddNormed(pass_.normed(), layer.attention_post_norm);
  }

  void FeedForward(const Layer& layer) {
    pass_.Norm(pass_.hidden(), layer.feed_norm, pass_.normed());
    pass_.FeedForward(layer.feed, GateFunction::kGeGlu, {pass_.normed(), pass_.rows()},
                      {pass_.normed(), false});
    pass_.AddNormed(pass_.normed(), layer.feed_post_norm);
  }

  const float embedding_scale_;
  const Gemma3Weights weights_;
};

}  // namespace

Status CheckGemma3(const Checkpoint& checkpoint, const Config& config) {
  RETURN_IF_ERROR(CheckAttention(config));
  return CheckWeights(checkpoint, Weights(config), config.architecture);
}

Result<std::unique_ptr<Model>> LoadGemma3(const Checkpoint& checkpoint, const Config& config,
                                          const LoadOptions& options) {
  RETURN_IF_ERROR(CheckGemma3(checkpoint, config));
  ASSIGN_OR_RETURN(Gemma3Weights weights, LoadWeights(checkpoint, config, options));
  ASSIGN_OR_RETURN(ForwardPass pass, ForwardPass::Create(config, options));
  ModelInfo info = DescribeModel(checkpoint, config, weights.outer, options);
  return std::unique_ptr<Model>(std::make_unique<Gemma3Model>(config, options, std::move(info),
                                                              std::move(weights), std::move(pass)));
}

}  // namespace plumb::model
