// tensor/cpu/attention-inl.h
// Attention of up to kTileRowsMax queries over the pages of one KV head. Per page: scores with a
// lane per key, a softmax of its own, a weighted sum of values with a lane per dimension; pages
// fold left to right. Queries share loads of keys and values and nothing else. Formulas:
// docs/numerics.md.

// Valid slots of a page, for one query.
struct Slots {
  uint32_t begin, end;
};

inline uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }
inline uint32_t Most(uint32_t a, uint32_t b) { return a > b ? a : b; }

// scores[q][key] = sum over d in order of query[q][d] * key[d], for whole vectors around `slots`.
template <int kQueries>
void ScoreKeys(const float* const* query, const std::byte* keys, uint32_t head_dim, Slots slots,
               float (*scores)[kPageTokens]) {
  constexpr uint32_t kVectors = kQueries <= 2 ? 4 : 2;
  constexpr uint32_t kKeys = kVectors * kLanes;
  for (uint32_t key = slots.begin / kKeys * kKeys; key < slots.end; key += kKeys) {
    Floats sums[kQueries][kVectors];
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kVectors; ++v) sums[q][v] = Zero();
    }
    const std::byte* column = keys + 2 * key;
    for (uint32_t d = 0; d < head_dim; ++d, column += 2 * kPageTokens) {
      Floats loaded[kVectors];
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kVectors; ++v) loaded[v] = LoadHalfs(column + 2 * kLanes * v);
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) {
        const Floats value = Set(query[q][d]);
#pragma GCC unroll 4
        for (uint32_t v = 0; v < kVectors; ++v) sums[q][v] = Fma(value, loaded[v], sums[q][v]);
      }
    }
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kVectors; ++v) Store(&scores[q][key + v * kLanes], sums[q][v]);
    }
  }
}

