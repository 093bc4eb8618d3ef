// tensor/cpu/index_scores-inl.h
// Scores of one query against many keys, a lane for each key: a tile of keys is transposed while it
// is widened, and serves all heads in the tiles of attention_tile-inl.h. Formula:
// docs/numerics_deepseek_v41.md, "Selection".

// [dimension][kTileColumns keys]
struct IndexTile {
  alignas(64) float keys[kHeadDimMax * kTileColumns];
};

// One chunk of kLanes keys: its dimensions become rows of the tile, kTileColumns apart.
template <RowFormat kFormat>
inline void TransposeChunk(const std::byte* const* rows, uint32_t dims, uint32_t chunk, float* to) {
  using Layout = ChunkLayout<kFormat>;
  const uint64_t scales_at = uint64_t{dims} / kRowChunk * Layout::kCodeBytes;
  Ints words[4];
  if constexpr (kFormat == RowFormat::kF4Group32) {
    alignas(64) float scale[kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      scale[lane] = ChunkScale<kFormat>(rows[lane] + scales_at + chunk, 0);
    }
    const Floats scales = Load(scale);
    TransposeFours(rows, uint64_t{chunk} * Layout::kCodeBytes, words);
#pragma GCC unroll 4
    for (Ints codes : words) {
#pragma GCC unroll 8
      for (uint32_t i = 0; i < 8; ++i, to += kTileColumns) {
        Store(to, Mul(F4Floats(codes), scales));
        codes = ShiftOutCode(codes);
      }
    }
    return;
  }
  alignas(64) float values[kLanes][kRowChunk];
  const std::byte* from[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    DecodeChunk<kFormat>(rows[lane] + uint64_t{chunk} * Layout::kCodeBytes,
                         rows[lane] + scales_at + chunk * Layout::kScaleBytes, values[lane]);
    from[lane] = reinterpret_cast<const std::byte*>(values[lane]);
  }
  for (uint32_t i = 0; i < kRowChunk; i += 4) {
    TransposeFours(from, 4 * i, words);
    for (const Ints& word : words) {
      Store(to, AsFloats(word));
      to += kTileColumns;
    }
  }
}

inline void TransposeKeys(const IndexTask& task, const std::byte* const* rows, IndexTile& tile) {
  WithFormat(task.format, [&](auto tag) {
    for (uint32_t v = 0; v < kTileVectors; ++v) {
      for (uint32_t chunk = 0; chunk < task.dim / kRowChunk; ++chunk) {
        TransposeChunk<tag.kValue>(rows + v * kLanes, task.dim, chunk,
                                   tile.keys + chunk * kRowChunk * kTileColumns + v * kLanes);
      }
    }
  });
}

void IndexScores(const IndexTask& task) {
  IndexTile tile;
  const Matrix part = {reinterpret_cast<const std::byte*>(tile.keys), 4 * kTileColumns, 0};
  for (uint32_t first = 0; first < task.count; first += kTileColumns) {
    const uint32_t count = Least(kTileColumns, task.count - first);
    const std::byte* rows[kTileColumns];  // beyond the last key: that key again
    for (uint32_t i = 0; i < kTileColumns; ++i) rows[i] = task.keys[first + Least(i, count - 1)];
    TransposeKeys(task, rows, tile);
    alignas(64) float scores[kTileColumns] = {};
    for (uint32_t head = 0; head < task.heads; head += kTileQueries) {
      WithCount(Least(kTileQueries, task.heads - head), [&](auto heads) {
        constexpr int kHeads = Least(heads.kValue, kTileQueries);
        const float* query[kHeads];
        for (int h = 0; h < kHeads; ++h) query[h] = task.query + size_t{head + h} * task.dim;
        SumTile<Singles, kHeads, kTileVectors>(
            query, 0, task.dim, part, nullptr, [&](int h, uint32_t v, Floats dot) {
              float* score = scores + v * kLanes;
              const Floats positive = Max(Zero(), dot);  // NaN stays
              Store(score, Fma(Set(task.weights[head + h]), positive, Load(score)));
            });
      });
    }
    for (uint32_t i = 0; i < kTileColumns; i += kLanes) {
      Store(scores + i, Mul(Load(scores + i), Set(task.factor)));
    }
    __builtin_memcpy(task.scores + first, scores, count * sizeof(float));
  }
}
