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

// ---- softmax ----

// Scores become weights 2^(exponent_scale * (score - maximum)); returns the maximum, and the
// weights' sum in *sum.
inline float WeighScores(float exponent_scale, float* scores, Slots slots, float* sum) {
  const uint32_t begin = slots.begin / 16 * 16;
  const uint32_t end = (slots.end + 15) / 16 * 16;
  for (uint32_t key = begin; key < slots.begin; ++key) scores[key] = -__builtin_inff();
  for (uint32_t key = slots.end; key < end; ++key) scores[key] = -__builtin_inff();
  Floats largest = Set(-__builtin_inff());
  for (uint32_t key = begin; key < end; key += kLanes) largest = Max(largest, Load(scores + key));
  const float maximum = MaxOfLanes(largest);
  const Floats scale = Set(exponent_scale);
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

// One query's sums of a page, of kLanes dimensions from `dim` on.
inline void PutValues(AttentionState& state, uint32_t q, uint32_t dim, Floats sum) {
  float* out = state.target[q] + dim;
  if (!state.fold) {
    Store(out, sum);
  } else {
    Store(out, Fma(Load(out), Set(state.keep[q]), Mul(sum, Set(state.take[q]))));
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
    state.page_maximum[q] =
        WeighScores(task.exponent_scale, state.scores[q], state.slots[q], &state.page_sum[q]);
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

// A page of one KV head. `ahead`: from it to the next page (0 = none).
struct Page {
  const std::byte* bytes;
  ptrdiff_t ahead;
};

#include "tensor/cpu/attention_f16-inl.h"
#include "tensor/cpu/attention_q8-inl.h"

template <typename Pages>
void AttendPages(const AttentionTask& task, AttentionState& state) {
  Pages pages(task);
  float* record = task.partials;
  for (uint32_t index = task.page_begin; index < task.page_end; ++index) {
    const std::byte* bytes = task.pages[index];
    const bool last = index + 1 == task.page_end;
    const Page page = {bytes, last ? 0 : task.pages[index + 1] - bytes};
    FindSlots(task, index * kPageTokens, state);
    pages.Score(task, page, state);
    WeighPage(task, state);
    AimValues(task, record, state);
    pages.AddValues(task, page, state);
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
  StartSums(task.queries, state);
  for (uint32_t q = 0; q < task.queries; ++q) {
    state.weights[q] = state.scores[q];
    state.target[q] = task.out[q];
  }
  if (task.partials == nullptr) ClearValues(task.queries, task.head_dim, task.out);
  if (task.format == KvFormat::kQ8) {
    AttendPages<QuantisedPages>(task, state);
  } else {
    AttendPages<HalfPages>(task, state);
  }
  if (task.partials == nullptr) DivideValues(task.queries, task.head_dim, state, task.out);
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
  if (task.format == KvFormat::kQ8) return StoreQuantised(task);
  for (uint32_t d = 0; d < task.head_dim; d += kLanes) {
    StoreHalfs(task.values + 2 * (size_t{task.slot} * task.head_dim + d), Load(task.value + d));
    uint16_t halfs[kLanes];
    StoreHalfs(halfs, Load(task.key + d));
    for (uint32_t i = 0; i < kLanes; ++i) {
      __builtin_memcpy(task.keys + 2 * (size_t{d + i} * kPageTokens + task.slot), &halfs[i], 2);
    }
  }
}
