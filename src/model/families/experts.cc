// model/families/experts.cc: route, group, then one expert after the other.
// TODO(perf): a decode step makes four fork-joins per chosen expert; experts with the same rows
// could share one.
#include "model/families/experts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace plumb::model {

using base::Result;

void ExpectExperts(const Config& config, uint32_t layer, std::vector<WeightSpec>& specs) {
  const auto add = [&](std::string_view name, uint64_t outputs, uint64_t inputs, uint32_t experts) {
    specs.push_back({LayerName(layer, name), outputs, inputs, false, experts});
  };
  const uint32_t width = config.embedding;
  add("ffn_gate_inp.weight", config.experts, width, 0);
  add("ffn_gate_exps.weight", config.feed_forward, width, config.experts);
  add("ffn_up_exps.weight", config.feed_forward, width, config.experts);
  add("ffn_down_exps.weight", width, config.feed_forward, config.experts);
}

Result<ExpertWeights> LoadExperts(WeightReader& reader, const Config& config, uint32_t layer) {
  const uint32_t width = config.embedding;
  ExpertWeights weights;
  ASSIGN_OR_RETURN(weights.router,
                   reader.Matrix(LayerName(layer, "ffn_gate_inp.weight"), config.experts, width));
  weights.experts.resize(config.experts);
  for (uint32_t i = 0; i < config.experts; ++i) {
    const auto load = [&](std::string_view name, uint64_t outputs, uint64_t inputs) {
      return reader.ExpertMatrix(LayerName(layer, name), i, config.experts, outputs, inputs);
    };
    GatedWeights& expert = weights.experts[i];
    ASSIGN_OR_RETURN(expert.gate, load("ffn_gate_exps.weight", config.feed_forward, width));
    ASSIGN_OR_RETURN(expert.up, load("ffn_up_exps.weight", config.feed_forward, width));
    ASSIGN_OR_RETURN(expert.down, load("ffn_down_exps.weight", width, config.feed_forward));
  }
  return weights;
}

void ChooseExperts(std::span<const float> probabilities, bool normalise,
                   std::span<Choice> choices) {
  CHECK(choices.size() <= probabilities.size()) << choices.size();
  size_t count = 0;  // of choices so far, by descending probability
  for (uint32_t expert = 0; expert < probabilities.size(); ++expert) {
    const float probability = probabilities[expert];
    if (count == choices.size() && !(probability > choices.back().weight)) continue;
    size_t place = count < choices.size() ? count++ : count - 1;
    for (; place > 0 && probability > choices[place - 1].weight; --place) {
      choices[place] = choices[place - 1];
    }
    choices[place] = {expert, probability};
  }
  std::sort(choices.begin(), choices.end(),
            [](const Choice& a, const Choice& b) { return a.expert < b.expert; });
  if (!normalise) return;
  float sum = 0;
  for (const Choice& choice : choices) sum = sum + choice.weight;
  for (Choice& choice : choices) choice.weight = choice.weight / sum;
}

ExpertLayer::ExpertLayer(const Config& config, const LoadOptions& options)
    : config_(config),
      choices_(uint64_t{options.rows_max} * config.experts_used),
      group_begin_(config.experts + 1),
      group_rows_(choices_.size()),
      group_weights_(choices_.size()) {}

Result<ExpertLayer> ExpertLayer::Create(const Config& config, const LoadOptions& options) {
  ExpertLayer layer(config, options);
  const uint64_t rows = options.rows_max;
  const uint64_t wide = rows * config.embedding;
  ASSIGN_OR_RETURN(layer.memory_, tensor::AlignedBuffer::Allocate(
                                      (rows * config.experts + 3 * wide) * sizeof(float)));
  layer.gathered_ = reinterpret_cast<float*>(layer.memory_.data());
  layer.output_ = layer.gathered_ + wide;
  layer.sum_ = layer.output_ + wide;
  layer.probabilities_ = layer.sum_ + wide;
  return layer;
}

void ExpertLayer::Route(ForwardPass& pass, const tensor::PackedMatrix& router) {
  pass.Linear(pass.normed(), pass.rows(), config_.embedding,
              std::array<tensor::Product, 1>{{{&router, probabilities_}}});
  Softmax(pass.compute(), pass.rows(), config_.experts, probabilities_);
  constexpr uint32_t kRowsPerItem = 16;
  const uint32_t items = (pass.rows() + kRowsPerItem - 1) / kRowsPerItem;
  const size_t used = config_.experts_used;
  pass.compute().pool.ParallelFor(items, [&](uint32_t item) {
    const uint32_t end = std::min(pass.rows(), (item + 1) * kRowsPerItem);
    for (uint32_t row = item * kRowsPerItem; row < end; ++row) {
      const size_t first = size_t{row} * config_.experts;
      ChooseExperts({probabilities_ + first, config_.experts}, config_.expert_norm,
                    std::span(choices_).subspan(row * used, used));
    }
  });
}

// Counting sort: rows stay in order within an expert.
void ExpertLayer::GroupByExpert(uint32_t rows) {
  const auto choices = std::span(choices_).first(size_t{rows} * config_.experts_used);
  std::fill(group_begin_.begin(), group_begin_.end(), 0u);
  for (const Choice& choice : choices) ++group_begin_[choice.expert];
  uint32_t begin = 0;
  for (uint32_t& entry : group_begin_) begin += std::exchange(entry, begin);
  for (size_t i = 0; i < choices.size(); ++i) {
    const uint32_t place = group_begin_[choices[i].expert]++;
    group_rows_[place] = static_cast<uint32_t>(i / config_.experts_used);
    group_weights_[place] = choices[i].weight;
  }
  // Each entry is now its group's end, which is the next one's begin.
  std::copy_backward(group_begin_.begin(), group_begin_.end() - 1, group_begin_.end());
  group_begin_[0] = 0;
}

void ExpertLayer::Add(ForwardPass& pass, const ExpertWeights& weights) {
  const uint32_t rows = pass.rows();
  const uint32_t width = config_.embedding;
  if (rows == 0) return;
  Route(pass, weights.router);
  GroupByExpert(rows);
  std::fill_n(sum_, uint64_t{rows} * width, 0.0f);
  for (uint32_t i = 0; i < config_.experts; ++i) {
    const uint32_t begin = group_begin_[i];
    const uint32_t count = group_begin_[i + 1] - begin;
    if (count == 0) continue;
    const auto chosen_by = std::span<const uint32_t>(group_rows_).subspan(begin, count);
    const auto scales = std::span<const float>(group_weights_).subspan(begin, count);
    GatherRows(pass.compute(), pass.normed(), chosen_by, width, gathered_);
    pass.FeedForward(weights.experts[i], GateFunction::kSwiGlu, {gathered_, count},
                     {output_, false});
    AddScaledRows(pass.compute(), output_, scales, chosen_by, width, sum_);
  }
  tensor::Add(pass.compute(), pass.hidden(), sum_, rows, width, pass.hidden());
}

}  // namespace plumb::model
