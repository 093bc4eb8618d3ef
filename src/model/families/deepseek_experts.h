// model/families/deepseek_experts.h
// The experts of DeepSeek-V4.1: each row takes a few of many gated feed-forwards, and one that all
// share. Scores are sqrt(softplus); a bias helps to choose and does not weigh. Rows are grouped by
// expert, so that a step reads each expert it needs once, in two fork-joins for all of them.
// Formulas: docs/numerics_deepseek_v41.md, "Experts". Twin for other families: experts.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/families/deepseek_observer.h"
#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/deepseek_v41_weights.h"

namespace plumb::model {

struct DeepseekExpertChoice {
  uint32_t expert = 0;
  float weight = 0;
};

// sqrt(ln(1 + exp(x)))
float ExpertScore(float logit);

// The choices.size() experts of the largest score + bias, of equal ones the lower index, in order
// of index; their weights are score / (sum of the chosen scores + 1e-20) * scale. NaN counts as the
// smallest.
void ChooseDeepseekExperts(std::span<const float> scores, std::span<const float> bias, float scale,
                           std::span<DeepseekExpertChoice> choices);

// Thread: the model's. No allocation after Create. A row's result depends on that row alone.
class DeepseekExperts {
 public:
  // `config` and `observer` (may be null) must outlive it. kOverloaded: out of memory.
  static base::Result<DeepseekExperts> Create(const DeepseekConfig& config,
                                              const DeepseekRoundings& roundings, uint32_t rows_max,
                                              DeepseekObserver* observer);

  // out [rows, hidden] from hidden [rows, hidden].
  void Compute(tensor::Compute compute, uint32_t layer, const DeepseekFeed& weights,
               const float* hidden, uint32_t rows, float* out);

 private:
  DeepseekExperts(const DeepseekConfig& config, const DeepseekRoundings& roundings,
                  DeepseekObserver* observer)
      : config_(&config), roundings_(roundings), observer_(observer) {}

  void Route(tensor::Compute compute, const DeepseekFeed& weights, const float* hidden,
             uint32_t rows);
  void GroupByExpert(uint32_t rows);
  void GateAndUp(tensor::Compute compute, const DeepseekFeed& weights, const float* hidden,
                 uint32_t rows);
  void Down(tensor::Compute compute, const DeepseekFeed& weights, uint32_t rows);
  void Combine(tensor::Compute compute, uint32_t rows, float* out) const;
  void Observe(uint32_t layer, uint32_t rows);

  const DeepseekConfig* config_;
  DeepseekRoundings roundings_;
  DeepseekObserver* observer_;
  // Chosen experts of each row, [rows, used], and where each one's input lies among gathered rows.
  std::vector<DeepseekExpertChoice> choices_;
  std::vector<uint32_t> places_;
  std::vector<uint32_t> group_begin_;  // by expert, among gathered rows; one more than experts
  std::vector<uint32_t> group_rows_;   // of gathered rows: the row
  std::vector<float> group_weights_;
  std::vector<tensor::BlockProduct> products_;
  // Gathered rows first, then the shared expert's: [rows * used + rows, ...].
  Scratch<float> scores_;  // [rows, experts]
  Scratch<float> inputs_;  // [.., hidden]; then the experts' outputs
  Scratch<float> gates_;   // [.., expert_width]
  Scratch<float> ups_;     // [.., expert_width]
};

}  // namespace plumb::model
