// tensor/cpu/block-inl.h
// Products with matrices as a checkpoint stores them. An output has 16 virtual lanes of its own
// that walk its inputs in order, so no result depends on which way below was taken. Few rows: the
// weights stream through registers, each widened where it is used. Many rows: a chunk of weights is
// widened into a tile that stays in the cache, and the rows pass over it. Order and roundings:
// docs/numerics_deepseek_v41.md, "Products"; how bytes become vectors: block_avx*-inl.h.

constexpr uint32_t kGroupVectors = kGroupInputs / kLanes;
constexpr uint32_t kLaneVectors = 16 / kLanes;  // of an output's virtual lanes

template <BlockFormat kFormat>
constexpr uint64_t kGroupBytes = BlockRowBytes(kFormat, kGroupInputs);

inline float FromBits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
inline float PowerFromBits(uint32_t biased_exponent) { return FromBits(biased_exponent << 23); }

// The scales of an output, one for each group of inputs.
template <BlockFormat kFormat>
inline const std::byte* ScalesOf(const BlockMatrix& matrix, uint64_t output) {
  if constexpr (kFormat == BlockFormat::kF32 || kFormat == BlockFormat::kBf16) return nullptr;
  const uint64_t groups = (uint64_t{matrix.inputs} + kGroupInputs - 1) / kGroupInputs;
  return matrix.scales +
         (kFormat == BlockFormat::kF8Block32 ? output / kScaleBlock : output) * groups;
}

// Whether vectors of 16 weights, and so the lanes of sums, are not in the order of their inputs.
template <BlockFormat kFormat>
constexpr bool kReordered = kFormat == BlockFormat::kF4Group32;

template <BlockFormat kFormat>
inline float FoldSixteen(const Floats (&lanes)[kLaneVectors]) {
  if constexpr (!kReordered<kFormat>) return SumOfSixteen(lanes);
  Floats ordered[kLaneVectors];
#pragma GCC unroll 2
  for (uint32_t v = 0; v < kLaneVectors; ++v) ordered[v] = lanes[v];
  FromF4Order(ordered);
  return SumOfSixteen(ordered);
}

// The largest scale that, with the exponents that WidenF8 leaves out, still fits an f32.
constexpr uint32_t kF8ScaleMax = 254 - kF8Exponents;

// The 32 weights at p, in the order of their virtual lanes, each rounded once.
template <BlockFormat kFormat>
inline void WidenGroup(const std::byte* p, const std::byte* scales, uint64_t group,
                       Floats (&w)[kGroupVectors]) {
  if constexpr (kFormat == BlockFormat::kF32) {
    WidenF32(p, w);
  } else if constexpr (kFormat == BlockFormat::kBf16) {
    WidenBf16(p, w);
  } else if constexpr (kFormat == BlockFormat::kF4Group32) {
    WidenF4(p, static_cast<uint32_t>(scales[group]), w);
  } else {
    const auto scale = static_cast<uint32_t>(scales[group]);
    const Floats factor = Set(PowerFromBits(Least(scale, kF8ScaleMax) + kF8Exponents));
    WidenF8(p, w);
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kGroupVectors; ++v) w[v] = Mul(w[v], factor);
    if (scale > kF8ScaleMax) [[unlikely]] {
      const Floats rest = Set(PowerFromBits(127 + scale - kF8ScaleMax));
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kGroupVectors; ++v) w[v] = Mul(w[v], rest);
    }
  }
}

// `count` inputs of each row in the order of the weights' lanes, padded to whole groups. The
// padding is -0, which no sum notices, not even one that is -0.
template <BlockFormat kFormat>
inline void StageRows(const float* x, uint64_t x_stride, uint32_t rows, uint32_t count,
                      float* staged, uint64_t staged_stride) {
  for (uint32_t row = 0; row < rows; ++row, x += x_stride, staged += staged_stride) {
    uint32_t i = 0;
    for (; i + kGroupInputs <= count; i += kGroupInputs) {
#pragma GCC unroll 2
      for (uint32_t k = i; k < i + kGroupInputs; k += 16) {
        Floats v[kLaneVectors];
#pragma GCC unroll 2
        for (uint32_t part = 0; part < kLaneVectors; ++part) v[part] = Load(x + k + part * kLanes);
        if constexpr (kReordered<kFormat>) ToF4Order(v);
#pragma GCC unroll 2
        for (uint32_t part = 0; part < kLaneVectors; ++part) {
          Store(staged + k + part * kLanes, v[part]);
        }
      }
    }
    if (i == count) continue;
    for (uint32_t k = 0; k < kGroupInputs; ++k) staged[i + k] = i + k < count ? x[i + k] : -0.0f;
  }
}

