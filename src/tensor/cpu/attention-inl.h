// tensor/cpu/attention-inl.h
// Attention of up to kQueriesMax queries over pages of one KV head. Per page: scores, a softmax of
// its own, a weighted sum of values; pages fold left to right. Queries share loads of keys and
// values and nothing else. Formulas: docs/numerics.md; inner loops: attention_tile-inl.h.

#include "tensor/cpu/attention_tile-inl.h"

// Valid slots of a page, for one query. Empty: begin >= end.
struct Slots {
  uint32_t begin, end;
};

constexpr uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }
constexpr uint32_t Most(uint32_t a, uint32_t b) { return a > b ? a : b; }

constexpr uint32_t kChunk = 128;  // rows or columns widened at once

// What a task carries from page to page, and a page's intermediate results.
struct AttentionState {
  alignas(64) float maximum[kQueriesMax];
  alignas(64) float sum[kQueriesMax];
  alignas(64) float keep[kQueriesMax];  // factors of the fold
  alignas(64) float take[kQueriesMax];
  alignas(64) float page_maximum[kQueriesMax];
  alignas(64) float page_sum[kQueriesMax];
  alignas(64) float scores[kQueriesMax][kPageTokens];  // then weights
  const float* weights[kQueriesMax];
  float* target[kQueriesMax];  // of the page's values: out, or a record
  Slots slots[kQueriesMax];
  Slots any;  // valid for some query
  bool fold;
};

inline Floats Exp2(Floats y) {
  const Floats clamped = Max(Set(kExp2Least), y);  // NaN stays
  const Floats shifted = Add(clamped, Set(kExp2Shift));
  const Floats rest = Sub(clamped, Sub(shifted, Set(kExp2Shift)));
  Floats power = Set(kExp2Factors[6]);
#pragma GCC unroll 6
  for (int i = 5; i >= 0; --i) power = Fma(power, rest, Set(kExp2Factors[i]));
  return Mul(power, PowerOfTwo(shifted));
}

// ---- scores ----

// A tile of queries against a tile of keys whose first is `key`; `part` is that tile of B.
template <typename Element, int kQueries, uint32_t kVectors>
void ScoreTile(const float* const* query, uint32_t dims, const Matrix& part,
               float (*scores)[kPageTokens], uint32_t key, bool add) {
  const auto finish = [&](int q, uint32_t v, Floats sum) {
    Store(&scores[q][key + v * kLanes], sum);
  };
  if (!add) {
    SumTile<Element, kQueries, kVectors>(query, 0, dims, part, nullptr, finish);
    return;
  }
  alignas(64) float start[kQueries][kVectors * kLanes];
  for (int q = 0; q < kQueries; ++q) {
    for (uint32_t v = 0; v < kVectors; ++v) {
      Store(&start[q][v * kLanes], Load(&scores[q][key + v * kLanes]));
    }
  }
  SumTile<Element, kQueries, kVectors>(query, 0, dims, part, start, finish);
}

void ScoreDirectly(const AttentionTask& task, const Matrix& keys, AttentionState& state) {
  WithCount(task.queries, [&](auto count) {
    constexpr uint32_t kVectors = DirectVectors<count.kValue>();
    constexpr uint32_t kKeys = kVectors * kLanes;
    for (uint32_t key = state.any.begin / kKeys * kKeys; key < state.any.end; key += kKeys) {
      const Matrix part = {keys.rows + 2 * key, keys.stride, keys.ahead};
      ScoreTile<Halfs, count.kValue, kVectors>(task.query, task.head_dim, part, state.scores, key,
                                               false);
    }
  });
}

void ScoreWidened(const AttentionTask& task, const Matrix& keys, float* widened,
                  AttentionState& state) {
  const uint32_t begin = state.any.begin / kTileColumns * kTileColumns;
  const uint32_t end = (state.any.end + kTileColumns - 1) / kTileColumns * kTileColumns;
  for (uint32_t dim = 0; dim < task.head_dim; dim += kChunk) {
    const uint32_t dims = Least(kChunk, task.head_dim - dim);
    Widen({keys.rows + dim * keys.stride, keys.stride, 0}, 0, dims, begin, end, dims, widened);
    for (uint32_t key = begin; key < end; key += kTileColumns) {
      const float* tile = widened + size_t{key - begin} * dims;
      const Matrix part = {reinterpret_cast<const std::byte*>(tile), 4 * kTileColumns, 0};
      for (uint32_t first = 0; first < task.queries; first += kTileQueries) {
        const uint32_t queries = Least(kTileQueries, task.queries - first);
        if (state.slots[first + queries - 1].end <= key) continue;
        if (state.slots[first].begin >= key + kTileColumns) continue;
        const float* query[kTileQueries];
        for (uint32_t q = 0; q < queries; ++q) query[q] = task.query[first + q] + dim;
        WithCount(queries, [&](auto count) {
          constexpr int kQueries = Least(count.kValue, kTileQueries);
          ScoreTile<Singles, kQueries, kTileVectors>(query, dims, part, state.scores + first, key,
                                                     dim != 0);
        });
      }
    }
  }
}

