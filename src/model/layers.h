// model/layers.h
// One forward pass, step by step: the operations in which every family's Forward is written, over
// activations sized once. A family calls Begin, then for each layer what it is made of, then
// Outputs. Read next: model/families/llama.cc.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/layers_batch.h"
#include "model/layers_weights.h"
#include "model/load.h"
#include "tensor/aligned_buffer.h"
#include "tensor/ops.h"

namespace plumb::model {

// Tokens that a model serves: the file's, capped by the options.
uint32_t ContextMax(const Config& config, const LoadOptions& options);

// Angles of a rotary embedding of `base` over positions divided by `scale`. kInvalidArgument: a
// factor or base out of range; kOverloaded: out of memory.
base::Result<tensor::RotaryTable> BuildRotary(const Config& config, double base, double scale,
                                              std::span<const float> factors,
                                              const LoadOptions& options);

// What ModelInfo tells of a loaded model.
ModelInfo DescribeModel(const Checkpoint& checkpoint, const Config& config,
                        const OuterWeights& weights, const LoadOptions& options);

// Whether attention can be computed: heads of a width that pages hold, and windows known layer by
// layer. kUnsupported, with the field.
base::Status CheckAttention(const Config& config);

// How an attention layer sees its sequence.
struct AttentionView {
  const tensor::RotaryTable* rotary = nullptr;
  float scale = 0;      // of scores
  uint32_t window = 0;  // positions seen, the row's own included; 0 = all
};

enum class GateFunction : uint8_t { kSwiGlu, kGeGlu };

// Rows to compute from: [count, embedding].
struct InputRows {
  const float* x;
  uint32_t count;
};
// Where a product goes, [rows, embedding]; with `add` it is added to what is there.
struct Target {
  float* out;
  bool add;
};

// Activations of one step and the operations on them, row-major f32. `rows()` rows are alive: all
// of the batch, and from the last layer's attention on only those that are wanted. A row's
// values depend on nothing but its sequence, bit for bit. Thread: the model's, one at a time.
class ForwardPass {
 public:
  // kOverloaded: out of memory.
  static base::Result<ForwardPass> Create(const Config& config, const LoadOptions& options);

  // Takes in a step; CHECKs its arguments, and that `logits` has room for the rows that have them.
  void Begin(std::span<const SequenceRows> sequences, std::span<float> logits);
  uint32_t rows() const { return rows_; }
  float* hidden() { return hidden_; }  // [rows, embedding], the residual stream
  float* normed() { return normed_; }  // [rows, embedding]

  // hidden = the tokens' embeddings, times `scale`.
  void Embed(const OuterWeights& weights, float scale = 1);
  // out = RMSNorm(x) * weight; out may be x.
  void Norm(const float* x, const std::vector<float>& weight, float* out);
  // From normed(): stores keys and values of layer `index`, and attends. In the last layer the
  // rows that are not wanted end here: rows() shrinks, hidden() too.
  void Attend(uint32_t index, const AttentionWeights& weights, const AttentionView& view);
  // The output projection of what Attend computed.
  void ProjectHeads(const Projection& output, Target target);
  // down(act(gate(x)) * up(x)); the target may be x, if it does not add.
  void FeedForward(const GatedWeights& weights, GateFunction function, InputRows input,
                   Target target);
  // hidden += RMSNorm(x) * weight; x is overwritten.
  void AddNormed(float* x, const std::vector<float>& weight);
  // Writes what is wanted: hidden states after the last norm, and the logits that Begin was given
  // room for, capped softly unless `soft_cap` is 0.
  void Outputs(const OuterWeights& weights, float soft_cap = 0);

  tensor::Compute compute() const { return compute_; }
  void Linear(const float* x, uint32_t rows, uint32_t inputs,
              std::span<const tensor::Product> products);

 private:
  ForwardPass(const Config& config, const LoadOptions& options);
  void ProjectQueriesKeysValues(const AttentionWeights& weights, bool last_layer);

  const Config config_;
  const tensor::Compute compute_;
  const tensor::KvLayout layout_;
  const tensor::RotaryPairing pairing_;
  Batch batch_;
  uint32_t rows_ = 0;
  std::span<float> logits_;

  tensor::AlignedBuffer memory_;  // of all below
  float* hidden_ = nullptr;
  float* normed_ = nullptr;
  float* queries_ = nullptr;   // [rows, heads, head_dim]
  float* keys_ = nullptr;      // [rows, kv_heads, head_dim]
  float* values_ = nullptr;    // [rows, kv_heads, head_dim]
  float* attended_ = nullptr;  // [rows, heads, head_dim]
  float* gate_ = nullptr;      // [rows, feed_forward]
  float* up_ = nullptr;        // [rows, feed_forward]
  tensor::Activations quantised_;
  tensor::AttentionScratch attention_scratch_;
};

// What every family's model is besides its weights and its Forward.
class FamilyModel : public Model {
 public:
  FamilyModel(const Config& config, const LoadOptions& options, ModelInfo info, ForwardPass pass)
      : config_(config),
        pass_(std::move(pass)),
        rows_max_(options.rows_max),
        logits_rows_max_(options.logits_rows_max),
        info_(std::move(info)) {}

  const ModelInfo& info() const final { return info_; }
  uint32_t rows_max() const final { return rows_max_; }
  uint32_t logits_rows_max() const final { return logits_rows_max_; }

 protected:
  const Config config_;
  ForwardPass pass_;

 private:
  const uint32_t rows_max_;
  const uint32_t logits_rows_max_;
  const ModelInfo info_;
};

}  // namespace plumb::model
