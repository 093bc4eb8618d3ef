// model/families/deepseek_experts.cc: route, group, all gates and ups, all downs, combine. The
// outputs of an expert are scaled before its last product, as the model was trained.
#include "model/families/deepseek_experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "tensor/exact_math.h"

namespace plumb::model {
namespace {

constexpr uint32_t kChosenMax = 64;

// ln(1 + e) for e >= 0, accurate also where 1 + e loses e (Kahan's correction).
float LogOnePlus(float e) {
  const float sum = 1.0f + e;
  return sum == 1.0f ? e : tensor::ExactLog(sum) * (e / (sum - 1.0f));
}

}  // namespace

float ExpertScore(float logit) {
  const float positive = logit > 0 ? logit : 0.0f;
  return std::sqrt(positive + LogOnePlus(tensor::ExactExp(-std::abs(logit))));
}

void ChooseDeepseekExperts(std::span<const float> scores, std::span<const float> bias, float scale,
                           std::span<DeepseekExpertChoice> choices) {
  CHECK(choices.size() <= scores.size() && choices.size() <= kChosenMax) << choices.size();
  CHECK(bias.size() == scores.size()) << bias.size();
  float keys[kChosenMax];  // of the choices so far, descending
  size_t count = 0;
  for (uint32_t expert = 0; expert < scores.size(); ++expert) {
    const float sum = scores[expert] + bias[expert];
    const float key = std::isnan(sum) ? -std::numeric_limits<float>::infinity() : sum;
    if (count == choices.size() && !(key > keys[count - 1])) continue;
    size_t place = count < choices.size() ? count++ : count - 1;
    for (; place > 0 && key > keys[place - 1]; --place) {
      keys[place] = keys[place - 1];
      choices[place] = choices[place - 1];
    }
    keys[place] = key;
    choices[place] = {expert, scores[expert]};
  }
  std::sort(choices.begin(), choices.end(),
            [](const auto& a, const auto& b) { return a.expert < b.expert; });
  float sum = 0;
  for (const DeepseekExpertChoice& choice : choices) sum = sum + choice.weight;
  sum = sum + 1e-20f;
  for (DeepseekExpertChoice& choice : choices) choice.weight = choice.weight / sum * scale;
}

base::Result<DeepseekExperts> DeepseekExperts::Create(const DeepseekConfig& config,
                                                      const DeepseekRoundings& roundings,
                                                      uint32_t rows_max,
                                                      DeepseekObserver* observer) {
  DeepseekExperts self(config, roundings, observer);
  CHECK(config.experts_used >= 1 && config.experts_used <= kChosenMax) << config.experts_used;
  const uint64_t rows = rows_max;
  const uint64_t gathered = rows * config.experts_used;
  self.choices_.resize(gathered);
  self.places_.resize(gathered);
  self.group_begin_.resize(config.experts + 1);
  self.group_rows_.resize(gathered);
  self.group_weights_.resize(gathered);
  self.products_.reserve(2 * (uint64_t{config.experts} + 1));
  ASSIGN_OR_RETURN(self.scores_, Scratch<float>::Allocate(rows * config.experts));
  ASSIGN_OR_RETURN(self.inputs_, Scratch<float>::Allocate((gathered + rows) * config.hidden));
  ASSIGN_OR_RETURN(self.gates_, Scratch<float>::Allocate((gathered + rows) * config.expert_width));
  ASSIGN_OR_RETURN(self.ups_, Scratch<float>::Allocate((gathered + rows) * config.expert_width));
  return self;
}

void DeepseekExperts::Route(tensor::Compute compute, const DeepseekFeed& weights,
                            const float* hidden, uint32_t rows) {
  constexpr uint64_t kScoreCost = 32;  // of a value, in values of simpler loops
  const uint32_t experts = config_->experts;
  const size_t used = config_->experts_used;
  Multiply(compute, weights.router, hidden, rows, scores_.data());
  ForEachRow(compute, rows, kScoreCost * experts, [&](uint32_t row) {
    float* scores = scores_.data() + uint64_t{row} * experts;
    for (uint32_t i = 0; i < experts; ++i) scores[i] = ExpertScore(scores[i]);
    ChooseDeepseekExperts({scores, experts}, weights.bias, config_->expert_scale,
                          std::span(choices_).subspan(row * used, used));
  });
}

// Counting sort: rows stay in order within an expert.
void DeepseekExperts::GroupByExpert(uint32_t rows) {
  const auto choices = std::span(choices_).first(uint64_t{rows} * config_->experts_used);
  std::fill(group_begin_.begin(), group_begin_.end(), 0u);
  for (const auto& choice : choices) ++group_begin_[choice.expert];
  uint32_t begin = 0;
  for (uint32_t& entry : group_begin_) begin += std::exchange(entry, begin);
  for (size_t i = 0; i < choices.size(); ++i) {
    const uint32_t place = group_begin_[choices[i].expert]++;
    places_[i] = place;
    group_rows_[place] = static_cast<uint32_t>(i / config_->experts_used);
    group_weights_[place] = choices[i].weight;
  }
  // Each entry is now its group's end, which is the next one's begin.
  std::copy_backward(group_begin_.begin(), group_begin_.end() - 1, group_begin_.end());
  group_begin_[0] = 0;
}

void DeepseekExperts::GateAndUp(tensor::Compute compute, const DeepseekFeed& weights,
                                const float* hidden, uint32_t rows) {
  const uint64_t hidden_n = config_->hidden;
  const uint64_t width = config_->expert_width;
  const uint32_t gathered = rows * config_->experts_used;
  const auto add = [&](const BlockMatrix& matrix, uint64_t first, uint32_t count, float* out) {
    products_.push_back({.matrix = matrix,
                         .x = inputs_.data() + first * hidden_n,
                         .x_stride = hidden_n,
                         .rows = count,
                         .out = out + first * width,
                         .out_stride = width});
  };
  // The shared expert's input stands behind the gathered rows. All F8 and F4 matrices of a feed
  // read their inputs rounded alike.
  std::copy_n(hidden, rows * hidden_n, inputs_.data() + gathered * hidden_n);
  RoundInputs(compute, roundings_, weights.shared.gate, rows, hidden_n,
              inputs_.data() + gathered * hidden_n);
  ForEachRow(compute, gathered, hidden_n, [&](uint32_t i) {
    const float* row = inputs_.data() + (uint64_t{gathered} + group_rows_[i]) * hidden_n;
    std::copy_n(row, hidden_n, inputs_.data() + i * hidden_n);
  });
  products_.clear();
  add(weights.shared.gate, gathered, rows, gates_.data());
  add(weights.shared.up, gathered, rows, ups_.data());
  for (uint32_t i = 0; i < config_->experts; ++i) {
    const uint32_t count = group_begin_[i + 1] - group_begin_[i];
    if (count == 0) continue;
    add(weights.experts[i].gate, group_begin_[i], count, gates_.data());
    add(weights.experts[i].up, group_begin_[i], count, ups_.data());
  }
  tensor::BlockLinear(compute, products_);
}

// gates_ = silu(min(gate, limit)) * clamp(up, -limit, limit) * weight, then the last product.
void DeepseekExperts::Down(tensor::Compute compute, const DeepseekFeed& weights, uint32_t rows) {
  const uint32_t width = config_->expert_width;
  const uint32_t gathered = rows * config_->experts_used;
  const float limit = config_->swiglu_limit;
  const auto round = [&](float* x) {
    if (roundings_.activations) tensor::RoundToBf16(compute.kernels, {x, width});
  };
  ForEachRow(compute, gathered + rows, uint64_t{width} * 8, [&](uint32_t i) {
    float* gate = gates_.data() + uint64_t{i} * width;
    float* up = ups_.data() + uint64_t{i} * width;
    round(gate);
    round(up);
    for (uint32_t k = 0; k < width; ++k) {
      gate[k] = gate[k] > limit ? limit : gate[k];
      up[k] = up[k] > limit ? limit : up[k] < -limit ? -limit : up[k];
    }
    compute.kernels.swiglu(gate, up, width, gate);
    if (i >= gathered) return;  // the shared expert weighs 1
    const float weight = group_weights_[i];
    for (uint32_t k = 0; k < width; ++k) gate[k] = gate[k] * weight;
  });
  RoundInputs(compute, roundings_, weights.shared.down, gathered + rows, width, gates_.data());
  products_.clear();
  const auto add = [&](const BlockMatrix& matrix, uint64_t first, uint32_t count) {
    products_.push_back({.matrix = matrix,
                         .x = gates_.data() + first * width,
                         .x_stride = width,
                         .rows = count,
                         .out = inputs_.data() + first * config_->hidden,
                         .out_stride = config_->hidden});
  };
  add(weights.shared.down, gathered, rows);
  for (uint32_t i = 0; i < config_->experts; ++i) {
    const uint32_t count = group_begin_[i + 1] - group_begin_[i];
    if (count > 0) add(weights.experts[i].down, group_begin_[i], count);
  }
  tensor::BlockLinear(compute, products_);
}

// In order of experts, then the shared one.
void DeepseekExperts::Combine(tensor::Compute compute, uint32_t rows, float* out) const {
  const uint32_t n = config_->hidden;
  const uint64_t used = config_->experts_used;
  const uint64_t shared = rows * used;
  ForEachRow(compute, rows, n * (used + 1), [&](uint32_t row) {
    float* sum = out + uint64_t{row} * n;
    const auto output = [&](uint64_t place) { return inputs_.data() + place * n; };
    std::copy_n(output(places_[row * used]), n, sum);
    for (uint64_t i = 1; i < used; ++i) {
      compute.kernels.add(sum, output(places_[row * used + i]), n, sum);
    }
    compute.kernels.add(sum, output(shared + row), n, sum);
  });
}

void DeepseekExperts::Observe(uint32_t layer, uint32_t rows) {
  const size_t used = config_->experts_used;
  std::vector<float> weights;
  for (uint32_t row = 0; row < rows; ++row) {
    std::vector<uint32_t> chosen;
    for (const auto& choice : std::span(choices_).subspan(row * used, used)) {
      chosen.push_back(choice.expert);
      weights.push_back(choice.weight);
    }
    observer_->Chose(DeepseekChoice::kExperts, layer, row, chosen);
  }
  observer_->Values(DeepseekStage::kExpertWeights, layer, weights);
}

void DeepseekExperts::Compute(tensor::Compute compute, uint32_t layer, const DeepseekFeed& weights,
                              const float* hidden, uint32_t rows, float* out) {
  if (rows == 0) return;
  Route(compute, weights, hidden, rows);
  GroupByExpert(rows);
  if (observer_ != nullptr) Observe(layer, rows);
  GateAndUp(compute, weights, hidden, rows);
  Down(compute, weights, rows);
  const uint64_t gathered = uint64_t{rows} * config_->experts_used;
  RoundActivations(compute, roundings_, static_cast<uint32_t>(gathered + rows), config_->hidden,
                   inputs_.data());
  Combine(compute, rows, out);
  RoundActivations(compute, roundings_, rows, config_->hidden, out);
}

}  // namespace plumb::model