// ---- softmax ----

// Scores become weights 2^(exponent_scale * (score - maximum)); returns the maximum, and the
// weights' sum in *sum.
inline float WeighKeys(const AttentionTask& task, float* scores, Slots slots, float* sum) {
  const uint32_t begin = slots.begin / 16 * 16;
  const uint32_t end = (slots.end + 15) / 16 * 16;
  if (task.cap != 0) {
    for (uint32_t key = begin; key < end; key += kLanes) {
      const Floats bent = Tanh(Mul(Load(scores + key), Set(task.cap_scale)));
      Store(scores + key, Mul(bent, Set(task.cap)));
    }
  }
  for (uint32_t key = begin; key < slots.begin; ++key) scores[key] = -__builtin_inff();
  for (uint32_t key = slots.end; key < end; ++key) scores[key] = -__builtin_inff();
  Floats largest = Set(-__builtin_inff());
  for (uint32_t key = begin; key < end; key += kLanes) largest = Max(largest, Load(scores + key));
  const float maximum = MaxOfLanes(largest);
  const Floats scale = Set(task.exponent_scale);
  Floats sums[16 / kLanes];
  for (Floats& part : sums) part = Zero();
  for (uint32_t key = begin; key < end; key += 16) {
#pragma GCC unroll 2
    for (uint32_t part = 0; part < 16 / kLanes; ++part) {
      float* p = scores + key + part * kLanes;
      const Floats weight = Exp2(Mul(Sub(Load(p), Set(maximum)), scale));  // of -inf: +0
      Store(p, weight);
      sums[part] = Add(sums[part], weight);
    }
  }
  *sum = SumOfSixteen(sums);
  return maximum;
}

// Folds the page's maxima and sums into the running ones, and finds the factors for the values.
inline void FoldSums(uint32_t queries, float exponent_scale, const float* page_maximum,
                     const float* page_sum, AttentionState& state) {
  const Floats scale = Set(exponent_scale);
  for (uint32_t q = 0; q < queries; q += kLanes) {
    const Floats before = Load(state.maximum + q);
    const Floats page = Load(page_maximum + q);
    const Floats larger = Max(before, page);
    const Floats keep = Exp2(Mul(Sub(before, larger), scale));
    const Floats take = Exp2(Mul(Sub(page, larger), scale));
    Store(state.maximum + q, larger);
    Store(state.keep + q, keep);
    Store(state.take + q, take);
    Store(state.sum + q, Fma(Load(state.sum + q), keep, Mul(Load(page_sum + q), take)));
  }
}

// Padding included, so that whole vectors are defined.
inline void StartSums(uint32_t queries, AttentionState& state) {
  for (uint32_t q = 0; q < queries; q += kLanes) {
    Store(state.maximum + q, Set(kMaximumStart));
    Store(state.page_maximum + q, Set(kMaximumStart));
    Store(state.sum + q, Zero());
    Store(state.page_sum + q, Zero());
  }
}

// ---- values ----

