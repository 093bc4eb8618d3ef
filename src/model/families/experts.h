// model/families/experts.h
// A feed-forward layer of routed experts: a router gives each row a few of them, and the layer adds
// their weighted outputs. Rows are grouped by expert, so that an expert's weights are read once per
// step; a row adds its experts in order of their index, so that its result does not depend on the
// rows beside it. Source: Jiang et al. 2024, "Mixtral of Experts", section 2.1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/layers.h"
#include "model/layers_weights.h"
#include "tensor/aligned_buffer.h"

namespace plumb::model {

struct ExpertWeights {
  tensor::PackedMatrix router;        // [experts, embedding]
  std::vector<GatedWeights> experts;  // of feed_forward each
};

void ExpectExperts(const Config& config, uint32_t layer, std::vector<WeightSpec>& specs);
base::Result<ExpertWeights> LoadExperts(WeightReader& reader, const Config& config, uint32_t layer);

// One expert of one row.
struct Choice {
  uint32_t expert;
  float weight;
};

// The choices.size() largest probabilities, the lower index of equal ones, in order of index; with
// `normalise` their weights are divided by their sum. Also for NaN the experts are distinct and
// below probabilities.size(), which is at least choices.size().
void ChooseExperts(std::span<const float> probabilities, bool normalise, std::span<Choice> choices);

// The layer and its scratch, sized once. Thread: the model's.
class ExpertLayer {
 public:
  // kOverloaded: out of memory.
  static base::Result<ExpertLayer> Create(const Config& config, const LoadOptions& options);

  // hidden += the weighted sum of the chosen experts' outputs, from pass.normed().
  void Add(ForwardPass& pass, const ExpertWeights& weights);

 private:
  ExpertLayer(const Config& config, const LoadOptions& options);
  void Route(ForwardPass& pass, const tensor::PackedMatrix& router);
  void GroupByExpert(uint32_t rows);

  const Config config_;
  tensor::AlignedBuffer memory_;    // of the four below
  float* probabilities_ = nullptr;  // [rows, experts]
  float* gathered_ = nullptr;       // [rows, embedding], one expert's inputs
  float* output_ = nullptr;         // [rows, embedding], and its outputs
  float* sum_ = nullptr;            // [rows, embedding], over experts
  std::vector<Choice> choices_;     // [rows, experts_used]
  // By expert, then by row: what group_begin_[e] .. group_begin_[e + 1] says.
  std::vector<uint32_t> group_begin_;  // [experts + 1]
  std::vector<uint32_t> group_rows_;
  std::vector<float> group_weights_;
};

}  // namespace plumb::model
