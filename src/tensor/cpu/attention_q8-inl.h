// tensor/cpu/attention_q8-inl.h
// Pages of int8: queries and weights are rounded to int16, so that both products are exact sums of
// integers, in any order, at twice the rate of f32. Stale slots have the weight 0; their bytes are
// integers whatever they hold, so only their scales must be kept out. Part of attention-inl.h.

// Factors of a task that multiply bytes, two int16 in each int32.
struct QuantisedFactors {
  alignas(64) int32_t queries[kQueriesMax][kHeadDimMax / 2];
  alignas(64) int32_t weights[kQueriesMax][kPageTokens / 2];
  const int32_t* query[kQueriesMax];
  const int32_t* weight[kQueriesMax];
  float query_scale[kQueriesMax];
  float weight_scale[kQueriesMax];
};

struct QuantScale {
  float scale;
  float inverse;  // 0: all quants are 0
};

// How `count` floats (a multiple of 16) are rounded to [-most, most].
inline QuantScale FindScale(const float* x, uint32_t count, float most) {
  Ints largest = {};
  for (uint32_t i = 0; i < count; i += kLanes) {
    largest = MaxInts(largest, MagnitudeBits(Load(x + i)));
  }
  int32_t lanes[kLanes];
  __builtin_memcpy(lanes, &largest, sizeof lanes);
  int32_t bits = 0;
  for (const int32_t lane : lanes) bits = lane > bits ? lane : bits;
  float magnitude;
  __builtin_memcpy(&magnitude, &bits, 4);
  if (bits >= 0x7f800000) return {__builtin_nanf(""), 0};
  if (magnitude < kQuantLeast) return {0, 0};
  return {magnitude / most, most / magnitude};
}

inline void Quantise(const float* x, uint32_t count, float inverse, int16_t* quants) {
  if (inverse == 0) {
    __builtin_memset(quants, 0, count * sizeof *quants);
    return;
  }
  for (uint32_t i = 0; i < count; i += kLanes) {
    StoreWords(quants + i, Mul(Load(x + i), Set(inverse)));
  }
}

// As DirectVectors; a product needs a register of its own where there is no instruction that adds.
template <int kQueries>
constexpr uint32_t PairVectors() {
  return kLanes == 8 && kQueries == 3 ? 2 : DirectVectors<kQueries>();
}

// The sum as scored: times the query's scale times the key's.
template <int kQueries>
void ScoreQuantisedTile(const Matrix& keys, const std::byte* scales, uint32_t rows, uint32_t first,
                        const QuantisedFactors& factors, AttentionState& state) {
  constexpr uint32_t kVectors = PairVectors<kQueries>();
  constexpr uint32_t kKeys = kVectors * kLanes;
  const uint32_t begin = state.slots[first].begin;
  const uint32_t end = state.slots[first + kQueries - 1].end;
  for (uint32_t key = begin / kKeys * kKeys; key < end; key += kKeys) {
    SumTile<BytePairs, kQueries, kVectors>(
        factors.query + first, 0, rows, {keys.rows + 2 * key, keys.stride, keys.ahead}, nullptr,
        [&](int q, uint32_t v, Ints sum) {
          const uint32_t at = key + v * kLanes;
          const Floats scale = Load(reinterpret_cast<const float*>(scales) + at);
          Store(&state.scores[first + q][at],
                Mul(ToFloats(sum), Mul(Set(factors.query_scale[first + q]), scale)));
        });
  }
}

// Rounds a query's weights, each times its value's scale.
inline void QuantiseWeights(const std::byte* scales, Slots slots, float* weights, int16_t* quants,
                            float* scale) {
  const uint32_t begin = slots.begin / 16 * 16;
  const uint32_t end = (slots.end + 15) / 16 * 16;
  for (uint32_t key = begin; key < end; key += kLanes) {
    const Floats of_value = Load(reinterpret_cast<const float*>(scales) + key);
    Store(weights + key, Mul(Load(weights + key), of_value));
  }
  for (uint32_t key = begin; key < slots.begin; ++key) weights[key] = 0;
  for (uint32_t key = slots.end; key < end; ++key) weights[key] = 0;
  const QuantScale rounding = FindScale(weights + begin, end - begin, kFactorMax);
  *scale = rounding.scale;
  Quantise(weights, begin, 0, quants);
  Quantise(weights + begin, end - begin, rounding.inverse, quants + begin);
  Quantise(weights + end, kPageTokens - end, 0, quants + end);
}