// A tile of queries and of the dimensions from `dim` on; `part` is that tile of B.
template <typename Element, int kQueries, uint32_t kVectors>
void ValueTile(const Matrix& part, uint32_t first, uint32_t dim, AttentionState& state) {
  const Slots* slots = state.slots + first;
  const float* const* weights = state.weights + first;
  const auto put = [&](int q, uint32_t v, Floats sum) {
    float* out = state.target[first + q] + dim + v * kLanes;
    if (!state.fold) {
      Store(out, sum);
    } else {
      Store(out, Fma(Load(out), Set(state.keep[first + q]), Mul(sum, Set(state.take[first + q]))));
    }
  };
  const Slots least = slots[0];  // begins and ends ascend
  const Slots most = slots[kQueries - 1];
  if (least.begin == most.begin && least.end == most.end) {
    if (least.begin >= least.end) return;
    SumTile<Element, kQueries, kVectors>(weights, least.begin, least.end, part, nullptr, put);
    return;
  }
  // Slots valid for all are summed together, those before and after for each query alone.
  Slots common = {most.begin, least.end};
  if (common.begin >= common.end) common = {kPageTokens, kPageTokens};
  alignas(64) float sums[kQueries][kVectors * kLanes];
  for (int i = 0; i < kQueries; ++i) {
    SumTile<Element, 1, kVectors>(
        weights + i, slots[i].begin, Least(common.begin, slots[i].end), part, nullptr,
        [&](int, uint32_t v, Floats sum) { Store(&sums[i][v * kLanes], sum); });
  }
  SumTile<Element, kQueries, kVectors>(
      weights, common.begin, common.end, part, sums,
      [&](int q, uint32_t v, Floats sum) { Store(&sums[q][v * kLanes], sum); });
  for (int i = 0; i < kQueries; ++i) {
    if (slots[i].begin >= slots[i].end) continue;
    SumTile<Element, 1, kVectors>(weights + i, Most(common.end, slots[i].begin), slots[i].end, part,
                                  sums + i, [&](int, uint32_t v, Floats sum) { put(i, v, sum); });
  }
}

// Dimensions [dim, head_dim), in tiles of kVectors and then of fewer vectors.
template <int kQueries, uint32_t kVectors>
void ValuesDirectly(const Matrix& values, uint32_t dim, uint32_t head_dim, AttentionState& state) {
  for (; dim + kVectors * kLanes <= head_dim; dim += kVectors * kLanes) {
    ValueTile<Halfs, kQueries, kVectors>({values.rows + 2 * dim, values.stride, values.ahead}, 0,
                                         dim, state);
  }
  if constexpr (kVectors > 1) {
    if (dim < head_dim) ValuesDirectly<kQueries, kVectors / 2>(values, dim, head_dim, state);
  }
}

void ValuesWidened(const AttentionTask& task, const Matrix& values, float* widened,
                   AttentionState& state) {
  for (uint32_t chunk = 0; chunk < task.head_dim; chunk += kChunk) {
    const uint32_t chunk_end = Least(chunk + kChunk, task.head_dim);
    Widen(values, state.any.begin, state.any.end, chunk, chunk_end, kPageTokens, widened);
    for (uint32_t dim = chunk; dim < chunk_end; dim += kTileColumns) {
      const float* tile = widened + size_t{dim - chunk} * kPageTokens;
      const Matrix part = {reinterpret_cast<const std::byte*>(tile), 4 * kTileColumns, 0};
      for (uint32_t first = 0; first < task.queries; first += kTileQueries) {
        WithCount(Least(kTileQueries, task.queries - first), [&](auto count) {
          constexpr int kQueries = Least(count.kValue, kTileQueries);
          if (kLanes == 8 || dim + kLanes < chunk_end) {
            ValueTile<Singles, kQueries, kTileVectors>(part, first, dim, state);
          } else {
            ValueTile<Singles, kQueries, 1>(part, first, dim, state);
          }
        });
      }
    }
  }
}

// ---- pages ----

// Which slots of the page at position `base` each query sees.
inline void FindSlots(const AttentionTask& task, uint32_t base, AttentionState& state) {
  state.any = {kPageTokens, 0};
  for (uint32_t q = 0; q < task.queries; ++q) {
    const uint32_t begin = Least(Most(task.key_begin[q], base) - base, kPageTokens);
    const uint32_t end = Least(Most(task.key_end[q], base) - base, kPageTokens);
    state.slots[q] = {begin, end};
    if (begin < end) state.any = {Least(state.any.begin, begin), Most(state.any.end, end)};
  }
}

void WeighPage(const AttentionTask& task, AttentionState& state) {
  for (uint32_t q = 0; q < task.queries; ++q) {
    state.page_maximum[q] = kMaximumStart;
    state.page_sum[q] = 0;
    if (state.slots[q].begin >= state.slots[q].end) continue;
    state.page_maximum[q] = WeighKeys(task, state.scores[q], state.slots[q], &state.page_sum[q]);
  }
}

