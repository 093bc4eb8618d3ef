// tensor/cpu/attention_f16-inl.h
// Pages of f16. A few queries (a decode step's group) read the page directly; many widen it once to
// f32, in the order in which the tiles walk. Part of attention-inl.h.

constexpr uint32_t kChunk = 128;  // rows or columns widened at once

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
  const uint32_t tile = DirectTile(task.queries);
  for (uint32_t first = 0; first < task.queries; first += tile) {
    WithCount(Least(tile, task.queries - first), [&](auto count) {
      constexpr int kQueries = Least(count.kValue, kTileQueries);
      constexpr uint32_t kVectors = DirectVectors<kQueries>();
      constexpr uint32_t kKeys = kVectors * kLanes;
      for (uint32_t key = state.any.begin / kKeys * kKeys; key < state.any.end; key += kKeys) {
        const Matrix part = {keys.rows + 2 * key, keys.stride, keys.ahead};
        ScoreTile<Halfs, kQueries, kVectors>(task.query + first, task.head_dim, part,
                                             state.scores + first, key, false);
      }
    });
  }
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

// A tile of queries and of the dimensions from `dim` on; `part` is that tile of B.
template <typename Element, int kQueries, uint32_t kVectors>
void ValueTile(const Matrix& part, uint32_t first, uint32_t dim, AttentionState& state) {
  const Slots* slots = state.slots + first;
  const float* const* weights = state.weights + first;
  const auto put = [&](int q, uint32_t v, Floats sum) {
    PutValues(state, first + q, dim + v * kLanes, sum);
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
void ValueTiles(const Matrix& values, uint32_t first, uint32_t dim, uint32_t head_dim,
                AttentionState& state) {
  for (; dim + kVectors * kLanes <= head_dim; dim += kVectors * kLanes) {
    ValueTile<Halfs, kQueries, kVectors>({values.rows + 2 * dim, values.stride, values.ahead},
                                         first, dim, state);
  }
  if constexpr (kVectors > 1) {
    if (dim < head_dim) ValueTiles<kQueries, kVectors / 2>(values, first, dim, head_dim, state);
  }
}

void ValuesDirectly(const AttentionTask& task, const Matrix& values, AttentionState& state) {
  const uint32_t tile = DirectTile(task.queries);
  for (uint32_t first = 0; first < task.queries; first += tile) {
    WithCount(Least(tile, task.queries - first), [&](auto count) {
      constexpr int kQueries = Least(count.kValue, kTileQueries);
      ValueTiles<kQueries, DirectVectors<kQueries>()>(values, first, 0, task.head_dim, state);
    });
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

// How pages of f16 are read.
struct HalfPages {
  alignas(64) float widened[kChunk * kPageTokens];

  explicit HalfPages(const AttentionTask&) {}
  void Score(const AttentionTask& task, Page page, AttentionState& state) {
    const Matrix keys = {page.bytes + task.keys_offset, size_t{2} * kPageTokens, page.ahead};
    if (task.queries <= kDirectQueries) {
      ScoreDirectly(task, keys, state);
    } else {
      ScoreWidened(task, keys, widened, state);
    }
  }
  void AddValues(const AttentionTask& task, Page page, AttentionState& state) {
    const Matrix values = {page.bytes + task.values_offset, size_t{2} * task.head_dim, page.ahead};
    if (task.queries <= kDirectQueries) {
      ValuesDirectly(task, values, state);
    } else {
      ValuesWidened(task, values, widened, state);
    }
  }
};