// Dimensions [dim, head_dim), in tiles of kVectors and then of fewer vectors.
template <int kQueries, uint32_t kVectors>
void QuantisedValueTiles(const Matrix& values, uint32_t first, uint32_t dim, uint32_t head_dim,
                         const QuantisedFactors& factors, AttentionState& state) {
  const uint32_t begin = state.slots[first].begin / 2;
  const uint32_t end = (state.slots[first + kQueries - 1].end + 1) / 2;
  for (; dim + kVectors * kLanes <= head_dim; dim += kVectors * kLanes) {
    SumTile<BytePairs, kQueries, kVectors>(
        factors.weight + first, begin, end, {values.rows + 2 * dim, values.stride, values.ahead},
        nullptr, [&](int i, uint32_t v, Ints sum) {
          const uint32_t q = first + i;
          if (state.slots[q].begin >= state.slots[q].end) return;
          PutValues(state, q, dim + v * kLanes, Mul(ToFloats(sum), Set(factors.weight_scale[q])));
        });
  }
  if constexpr (kVectors > 1) {
    if (dim < head_dim) {
      QuantisedValueTiles<kQueries, kVectors / 2>(values, first, dim, head_dim, factors, state);
    }
  }
}

// How pages of int8 are read.
struct QuantisedPages {
  QuantisedFactors factors;
  uint32_t tile;

  explicit QuantisedPages(const AttentionTask& task)
      : tile(task.queries <= kDirectQueries ? DirectTile(task.queries) : kTileQueries) {
    for (uint32_t q = 0; q < task.queries; ++q) {
      const QuantScale rounding = FindScale(task.query[q], task.head_dim, kFactorMax);
      Quantise(task.query[q], task.head_dim, rounding.inverse,
               reinterpret_cast<int16_t*>(factors.queries[q]));
      factors.query_scale[q] = rounding.scale;
      factors.query[q] = factors.queries[q];
      factors.weight[q] = factors.weights[q];
    }
  }

  // Calls f(number of queries, first query) for each tile of queries.
  template <typename F>
  void ForTiles(uint32_t queries, const F& f) const {
    for (uint32_t first = 0; first < queries; first += tile) {
      WithCount(Least(tile, queries - first), [&](auto count) {
        f(Number<static_cast<int>(Least(count.kValue, kTileQueries))>(), first);
      });
    }
  }

  void Score(const AttentionTask& task, Page page, AttentionState& state) {
    const Matrix keys = {page.bytes + task.keys_offset, size_t{2} * kPageTokens, page.ahead};
    const std::byte* scales = page.bytes + task.key_scales_offset;
    for (uint32_t byte = 0; byte < kPageTokens * sizeof(float); byte += 64) {
      __builtin_prefetch(scales + page.ahead + byte, 0, 2);
      __builtin_prefetch(page.bytes + task.value_scales_offset + page.ahead + byte, 0, 2);
    }
    ForTiles(task.queries, [&](auto count, uint32_t first) {
      ScoreQuantisedTile<count.kValue>(keys, scales, task.head_dim / 2, first, factors, state);
    });
  }

  void AddValues(const AttentionTask& task, Page page, AttentionState& state) {
    const std::byte* scales = page.bytes + task.value_scales_offset;
    for (uint32_t q = 0; q < task.queries; ++q) {
      if (state.slots[q].begin >= state.slots[q].end) continue;
      QuantiseWeights(scales, state.slots[q], state.scores[q],
                      reinterpret_cast<int16_t*>(factors.weights[q]), &factors.weight_scale[q]);
    }
    const Matrix values = {page.bytes + task.values_offset, size_t{2} * task.head_dim, page.ahead};
    ForTiles(task.queries, [&](auto count, uint32_t first) {
      QuantisedValueTiles<count.kValue, PairVectors<count.kValue>()>(values, first, 0,
                                                                     task.head_dim, factors, state);
    });
  }
};

void StoreQuantised(const StoreTask& task) {
  alignas(64) int16_t quants[kHeadDimMax];
  const uint32_t slot = task.slot;
  const QuantScale key = FindScale(task.key, task.head_dim, kKvQuantMax);
  Quantise(task.key, task.head_dim, key.inverse, quants);
  for (uint32_t d = 0; d < task.head_dim; ++d) {
    task.keys[size_t{d / 2 * kPageTokens + slot} * 2 + d % 2] = static_cast<std::byte>(quants[d]);
  }
  const QuantScale value = FindScale(task.value, task.head_dim, kKvQuantMax);
  Quantise(task.value, task.head_dim, value.inverse, quants);
  for (uint32_t d = 0; d < task.head_dim; ++d) {
    task.values[size_t{slot / 2 * task.head_dim + d} * 2 + slot % 2] =
        static_cast<std::byte>(quants[d]);
  }
  __builtin_memcpy(task.key_scales + slot * sizeof(float), &key.scale, sizeof(float));
  __builtin_memcpy(task.value_scales + slot * sizeof(float), &value.scale, sizeof(float));
}