// Where the page's values go, and how.
void AimValues(const AttentionTask& task, float* record, AttentionState& state) {
  state.fold = record == nullptr;
  if (state.fold) {
    FoldSums(task.queries, task.exponent_scale, state.page_maximum, state.page_sum, state);
    return;
  }
  const PartialLayout layout = {task.queries, task.head_dim};
  for (uint32_t q = 0; q < task.queries; q += kLanes) {
    Store(record + layout.maxima() + q, Load(state.page_maximum + q));
    Store(record + layout.sums() + q, Load(state.page_sum + q));
  }
  for (uint32_t q = 0; q < task.queries; ++q) {
    state.target[q] = record + layout.values() + size_t{q} * task.head_dim;
  }
}

void AttendPages(const AttentionTask& task, float* widened, AttentionState& state) {
  float* record = task.partials;
  for (uint32_t index = task.page_begin; index < task.page_end; ++index) {
    FindSlots(task, index * kPageTokens, state);
    const std::byte* page = task.pages[index];
    const bool last = index + 1 == task.page_end;
    const ptrdiff_t ahead = last ? 0 : task.pages[index + 1] - page;
    const Matrix keys = {page + task.keys_offset, size_t{2} * kPageTokens, ahead};
    const Matrix values = {page + task.values_offset, size_t{2} * task.head_dim, ahead};
    const bool direct = task.queries <= kDirectQueries;
    if (direct) {
      ScoreDirectly(task, keys, state);
    } else {
      ScoreWidened(task, keys, widened, state);
    }
    WeighPage(task, state);
    AimValues(task, record, state);
    if (direct) {
      WithCount(task.queries, [&](auto count) {
        ValuesDirectly<count.kValue, DirectVectors<count.kValue>()>(values, 0, task.head_dim,
                                                                    state);
      });
    } else {
      ValuesWidened(task, values, widened, state);
    }
    if (record != nullptr) record += PartialLayout{task.queries, task.head_dim}.floats();
  }
}

inline void ClearValues(uint32_t queries, uint32_t head_dim, float* const* out) {
  for (uint32_t q = 0; q < queries; ++q) {
    for (uint32_t d = 0; d < head_dim; d += kLanes) Store(out[q] + d, Zero());
  }
}

inline void DivideValues(uint32_t queries, uint32_t head_dim, const AttentionState& state,
                         float* const* out) {
  for (uint32_t q = 0; q < queries; ++q) {
    const Floats sum = Set(state.sum[q]);
    for (uint32_t d = 0; d < head_dim; d += kLanes) Store(out[q] + d, Div(Load(out[q] + d), sum));
  }
}

void Attention(const AttentionTask& task) {
  AttentionState state;
  alignas(64) float widened[kChunk * kPageTokens];
  StartSums(task.queries, state);
  for (uint32_t q = 0; q < task.queries; ++q) {
    state.weights[q] = state.scores[q];
    state.target[q] = task.out[q];
  }
  if (task.partials != nullptr) {
    AttendPages(task, widened, state);
    return;
  }
  ClearValues(task.queries, task.head_dim, task.out);
  AttendPages(task, widened, state);
  DivideValues(task.queries, task.head_dim, state, task.out);
}

void FoldPages(const FoldTask& task) {
  AttentionState state;
  StartSums(task.queries, state);
  ClearValues(task.queries, task.head_dim, task.out);
  const PartialLayout layout = {task.queries, task.head_dim};
  for (uint32_t page = 0; page < task.pages; ++page) {
    const float* record = task.partials + page * layout.floats();
    const float* sums = record + layout.sums();
    FoldSums(task.queries, task.exponent_scale, record + layout.maxima(), sums, state);
    for (uint32_t q = 0; q < task.queries; ++q) {
      if (sums[q] == 0) continue;  // saw nothing of this page
      const Floats keep = Set(state.keep[q]);
      const Floats take = Set(state.take[q]);
      const float* value = record + layout.values() + size_t{q} * task.head_dim;
      for (uint32_t d = 0; d < task.head_dim; d += kLanes) {
        float* out = task.out[q] + d;
        Store(out, Fma(Load(out), keep, Mul(Load(value + d), take)));
      }
    }
  }
  DivideValues(task.queries, task.head_dim, state, task.out);
}

void StoreKeyValue(const StoreTask& task) {
  for (uint32_t d = 0; d < task.head_dim; d += kLanes) {
    StoreHalfs(task.values + 2 * (size_t{task.slot} * task.head_dim + d), Load(task.value + d));
    uint16_t halfs[kLanes];
    StoreHalfs(halfs, Load(task.key + d));
    for (uint32_t i = 0; i < kLanes; ++i) {
      __builtin_memcpy(task.keys + 2 * (size_t{d + i} * kPageTokens + task.slot), &halfs[i], 2);
    }
  }
}