// Scores become weights exp(scale * score - maximum); returns the maximum, and their sum in *sum.
inline float WeighKeys(float* scores, Slots slots, float scale, float* sum) {
  const uint32_t begin = slots.begin / 16 * 16;
  const uint32_t end = (slots.end + 15) / 16 * 16;
  for (uint32_t key = begin; key < slots.begin; ++key) scores[key] = -__builtin_inff();
  for (uint32_t key = slots.end; key < end; ++key) scores[key] = -__builtin_inff();
  Floats largest = Set(-__builtin_inff());
  for (uint32_t key = begin; key < end; key += kLanes) {
    const Floats scaled = Mul(Load(scores + key), Set(scale));
    Store(scores + key, scaled);
    largest = Max(largest, scaled);
  }
  alignas(64) float lanes[16];
  Store(lanes, largest);
  float maximum = lanes[0];
  for (uint32_t i = 1; i < kLanes; ++i) maximum = lanes[i] > maximum ? lanes[i] : maximum;

  Floats sums[16 / kLanes];
  for (Floats& part : sums) part = Zero();
  for (uint32_t key = begin; key < end; key += 16) {
    for (uint32_t part = 0; part < 16 / kLanes; ++part) {
      float* p = scores + key + part * kLanes;
      const Floats weight = Exp(Sub(Load(p), Set(maximum)));  // exp(-inf) = +0 adds nothing
      Store(p, weight);
      sums[part] = Add(sums[part], weight);
    }
  }
  for (uint32_t part = 0; part < 16 / kLanes; ++part) Store(lanes + part * kLanes, sums[part]);
  for (uint32_t width = 8; width > 0; width /= 2) {
    for (uint32_t i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  }
  *sum = lanes[0];
  return maximum;
}

// partial[q][d] += weight[q][key] * value[key][d] over `slots` in order, for kVectors of dims.
template <int kQueries, uint32_t kVectors>
inline void AddValues(const float (*weights)[kPageTokens], const std::byte* values,
                      uint32_t head_dim, uint32_t dim, Slots slots, float (*partial)[kHeadDimMax]) {
  Floats sums[kQueries][kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
    for (uint32_t v = 0; v < kVectors; ++v) sums[q][v] = Load(&partial[q][dim + v * kLanes]);
  }
  const std::byte* row = values + 2 * (size_t{slots.begin} * head_dim + dim);
  for (uint32_t key = slots.begin; key < slots.end; ++key, row += 2 * head_dim) {
    Floats loaded[kVectors];
#pragma GCC unroll 8
    for (uint32_t v = 0; v < kVectors; ++v) loaded[v] = LoadHalfs(row + 2 * kLanes * v);
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      const Floats weight = Set(weights[q][key]);
#pragma GCC unroll 8
      for (uint32_t v = 0; v < kVectors; ++v) sums[q][v] = Fma(weight, loaded[v], sums[q][v]);
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
    for (uint32_t v = 0; v < kVectors; ++v) Store(&partial[q][dim + v * kLanes], sums[q][v]);
  }
}

template <int kQueries>
void SumValues(const float (*weights)[kPageTokens], const std::byte* values, uint32_t head_dim,
               Slots slots, float (*partial)[kHeadDimMax]) {
  if (slots.begin >= slots.end) return;
  constexpr uint32_t kVectors = kQueries > 4 ? 2 : kQueries > 2 ? 32 / kLanes : 64 / kLanes;
  constexpr uint32_t kDims = (kTileRowsMax == 4 && kQueries > 2 ? 2 : kVectors) * kLanes;
  uint32_t dim = 0;
  for (; dim + kDims <= head_dim; dim += kDims) {
    AddValues<kQueries, kDims / kLanes>(weights, values, head_dim, dim, slots, partial);
  }
  for (; dim < head_dim; dim += kLanes) {
    AddValues<kQueries, 1>(weights, values, head_dim, dim, slots, partial);
  }
}

// The running softmax of one query.
struct Running {
  float maximum, sum;
  bool started;
};

inline void FoldPage(Running& run, float maximum, float sum, const float* partial,
                     uint32_t head_dim, float* out) {
  if (!run.started) {
    run = {maximum, sum, true};
    for (uint32_t d = 0; d < head_dim; d += kLanes) Store(out + d, Load(partial + d));
    return;
  }
  const float larger = maximum > run.maximum ? maximum : run.maximum;
  const float keep = ExactExp(run.maximum - larger);
  const float take = ExactExp(maximum - larger);
  run.maximum = larger;
  run.sum = __builtin_fmaf(run.sum, keep, sum * take);
  for (uint32_t d = 0; d < head_dim; d += kLanes) {
    Store(out + d, Fma(Load(out + d), Set(keep), Mul(Load(partial + d), Set(take))));
  }
}

template <int kQueries>
void AttendTile(const AttentionTask& task, uint32_t first) {
  alignas(64) float scores[kQueries][kPageTokens];
  alignas(64) float partial[kQueries][kHeadDimMax];
  Running running[kQueries] = {};
  const float* const* query = task.query + first;
  uint32_t key_begin = UINT32_MAX;
  uint32_t key_end = 0;
  for (int q = 0; q < kQueries; ++q) {
    key_begin = Least(key_begin, task.key_begin[first + q]);
    key_end = Most(key_end, task.key_end[first + q]);
  }
  for (uint32_t base = key_begin / kPageTokens * kPageTokens; base < key_end; base += kPageTokens) {
    const std::byte* page = task.pages[base / kPageTokens];
    const std::byte* values = page + task.values_offset;
    Slots slots[kQueries];
    Slots any = {kPageTokens, 0};     // valid for some query: scored
    Slots common = {0, kPageTokens};  // valid for all: summed together
    for (int q = 0; q < kQueries; ++q) {
      const uint32_t begin = Most(task.key_begin[first + q], base) - base;
      const uint32_t end = Least(Most(task.key_end[first + q], base) - base, kPageTokens);
      slots[q] = {Least(begin, kPageTokens), end};
      common = {Most(common.begin, slots[q].begin), Least(common.end, end)};
      if (slots[q].begin < end) any = {Least(any.begin, begin), Most(any.end, end)};
    }
    if (common.begin >= common.end) common = {kPageTokens, kPageTokens};
    ScoreKeys<kQueries>(query, page + task.keys_offset, task.head_dim, any, scores);
    float maximum[kQueries];
    float sum[kQueries];
    for (int q = 0; q < kQueries; ++q) {
      if (slots[q].begin >= slots[q].end) continue;
      maximum[q] = WeighKeys(scores[q], slots[q], task.scale, &sum[q]);
      for (uint32_t d = 0; d < task.head_dim; d += kLanes) Store(&partial[q][d], Zero());
      SumValues<1>(&scores[q], values, task.head_dim,
                   {slots[q].begin, Least(common.begin, slots[q].end)}, &partial[q]);
    }
    SumValues<kQueries>(scores, values, task.head_dim, common, partial);
    for (int q = 0; q < kQueries; ++q) {
      if (slots[q].begin >= slots[q].end) continue;
      SumValues<1>(&scores[q], values, task.head_dim,
                   {Most(common.end, slots[q].begin), slots[q].end}, &partial[q]);
      FoldPage(running[q], maximum[q], sum[q], partial[q], task.head_dim, task.out[first + q]);
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    float* out = task.out[first + q];
    for (uint32_t d = 0; d < task.head_dim; d += kLanes) {
      Store(out + d, Div(Load(out + d), Set(running[q].sum)));
    }
  }
}

void Attention(const AttentionTask& task) {
  for (uint32_t first = 0; first < task.queries;) {
    const uint32_t queries = Least(task.queries - first, kTileRowsMax);
    switch (queries) {
      case 1:
        AttendTile<1>(task, first);
        break;
      case 2:
        AttendTile<2>(task, first);
        break;
      case 3:
        AttendTile<3>(task, first);
        break;
      case 4:
        AttendTile<4>(task, first);
        break;
      case 5:
        AttendTile<(kTileRowsMax > 4 ? 5 : 1)>(task, first);
        break;
      case 6:
        AttendTile<(kTileRowsMax > 4 ? 6 : 1)>(task, first);
        break;
      case 7:
        AttendTile<(kTileRowsMax > 4 ? 7 : 1)>(task, first);
        break;
      default:
        AttendTile<kTileRowsMax>(task, first);
        break;
    }
    first += queries;
  }
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
