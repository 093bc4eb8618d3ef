// tensor/cpu/gathered-inl.h
// Attention of some heads of one query over a list of cache rows. A block of keys is widened once
// to f32, in columns of a chunk of dimensions, and serves all heads twice: as keys, in tiles of dot
// products, and as values, in the tiles of attention_tile-inl.h. The state and the softmax are
// those of attention-inl.h, a head for a query and a block for a page.

// Rows of the tile; dot products take kDotKeys at once.
constexpr uint32_t kBlockRows = (kKeyBlock + kDotKeys - 1) / kDotKeys * kDotKeys;
// From column to column; the line more keeps a row's columns from sharing few sets of a cache.
constexpr uint32_t kColumnFloats = kBlockRows * kRowChunk + 16;
// Heads whose queries stay in the first-level cache while the keys pass.
constexpr uint32_t kResidentHeads = 8;
// Rows ahead, of the list, to fetch.
constexpr uint32_t kRowsAhead = 6;

struct GatheredState {
  alignas(64) float keys[kHeadDimMax / kRowChunk * kColumnFloats];
  AttentionState attention;
};

// Rows [begin, end) of a list of `count` become rows of the tile from `first` on.
inline void WidenRows(RowFormat format, const std::byte* const* rows, uint32_t begin, uint32_t end,
                      uint32_t count, uint32_t dims, uint32_t first, float* keys) {
  const uint64_t row_bytes = RowBytes(format, dims);
  WithFormat(format, [&](auto tag) {
    using Layout = ChunkLayout<tag.kValue>;
    for (uint32_t i = begin; i < end; ++i) {
      const std::byte* ahead = rows[Least(i + kRowsAhead, count - 1)];
      for (uint64_t byte = 0; byte < row_bytes; byte += 64) __builtin_prefetch(ahead + byte);
      const std::byte* scales = rows[i] + dims / kRowChunk * Layout::kCodeBytes;
      float* to = keys + (first + i - begin) * kRowChunk;
      for (uint32_t chunk = 0; chunk < dims / kRowChunk; ++chunk) {
        DecodeChunk<tag.kValue>(rows[i] + chunk * Layout::kCodeBytes,
                                scales + chunk * Layout::kScaleBytes,
                                to + size_t{chunk} * kColumnFloats);
      }
    }
  });
}

// Keys [begin, end) of the list; further rows that a tile of dot products reads become 0.
inline void WidenBlock(const GatheredTask& task, uint32_t begin, uint32_t end, float* keys) {
  const uint32_t middle = Least(Most(begin, task.window_count), end);  // the first selected row
  if (begin < middle) {
    WidenRows(task.window_format, task.window, begin, middle, task.window_count, task.head_dim, 0,
              keys);
  }
  if (middle < end) {
    WidenRows(task.selected_format, task.selected, middle - task.window_count,
              end - task.window_count, task.selected_count, task.head_dim, middle - begin, keys);
  }
  const uint32_t rows = (end - begin + kDotKeys - 1) / kDotKeys * kDotKeys;
  for (uint32_t row = end - begin; row < rows; ++row) {
    for (uint32_t chunk = 0; chunk < task.head_dim / kRowChunk; ++chunk) {
      float* to = keys + size_t{chunk} * kColumnFloats + row * kRowChunk;
      for (uint32_t i = 0; i < kRowChunk; i += kLanes) Store(to + i, Zero());
    }
  }
}

