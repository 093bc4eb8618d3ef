// cli/bench_cost.cc
// The formulas of cli/bench_cost.h.
#include "cli/bench_cost.h"

#include <algorithm>

#include "model/families/deepseek_v41_need.h"

namespace plumb::cli {
namespace {

// Keys that a row at this position sees.
uint64_t Seen(const ModelCost& cost, uint64_t position) {
  return cost.window == 0 ? position + 1 : std::min(position + 1, cost.window);
}

Work StepWork(const ModelCost& cost, uint64_t rows, uint64_t logit_rows, uint64_t keys_computed,
              uint64_t keys_read) {
  const double multiply_adds =
      static_cast<double>(rows) * static_cast<double>(cost.body_weights) +
      static_cast<double>(logit_rows) * static_cast<double>(cost.output_weights) +
      static_cast<double>(keys_computed) * static_cast<double>(cost.multiply_adds_per_key);
  return {2 * multiply_adds,
          static_cast<double>(cost.step_weight_bytes) +
              static_cast<double>(keys_read) * static_cast<double>(cost.key_bytes)};
}

Work DeepseekStepWork(const ModelCost& cost, const model::DeepseekStep& step) {
  const model::DeepseekWork work = model::DeepseekWorkOf(*cost.deepseek, step);
  return {work.operations, work.bytes()};
}

// Where the decoder begins for a prompt of so many tokens.
uint64_t ReplayFrom(const ModelCost& cost, uint64_t tokens) {
  return cost.replay_rows == 0 ? 0 : tokens - std::min<uint64_t>(tokens, cost.replay_rows);
}

}  // namespace

ModelCost CostOf(const CostSource& source) {
  ModelCost cost;
  const model::ModelInfo& info = source.info;
  const model::Config& config = source.inspection.config;
  if (source.deepseek) {
    cost.known = true;
    cost.deepseek = source.deepseek;
    cost.replay_rows = info.replay_rows;
    return cost;
  }
  const uint64_t table = uint64_t{config.embedding} * config.vocabulary;
  const uint64_t tables = config.tied_output ? table : 2 * table;
  const bool mixed_layers = config.family == model::Family::kGemma3;
  if (source.experts || mixed_layers || info.parameters < tables) return cost;
  cost.known = true;
  const auto& types = source.inspection.types;
  cost.quantised = !types.empty() && types.front().type.starts_with('Q');
  cost.body_weights = info.parameters - tables;
  cost.output_weights = table;
  cost.multiply_adds_per_key = uint64_t{2} * config.layers * config.heads * config.head_dim;
  const uint64_t looked_up = source.inspection.memory.lookup_bytes;
  cost.step_weight_bytes = info.weight_bytes - std::min(info.weight_bytes, looked_up);
  cost.key_bytes = info.page_bytes / model::kPageTokens;
  cost.window = config.sliding_window;
  return cost;
}

Work PrefillWork(const ModelCost& cost, uint64_t prompt_tokens, uint64_t chunk_rows) {
  Work work;
  for (uint64_t begin = 0; begin < prompt_tokens; begin += chunk_rows) {
    const uint64_t end = std::min(begin + chunk_rows, prompt_tokens);
    const uint64_t logit_rows = end == prompt_tokens ? 1 : 0;
    Work step;
    if (cost.deepseek) {
      step = DeepseekStepWork(cost, {.position = begin,
                                     .rows = end - begin,
                                     .replay_from = ReplayFrom(cost, prompt_tokens),
                                     .logits_rows = logit_rows});
    } else {
      uint64_t keys = 0;
      for (uint64_t position = begin; position < end; ++position) keys += Seen(cost, position);
      step = StepWork(cost, end - begin, logit_rows, keys, end);
    }
    work.operations += step.operations;
    work.bytes += step.bytes;
  }
  return work;
}

Work DecodeWork(const ModelCost& cost, const DecodeShape& shape) {
  Work work;
  for (uint64_t i = 0; i < shape.steps; ++i) {
    const uint64_t position = shape.context + i;
    const uint64_t keys = shape.batch * Seen(cost, position);
    const Work step = cost.deepseek
                          ? DeepseekStepWork(cost, {.sequences = shape.batch,
                                                    .position = position,
                                                    .replay_from = ReplayFrom(cost, shape.context)})
                          : StepWork(cost, shape.batch, shape.batch, keys, keys);
    work.operations += step.operations;
    work.bytes += step.bytes;
  }
  return work;
}

}  // namespace plumb::cli
