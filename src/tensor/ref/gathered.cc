// tensor/ref/gathered.cc
// The judge of attention over lists of rows and of index scores: one head and one key at a time
// (docs/numerics_deepseek_v41.md, "Gathered attention" and "Selection").
#include <algorithm>
#include <cmath>

#include "tensor/attention_task.h"
#include "tensor/kv_page.h"
#include "tensor/ref/reference.h"

namespace plumb::tensor::ref {
namespace {

// One head's result so far, or that of one block.
struct Partial {
  float maximum;
  float sum;
  float values[kHeadDimMax];
};

// Key `index` of the list.
void ReadKey(const GatheredTask& task, uint32_t index, float* key) {
  if (index < task.window_count) {
    DecodeRow(task.window_format, task.window[index], task.head_dim, key);
  } else {
    DecodeRow(task.selected_format, task.selected[index - task.window_count], task.head_dim, key);
  }
}

// Keys [begin, end) of the list, at most kKeyBlock.
void AttendBlock(const GatheredTask& task, const float* query, uint32_t begin, uint32_t end,
                 Partial& block) {
  float key[kHeadDimMax];
  float weights[kKeyBlock];
  block.maximum = -INFINITY;
  for (uint32_t index = begin; index < end; ++index) {
    ReadKey(task, index, key);
    float lanes[16] = {};
    for (uint32_t d = 0; d < task.head_dim; ++d) {
      lanes[d % 16] = std::fma(query[d], key[d], lanes[d % 16]);
    }
    weights[index - begin] = FoldLanes(lanes) * task.scale;
    block.maximum = std::max(block.maximum, weights[index - begin]);
  }
  float sums[16] = {};
  for (uint32_t i = 0; i < end - begin; ++i) {
    weights[i] = Exp2((weights[i] - block.maximum) * kLog2E);
    sums[i % 16] += weights[i];
  }
  block.sum = FoldLanes(sums);
  std::fill_n(block.values, task.head_dim, 0.0f);
  for (uint32_t index = begin; index < end; ++index) {
    ReadKey(task, index, key);
    for (uint32_t d = 0; d < task.head_dim; ++d) {
      block.values[d] = std::fma(weights[index - begin], key[d], block.values[d]);
    }
  }
}

void Fold(const Partial& block, uint32_t head_dim, Partial& running) {
  const float larger = std::max(running.maximum, block.maximum);
  const float keep = Exp2((running.maximum - larger) * kLog2E);
  const float take = Exp2((block.maximum - larger) * kLog2E);
  running.maximum = larger;
  running.sum = std::fma(running.sum, keep, block.sum * take);
  for (uint32_t d = 0; d < head_dim; ++d) {
    running.values[d] = std::fma(running.values[d], keep, block.values[d] * take);
  }
}

}  // namespace

void AttendGathered(const GatheredTask& task) {
  const uint32_t keys = task.window_count + task.selected_count;
  for (uint32_t head = 0; head < task.heads; ++head) {
    const size_t first = size_t{head} * task.head_dim;
    // The sink is a block before the first, without a value.
    Partial running = {std::max(task.sinks[head], kMaximumStart), 1, {}};
    if (std::isnan(task.sinks[head])) running.sum = NAN;
    for (uint32_t begin = 0; begin < keys; begin += kKeyBlock) {
      Partial block;
      AttendBlock(task, task.query + first, begin, std::min(keys, begin + kKeyBlock), block);
      Fold(block, task.head_dim, running);
    }
    for (uint32_t d = 0; d < task.head_dim; ++d) {
      task.out[first + d] = running.values[d] / running.sum;
    }
  }
}

void IndexScores(const IndexTask& task) {
  float key[kHeadDimMax];
  for (uint32_t index = 0; index < task.count; ++index) {
    DecodeRow(task.format, task.keys[index], task.dim, key);
    float score = 0;
    for (uint32_t head = 0; head < task.heads; ++head) {
      float dot = 0;
      for (uint32_t d = 0; d < task.dim; ++d) {
        dot = std::fma(task.query[size_t{head} * task.dim + d], key[d], dot);
      }
      score = std::fma(task.weights[head], dot < 0 ? 0.0f : dot, score);
    }
    task.scores[index] = score * task.factor;
  }
}

}  // namespace plumb::tensor::ref
