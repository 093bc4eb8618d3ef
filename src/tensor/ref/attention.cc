// tensor/ref/attention.cc
// The judge of attention: one query, one page, one key at a time (docs/numerics.md, "Attention").
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tensor/exact_math.h"
#include "tensor/float16.h"
#include "tensor/kv_page.h"
#include "tensor/ref/reference.h"

namespace plumb::tensor::ref {
namespace {

// One query's share of one page, or of all pages so far.
struct Partial {
  float maximum = kMaximumStart;
  float sum = 0;
  float values[kHeadDimMax] = {};
};

float Exp2(float y) {
  if (y < kExp2Least) y = kExp2Least;
  const float shifted = y + kExp2Shift;
  const float rest = y - (shifted - kExp2Shift);
  float power = kExp2Factors[6];
  for (int i = 5; i >= 0; --i) power = std::fma(power, rest, kExp2Factors[i]);
  return power * std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
}

float Score(const AttentionTask& task, const float* query, const std::byte* keys, uint32_t key) {
  float score = 0;
  for (uint32_t d = 0; d < task.head_dim; ++d) {
    score = std::fma(query[d], LoadHalf(keys + 2 * (size_t{d} * kPageTokens + key)), score);
  }
  if (task.cap == 0) return score;
  return ExactTanh(score * task.cap_scale) * task.cap;
}

// Slots [begin, end) of one page, at least one.
void AttendPage(const AttentionTask& task, const float* query, const std::byte* page,
                uint32_t begin, uint32_t end, Partial& partial) {
  const std::byte* values = page + task.values_offset;
  float weights[kPageTokens];
  float maximum = -INFINITY;
  for (uint32_t key = begin; key < end; ++key) {
    weights[key] = Score(task, query, page + task.keys_offset, key);
    if (weights[key] > maximum) maximum = weights[key];
  }
  float lanes[16] = {};
  for (uint32_t key = begin; key < end; ++key) {
    weights[key] = Exp2((weights[key] - maximum) * task.exponent_scale);
    lanes[key % 16] += weights[key];
  }
  partial.maximum = maximum;
  partial.sum = FoldLanes(lanes);
  for (uint32_t d = 0; d < task.head_dim; ++d) {
    float value = 0;
    for (uint32_t key = begin; key < end; ++key) {
      value =
          std::fma(weights[key], LoadHalf(values + 2 * (size_t{key} * task.head_dim + d)), value);
    }
    partial.values[d] = value;
  }
}

void Fold(float exponent_scale, uint32_t head_dim, const Partial& page, Partial& running) {
  const float larger = page.maximum > running.maximum ? page.maximum : running.maximum;
  const float keep = Exp2((running.maximum - larger) * exponent_scale);
  const float take = Exp2((page.maximum - larger) * exponent_scale);
  running.maximum = larger;
  running.sum = std::fma(running.sum, keep, page.sum * take);
  for (uint32_t d = 0; d < head_dim; ++d) {
    running.values[d] = std::fma(running.values[d], keep, page.values[d] * take);
  }
}

void Finish(const Partial& running, uint32_t head_dim, float* out) {
  for (uint32_t d = 0; d < head_dim; ++d) out[d] = running.values[d] / running.sum;
}

void AttendQuery(const AttentionTask& task, uint32_t q) {
  const PartialLayout layout = {task.queries, task.head_dim};
  Partial running;
  for (uint32_t index = task.page_begin; index < task.page_end; ++index) {
    const uint32_t base = index * kPageTokens;
    const uint32_t key_begin = std::max(task.key_begin[q], base);
    const uint32_t key_end = std::min(task.key_end[q], base + kPageTokens);
    Partial partial;
    if (key_begin < key_end) {
      AttendPage(task, task.query[q], task.pages[index], key_begin - base, key_end - base, partial);
    }
    if (task.partials != nullptr) {
      float* record = task.partials + (index - task.page_begin) * layout.floats();
      record[layout.maxima() + q] = partial.maximum;
      record[layout.sums() + q] = partial.sum;
      std::memcpy(record + layout.values() + size_t{q} * task.head_dim, partial.values,
                  sizeof(float) * task.head_dim);
    } else if (key_begin < key_end) {
      Fold(task.exponent_scale, task.head_dim, partial, running);
    }
  }
  if (task.partials == nullptr) Finish(running, task.head_dim, task.out[q]);
}

}  // namespace

void Attention(const AttentionTask& task) {
  for (uint32_t q = 0; q < task.queries; ++q) AttendQuery(task, q);
}

void FoldPages(const FoldTask& task) {
  const PartialLayout layout = {task.queries, task.head_dim};
  for (uint32_t q = 0; q < task.queries; ++q) {
    Partial running;
    for (uint32_t page = 0; page < task.pages; ++page) {
      const float* record = task.partials + page * layout.floats();
      Partial partial;
      partial.maximum = record[layout.maxima() + q];
      partial.sum = record[layout.sums() + q];
      if (partial.sum == 0) continue;
      std::memcpy(partial.values, record + layout.values() + size_t{q} * task.head_dim,
                  sizeof(float) * task.head_dim);
      Fold(task.exponent_scale, task.head_dim, partial, running);
    }
    Finish(running, task.head_dim, task.out[q]);
  }
}

void StoreKeyValue(const StoreTask& task) {
  for (uint32_t d = 0; d < task.head_dim; ++d) {
    const uint16_t key = FloatToHalf(task.key[d]);
    const uint16_t value = FloatToHalf(task.value[d]);
    std::memcpy(task.keys + 2 * (size_t{d} * kPageTokens + task.slot), &key, 2);
    std::memcpy(task.values + 2 * (size_t{task.slot} * task.head_dim + d), &value, 2);
  }
}

}  // namespace plumb::tensor::ref