#include "tensor/cpu/block_stream-inl.h"

template <BlockFormat kFormat>
void StreamBlocks(const BlockTask& task) {
  if constexpr (kFormat == BlockFormat::kF8Block32) return StreamF8<Streamer<kFormat, true>>(task);
  const uint32_t inputs = task.matrix->inputs;
  WithFew<kStreamRowsMax>(task.rows, [&]<typename Rows>(Rows) {
    constexpr int kRows = Rows::kValue;
    if constexpr (kReordered<kFormat>) {
      alignas(64) float staged[kStagedFloats];
      StageRows<kFormat>(task.x, task.x_stride, kRows, inputs, staged, inputs);
      return StreamRows<Streamer<kFormat, false>, kRows>(task, staged, inputs);
    }
    StreamRows<Streamer<kFormat, false>, kRows>(task, task.x, task.x_stride);
  });
}

// ---- many rows ----

// An area: outputs and rows whose lanes, with a chunk of inputs, stay in the second-level cache.
constexpr uint32_t kAreaOutputs = 64;
constexpr uint32_t kAreaRows = 48;
constexpr uint32_t kChunkInputs = 512;
// Distance of rows in a tile and of staged ones. No power of two, or they would share few sets of
// the cache.
constexpr uint32_t kChunkStride = kChunkInputs + 16;
constexpr uint32_t kTileOutputs = 8;        // a tile: half of a first-level cache
constexpr uint64_t kTileBytesAhead = 2048;  // of weights to widen, asked for ahead

// kOutputs of a tile times kRows staged rows: sums[output][row][16 lanes] go on by `sixteens` times
// 16 inputs. Outputs are sums_stride floats apart.
template <int kOutputs, int kRows>
void AddPiece(const float* tile, const float* x, uint32_t sixteens, float* sums,
              uint64_t sums_stride) {
#pragma GCC unroll 2
  for (uint32_t part = 0; part < kLaneVectors; ++part) {
    Floats acc[kOutputs][kRows];
    float* place = sums + part * kLanes;
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) acc[o][row] = Load(place + o * sums_stride + row * 16);
    }
    const float* weights = tile + part * kLanes;
    const float* inputs = x + part * kLanes;
    for (uint32_t s = 0; s < sixteens; ++s, weights += 16, inputs += 16) {
      Floats w[kOutputs];
#pragma GCC unroll 4
      for (int o = 0; o < kOutputs; ++o) w[o] = Load(weights + o * kChunkStride);
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
        const Floats input = Load(inputs + row * kChunkStride);
#pragma GCC unroll 4
        for (int o = 0; o < kOutputs; ++o) acc[o][row] = Fma(w[o], input, acc[o][row]);
      }
    }
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) Store(place + o * sums_stride + row * 16, acc[o][row]);
    }
  }
}

// The rows of an area over a tile, in pieces of about equal size.
inline void AddTile(const float* tile, uint32_t outputs, const float* staged, uint32_t rows,
                    uint32_t sixteens, float* sums) {
  const uint64_t stride = uint64_t{rows} * 16;
  uint32_t pieces = (rows + kPieceRowsMax - 1) / kPieceRowsMax;
  for (uint32_t row = 0; row < rows; --pieces) {
    const uint32_t count = (rows - row + pieces - 1) / pieces;
    WithFew<kPieceRowsMax>(count, [&]<typename Rows>(Rows) {
      const float* x = staged + row * kChunkStride;
      float* place = sums + row * 16;
      uint32_t o = 0;
      for (; outputs - o >= 4; o += 4) {
        AddPiece<4, Rows::kValue>(tile + o * kChunkStride, x, sixteens, place + o * stride, stride);
      }
      for (; o < outputs; ++o) {
        AddPiece<1, Rows::kValue>(tile + o * kChunkStride, x, sixteens, place + o * stride, stride);
      }
    });
    row += count;
  }
}