// kHeads heads by kDotKeys keys, those of the tile from `key` on.
template <uint32_t kHeads>
inline void ScoreDots(const float* query, uint32_t dims, const float* keys, float scale,
                      float (*scores)[kPageTokens], uint32_t key) {
  constexpr uint32_t kLaneParts = 16 / kLanes;
  Floats sums[kDotKeys][kHeads][kLaneParts];
#pragma GCC unroll 4
  for (uint32_t k = 0; k < kDotKeys; ++k) {
#pragma GCC unroll 4
    for (uint32_t h = 0; h < kHeads; ++h) {
#pragma GCC unroll 2
      for (uint32_t part = 0; part < kLaneParts; ++part) sums[k][h][part] = Zero();
    }
  }
  const float* column = keys + key * kRowChunk;
  for (uint32_t chunk = 0; chunk < dims; chunk += kRowChunk, column += kColumnFloats) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kRowChunk; i += kLanes) {
      const uint32_t part = i / kLanes % kLaneParts;
      Floats of_keys[kDotKeys];
#pragma GCC unroll 4
      for (uint32_t k = 0; k < kDotKeys; ++k) of_keys[k] = Load(column + k * kRowChunk + i);
#pragma GCC unroll 4
      for (uint32_t h = 0; h < kHeads; ++h) {
        const Floats of_query = Load(query + size_t{h} * dims + chunk + i);
#pragma GCC unroll 4
        for (uint32_t k = 0; k < kDotKeys; ++k) {
          sums[k][h][part] = Fma(of_query, of_keys[k], sums[k][h][part]);
        }
      }
    }
  }
  FoldDots(sums, scale, scores, key);
}

inline void ScoreBlock(const GatheredTask& task, uint32_t count, GatheredState& state) {
  for (uint32_t first = 0; first < task.heads; first += kResidentHeads) {
    const uint32_t heads_end = Least(first + kResidentHeads, task.heads);
    for (uint32_t key = 0; key < count; key += kDotKeys) {
      for (uint32_t head = first; head < heads_end; head += kDotHeads) {
        WithCount(Least(kDotHeads, heads_end - head), [&](auto heads) {
          constexpr uint32_t kHeads = Least(heads.kValue, kDotHeads);
          ScoreDots<kHeads>(task.query + size_t{head} * task.head_dim, task.head_dim, state.keys,
                            task.scale, state.attention.scores + head, key);
        });
      }
    }
  }
}

inline void WeighBlock(const GatheredTask& task, uint32_t count, AttentionState& state) {
  for (uint32_t head = 0; head < task.heads; ++head) {
    state.page_maximum[head] =
        WeighScores(kLog2E, state.scores[head], {0, count}, &state.page_sum[head]);
  }
  FoldSums(task.heads, kLog2E, state.page_maximum, state.page_sum, state);
}

inline void AddBlockValues(const GatheredTask& task, uint32_t count, GatheredState& state) {
  for (uint32_t dim = 0; dim < task.head_dim; dim += kTileColumns) {
    const float* column = state.keys + size_t{dim / kRowChunk} * kColumnFloats + dim % kRowChunk;
    const Matrix part = {reinterpret_cast<const std::byte*>(column), 4 * kRowChunk, 0};
    for (uint32_t first = 0; first < task.heads; first += kTileQueries) {
      WithCount(Least(kTileQueries, task.heads - first), [&](auto heads) {
        constexpr int kHeads = Least(heads.kValue, kTileQueries);
        SumTile<Singles, kHeads, kTileVectors>(state.attention.weights + first, 0, count, part,
                                               nullptr, [&](int h, uint32_t v, Floats sum) {
                                                 PutValues(state.attention, first + h,
                                                           dim + v * kLanes, sum);
                                               });
      });
    }
  }
}

// The sink is a block before the first, without a value.
inline void StartHeads(const GatheredTask& task, AttentionState& state) {
  StartSums(task.heads, state);
  for (uint32_t head = 0; head < task.heads; ++head) {
    const float sink = task.sinks[head];
    state.maximum[head] = sink > kMaximumStart ? sink : kMaximumStart;
    state.sum[head] = sink == sink ? 1 : sink;
    state.weights[head] = state.scores[head];
    state.target[head] = task.out + size_t{head} * task.head_dim;
  }
  state.fold = true;
  ClearValues(task.heads, task.head_dim, state.target);
}

void AttendGathered(const GatheredTask& task) {
  GatheredState state;
  StartHeads(task, state.attention);
  const uint32_t keys = task.window_count + task.selected_count;
  for (uint32_t begin = 0; begin < keys; begin += kKeyBlock) {
    const uint32_t end = Least(keys, begin + kKeyBlock);
    WidenBlock(task, begin, end, state.keys);
    ScoreBlock(task, end - begin, state);
    WeighBlock(task, end - begin, state.attention);
    AddBlockValues(task, end - begin, state);
  }
  DivideValues(task.heads, task.head_dim, state.attention, state.attention.target);
}
