// tensor/ref/attention.cc
// The judge of attention: one query, one page, one key at a time (docs/numerics.md, "Attention").
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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

// Rounds values to integers in [-most, most]; returns the scale that undoes it.
float Quantise(const float* x, uint32_t count, float most, int32_t* quants) {
  float magnitude = 0;
  bool finite = true;
  for (uint32_t i = 0; i < count; ++i) {
    finite = finite && std::isfinite(x[i]);
    magnitude = std::max(magnitude, std::fabs(x[i]));
  }
  const bool zero = !finite || magnitude < kQuantLeast;
  for (uint32_t i = 0; i < count; ++i) {
    quants[i] = zero ? 0 : static_cast<int32_t>(std::nearbyint(x[i] * (most / magnitude)));
  }
  if (!finite) return NAN;
  return zero ? 0.0f : magnitude / most;
}

// Byte (row, column) of a plane of `columns` columns, whose rows lie in pairs.
size_t PairedAt(uint32_t row, uint32_t columns, uint32_t column) {
  return (size_t{row / 2} * columns + column) * 2 + row % 2;
}

// The query's product with each of the slots [begin, end).
void ScoreHalfs(const AttentionTask& task, const float* query, const std::byte* page,
                uint32_t begin, uint32_t end, float* scores) {
  const std::byte* keys = page + task.keys_offset;
  for (uint32_t key = begin; key < end; ++key) {
    scores[key] = 0;
    for (uint32_t d = 0; d < task.head_dim; ++d) {
      const float element = LoadHalf(keys + 2 * (size_t{d} * kPageTokens + key));
      scores[key] = std::fma(query[d], element, scores[key]);
    }
  }
}

void ScoreQuants(const AttentionTask& task, const float* query, const std::byte* page,
                 uint32_t begin, uint32_t end, float* scores) {
  const std::byte* keys = page + task.keys_offset;
  int32_t quants[kHeadDimMax];
  const float scale = Quantise(query, task.head_dim, kFactorMax, quants);
  for (uint32_t key = begin; key < end; ++key) {
    int32_t dot = 0;
    for (uint32_t d = 0; d < task.head_dim; ++d) {
      dot += quants[d] * static_cast<int8_t>(keys[PairedAt(d, kPageTokens, key)]);
    }
    scores[key] = static_cast<float>(dot) *
                  (scale * LoadFloat(page + task.key_scales_offset + sizeof(float) * key));
  }
}

// The sum of the slots' values times their weights.
void SumHalfs(const AttentionTask& task, const float* weights, const std::byte* page,
              uint32_t begin, uint32_t end, float* sums) {
  const std::byte* values = page + task.values_offset;
  for (uint32_t d = 0; d < task.head_dim; ++d) {
    sums[d] = 0;
    for (uint32_t key = begin; key < end; ++key) {
      const float element = LoadHalf(values + 2 * (size_t{key} * task.head_dim + d));
      sums[d] = std::fma(weights[key], element, sums[d]);
    }
  }
}

void SumQuants(const AttentionTask& task, const float* weights, const std::byte* page,
               uint32_t begin, uint32_t end, float* sums) {
  const std::byte* values = page + task.values_offset;
  float scaled[kPageTokens];
  for (uint32_t key = begin; key < end; ++key) {
    scaled[key] = weights[key] * LoadFloat(page + task.value_scales_offset + sizeof(float) * key);
  }
  int32_t quants[kPageTokens];
  const float scale = Quantise(scaled + begin, end - begin, kFactorMax, quants + begin);
  for (uint32_t d = 0; d < task.head_dim; ++d) {
    int32_t sum = 0;
    for (uint32_t key = begin; key < end; ++key) {
      sum += quants[key] * static_cast<int8_t>(values[PairedAt(key, task.head_dim, d)]);
    }
    sums[d] = static_cast<float>(sum) * scale;
  }
}

// Slots [begin, end) of one page, at least one.
void AttendPage(const AttentionTask& task, const float* query, const std::byte* page,
                uint32_t begin, uint32_t end, Partial& partial) {
  const bool quants = task.format == KvFormat::kQ8;
  float weights[kPageTokens];
  (quants ? ScoreQuants : ScoreHalfs)(task, query, page, begin, end, weights);
  partial.maximum = -INFINITY;
  for (uint32_t key = begin; key < end; ++key) {
    partial.maximum = std::max(partial.maximum, weights[key]);
  }
  float lanes[16] = {};
  for (uint32_t key = begin; key < end; ++key) {
    weights[key] = Exp2((weights[key] - partial.maximum) * task.exponent_scale);
    lanes[key % 16] += weights[key];
  }
  partial.sum = FoldLanes(lanes);
  (quants ? SumQuants : SumHalfs)(task, weights, page, begin, end, partial.values);
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

float Exp2(float y) {
  if (y < kExp2Least) y = kExp2Least;
  const float shifted = y + kExp2Shift;
  const float rest = y - (shifted - kExp2Shift);
  float power = kExp2Factors[6];
  for (int i = 5; i >= 0; --i) power = std::fma(power, rest, kExp2Factors[i]);
  return power * std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
}

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
  const uint32_t dims = task.head_dim;
  if (task.format == KvFormat::kQ8) {
    int32_t keys[kHeadDimMax], values[kHeadDimMax];
    const float key_scale = Quantise(task.key, dims, kKvQuantMax, keys);
    const float value_scale = Quantise(task.value, dims, kKvQuantMax, values);
    for (uint32_t d = 0; d < dims; ++d) {
      task.keys[PairedAt(d, kPageTokens, task.slot)] = static_cast<std::byte>(keys[d]);
      task.values[PairedAt(task.slot, dims, d)] = static_cast<std::byte>(values[d]);
    }
    std::memcpy(task.key_scales + sizeof(float) * task.slot, &key_scale, sizeof(float));
    std::memcpy(task.value_scales + sizeof(float) * task.slot, &value_scale, sizeof(float));
    return;
  }
  for (uint32_t d = 0; d < dims; ++d) {
    const uint16_t key = FloatToHalf(task.key[d]);
    const uint16_t value = FloatToHalf(task.value[d]);
    std::memcpy(task.keys + 2 * (size_t{d} * kPageTokens + task.slot), &key, 2);
    std::memcpy(task.values + 2 * (size_t{task.slot} * dims + d), &value, 2);
  }
}

}  // namespace plumb::tensor::ref