// `count` weights of one output from input `begin` on, a multiple of 32, padded to whole groups.
template <BlockFormat kFormat>
inline void WidenRow(const BlockMatrix& matrix, uint64_t output, uint32_t begin, uint32_t count,
                     float* tile) {
  const std::byte* weights = matrix.weights + output * BlockRowBytes(kFormat, matrix.inputs) +
                             BlockRowBytes(kFormat, begin);
  const std::byte* scales = ScalesOf<kFormat>(matrix, output);
  uint64_t group = begin / kGroupInputs;
  Floats w[kGroupVectors];
  uint32_t i = 0;
  for (; i + kGroupInputs <= count; i += kGroupInputs, weights += kGroupBytes<kFormat>, ++group) {
    __builtin_prefetch(weights + kTileBytesAhead, 0, 2);
    WidenGroup<kFormat>(weights, scales, group, w);
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kGroupVectors; ++v) Store(tile + i + v * kLanes, w[v]);
  }
  if (i == count) return;
  alignas(64) std::byte end[kGroupBytes<kFormat>] = {};
  __builtin_memcpy(end, weights, BlockRowBytes(kFormat, count - i));
  WidenGroup<kFormat>(end, scales, group, w);
  for (uint32_t v = 0; v < kGroupVectors; ++v) Store(tile + i + v * kLanes, w[v]);
}

// Outputs [begin, end) times all rows of the task, at most an area of them.
template <BlockFormat kFormat>
void MultiplyArea(const BlockTask& task, uint32_t begin, uint32_t end) {
  alignas(64) float sums[kAreaOutputs * kAreaRows * 16];
  alignas(64) float staged[kAreaRows * kChunkStride];
  alignas(64) float tile[kTileOutputs * kChunkStride];
  const uint32_t inputs = task.matrix->inputs;
  const uint64_t stride = uint64_t{task.rows} * 16;
  __builtin_memset(sums, 0, (end - begin) * stride * sizeof(float));
  for (uint32_t k = 0; k < inputs;) {
    const uint32_t count = inputs - k < kChunkInputs ? inputs - k : kChunkInputs;
    const uint32_t sixteens = (count + kGroupInputs - 1) / kGroupInputs * 2;
    StageRows<kFormat>(task.x + k, task.x_stride, task.rows, count, staged, kChunkStride);
    for (uint32_t first = begin; first < end;) {
      const uint32_t outputs = end - first < kTileOutputs ? end - first : kTileOutputs;
      for (uint32_t o = 0; o < outputs; ++o) {
        WidenRow<kFormat>(*task.matrix, first + o, k, count, tile + o * kChunkStride);
      }
      AddTile(tile, outputs, staged, task.rows, sixteens, sums + (first - begin) * stride);
      first += outputs;
    }
    k += count;
  }
  for (uint32_t output = begin; output < end; ++output) {
    for (uint32_t row = 0; row < task.rows; ++row) {
      const float* lanes = sums + (output - begin) * stride + row * 16;
      Floats sum[kLaneVectors];
      for (uint32_t part = 0; part < kLaneVectors; ++part) sum[part] = Load(lanes + part * kLanes);
      task.out[row * task.out_stride + output] = FoldSixteen<kFormat>(sum);
    }
  }
}

template <BlockFormat kFormat>
void MultiplyBlocksOf(const BlockTask& task) {
  const bool fits =
      !kReordered<kFormat> || uint64_t{task.rows} * task.matrix->inputs <= kStagedFloats;
  if (task.rows <= kStreamRowsMax && fits) return StreamBlocks<kFormat>(task);
  BlockTask area = task;
  for (uint32_t row = 0; row < task.rows; row += area.rows) {
    area.rows = Least(task.rows - row, kAreaRows);
    area.x = task.x + row * task.x_stride;
    area.out = task.out + row * task.out_stride;
    for (uint32_t begin = task.output_begin; begin < task.output_end;) {
      const uint32_t end = Least(task.output_end - begin, kAreaOutputs) + begin;
      MultiplyArea<kFormat>(area, begin, end);
      begin = end;
    }
  }
}

void MultiplyBlocks(const BlockTask& task) {
  switch (task.matrix->format) {
    case BlockFormat::kF32:
      return MultiplyBlocksOf<BlockFormat::kF32>(task);
    case BlockFormat::kBf16:
      return MultiplyBlocksOf<BlockFormat::kBf16>(task);
    case BlockFormat::kF8Block32:
      return MultiplyBlocksOf<BlockFormat::kF8Block32>(task);
    case BlockFormat::kF4Group32:
      return MultiplyBlocksOf<BlockFormat::kF4Group32>(task);
  }
}
