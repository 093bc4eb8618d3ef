// tensor/ref/attention.cc
// The judge of attention: one query, one page, one key at a time (docs/numerics.md, "Attention").
#include <cmath>
#include <cstring>

#include "tensor/exact_math.h"
#include "tensor/float16.h"
#include "tensor/kv_page.h"
#include "tensor/ref/reference.h"

namespace plumb::tensor::ref {
namespace {

struct Partial {
  float maximum;
  float sum;
  float values[kHeadDimMax];
};

// Slots [begin, end) of one page.
void AttendPage(const AttentionTask& task, const float* query, const std::byte* page,
                uint32_t begin, uint32_t end, Partial& partial) {
  const std::byte* keys = page + task.keys_offset;
  const std::byte* values = page + task.values_offset;
  float weights[kPageTokens];
  partial.maximum = -INFINITY;
  for (uint32_t key = begin; key < end; ++key) {
    float score = 0;
    for (uint32_t d = 0; d < task.head_dim; ++d) {
      score = std::fma(query[d], LoadHalf(keys + 2 * (size_t{d} * kPageTokens + key)), score);
    }
    weights[key] = score * task.scale;
    if (weights[key] > partial.maximum) partial.maximum = weights[key];
  }
  float lanes[16] = {};
  for (uint32_t key = begin; key < end; ++key) {
    weights[key] = ExactExp(weights[key] - partial.maximum);
    lanes[key % 16] += weights[key];
  }
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

void AttendQuery(const AttentionTask& task, uint32_t q) {
  const uint32_t key_begin = task.key_begin[q];
  const uint32_t key_end = task.key_end[q];
  float* out = task.out[q];
  float maximum = 0;
  float sum = 0;
  const uint32_t first_page = key_begin / kPageTokens;
  for (uint32_t index = first_page; index * kPageTokens < key_end; ++index) {
    const uint32_t base = index * kPageTokens;
    const uint32_t begin = key_begin > base ? key_begin - base : 0;
    const uint32_t end = key_end - base < kPageTokens ? key_end - base : kPageTokens;
    Partial partial;
    AttendPage(task, task.query[q], task.pages[index], begin, end, partial);
    if (index == first_page) {
      maximum = partial.maximum;
      sum = partial.sum;
      for (uint32_t d = 0; d < task.head_dim; ++d) out[d] = partial.values[d];
      continue;
    }
    const float larger = partial.maximum > maximum ? partial.maximum : maximum;
    const float keep = ExactExp(maximum - larger);
    const float take = ExactExp(partial.maximum - larger);
    maximum = larger;
    sum = std::fma(sum, keep, partial.sum * take);
    for (uint32_t d = 0; d < task.head_dim; ++d) {
      out[d] = std::fma(out[d], keep, partial.values[d] * take);
    }
  }
  for (uint32_t d = 0; d < task.head_dim; ++d) out[d] = out[d] / sum;
}

}  // namespace

void Attention(const AttentionTask& task) {
  for (uint32_t q = 0; q < task.queries; ++q) AttendQuery(task, q);
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
