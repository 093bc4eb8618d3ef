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

inline float PowerFromBits(uint32_t biased_exponent) {
  const uint32_t bits = biased_exponent << 23;
  float power;
  __builtin_memcpy(&power, &bits, 4);
  return power;
}

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
constexpr bool kReordered = kFormat == BlockFormat::kF4Group32 && !kF4InOrder;

template <BlockFormat kFormat>
inline float FoldSixteen(const Floats (&lanes)[kLaneVectors]) {
  if constexpr (!kReordered<kFormat>) return SumOfSixteen(lanes);
  return SumOfSixteen({FromF4Order(lanes[0])});
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
      Floats v[kGroupVectors];
#pragma GCC unroll 4
      for (uint32_t k = 0; k < kGroupVectors; ++k) {
        v[k] = Load(x + i + k * kLanes);
        if constexpr (kReordered<kFormat>) v[k] = ToF4Order(v[k]);
      }
#pragma GCC unroll 4
      for (uint32_t k = 0; k < kGroupVectors; ++k) Store(staged + i + k * kLanes, v[k]);
    }
    if (i == count) continue;
    for (uint32_t k = 0; k < kGroupInputs; ++k) staged[i + k] = i + k < count ? x[i + k] : -0.0f;
  }
}

// ---- few rows ----

template <int kOutputs, int kRows>
struct StreamSums {
  Floats at[kOutputs][kRows][kLaneVectors];
};

// A group of inputs of kOutputs outputs, whose weights lie `stride` bytes apart. kScaled: the
// scales of kF8Block32 are in x.
template <BlockFormat kFormat, bool kScaled, int kOutputs, int kRows>
inline void AddStreamed(StreamSums<kOutputs, kRows>& sums, const std::byte* weights,
                        uint64_t stride, const std::byte* scales, uint64_t scale_stride,
                        uint64_t group, const float* x, uint64_t x_stride) {
#pragma GCC unroll 4
  for (int output = 0; output < kOutputs; ++output) {
    Floats w[kGroupVectors];
    if constexpr (kScaled) {
      WidenF8(weights + output * stride, w);
    } else {
      WidenGroup<kFormat>(weights + output * stride, scales, output * scale_stride + group, w);
    }
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kGroupVectors; ++v) {
        Floats& sum = sums.at[output][row][v % kLaneVectors];
        sum = Fma(w[v], Load(x + row * x_stride + v * kLanes), sum);
      }
    }
  }
}

// The group that is not whole, from copies padded with zeros: files end right behind weights.
template <BlockFormat kFormat, bool kScaled, int kOutputs, int kRows>
inline void AddEnd(StreamSums<kOutputs, kRows>& sums, const std::byte* weights, uint64_t stride,
                   const std::byte* scales, uint64_t group, uint32_t inputs, const float* x,
                   uint64_t x_stride) {
  alignas(64) std::byte ends[kOutputs * kGroupBytes<kFormat>] = {};
  alignas(64) float staged[kRows * kGroupInputs];
  for (int output = 0; output < kOutputs; ++output) {
    __builtin_memcpy(ends + output * kGroupBytes<kFormat>, weights + output * stride,
                     BlockRowBytes(kFormat, inputs));
  }
  StageRows<kFormat>(x, x_stride, kRows, inputs, staged, kGroupInputs);
  AddStreamed<kFormat, kScaled>(sums, ends, kGroupBytes<kFormat>, scales, 0, group, staged,
                                kGroupInputs);
}

// Memory is asked for so far ahead of an output's weights; at the end of its row for those of the
// output that this stream takes up next, since the rows between belong to its neighbours.
// Into the second-level cache: the first has too few lines to wait for (measured, one thread of a
// Zen 4, one row from memory: BF16 14.6 -> 19.5 GB/s, F8 13 -> 14.4, F4 of 2304 inputs 9 -> 10.5).
constexpr uint64_t kStreamBytesAhead = 2048;

template <BlockFormat kFormat, bool kScaled, int kOutputs, int kRows>
void StreamOutputsOf(const BlockTask& task, uint32_t output, const float* x, uint64_t x_stride) {
  constexpr uint64_t kLineGroups = kGroupBytes<kFormat> < 64 ? 64 / kGroupBytes<kFormat> : 1;
  const BlockMatrix& matrix = *task.matrix;
  const uint64_t row_bytes = BlockRowBytes(kFormat, matrix.inputs);
  const uint64_t groups = matrix.inputs / kGroupInputs;
  const std::byte* weights = matrix.weights + output * row_bytes;
  const std::byte* scales = ScalesOf<kFormat>(matrix, output);
  const uint64_t scale_stride =
      kFormat == BlockFormat::kF4Group32 ? groups : 0;  // together in one block, or none
  StreamSums<kOutputs, kRows> sums;
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (uint32_t part = 0; part < kLaneVectors; ++part) sums.at[o][row][part] = Zero();
    }
  }
  uint64_t at = 0;
  for (uint64_t group = 0; group < groups;) {
    const uint64_t ahead = at + kStreamBytesAhead +
                           (at + kStreamBytesAhead < row_bytes ? 0 : kOutputs - 1) * row_bytes;
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 2
      for (uint64_t line = 0; line < kLineGroups * kGroupBytes<kFormat>; line += 64) {
        __builtin_prefetch(weights + o * row_bytes + ahead + line, 0, 2);
      }
    }
    const uint64_t end = group + kLineGroups < groups ? group + kLineGroups : groups;
    for (; group < end; ++group, at += kGroupBytes<kFormat>) {
      AddStreamed<kFormat, kScaled>(sums, weights + at, row_bytes, scales, scale_stride, group,
                                    x + group * kGroupInputs, x_stride);
    }
  }
  if constexpr (kFormat != BlockFormat::kF4Group32) {
    if (matrix.inputs % kGroupInputs != 0) {
      AddEnd<kFormat, kScaled>(sums, weights + at, row_bytes, scales, groups,
                               matrix.inputs % kGroupInputs, x + groups * kGroupInputs, x_stride);
    }
  }
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
      task.out[row * task.out_stride + output + o] = FoldSixteen<kFormat>(sums.at[o][row]);
    }
  }
}

template <BlockFormat kFormat, bool kScaled, int kRows>
void StreamRows(const BlockTask& task, const float* x, uint64_t x_stride) {
  constexpr uint32_t kOutputs = StreamOutputs(kRows);
  static_assert(kOutputsTogether % kOutputs == 0);
  uint32_t output = task.output_begin;
  for (; task.output_end - output >= kOutputs; output += kOutputs) {
    StreamOutputsOf<kFormat, kScaled, kOutputs, kRows>(task, output, x, x_stride);
  }
  for (; output < task.output_end; ++output) {
    StreamOutputsOf<kFormat, kScaled, 1, kRows>(task, output, x, x_stride);
  }
}

// Calls f(Number<count>) for count in [1, kMax].
template <uint32_t kMax, typename F>
inline void WithFew(uint32_t count, const F& f) {
  static_assert(kMax >= 3 && kMax <= 6);
  if constexpr (kMax >= 6) {
    if (count == 6) return f(Number<6>());
  }
  if constexpr (kMax >= 5) {
    if (count == 5) return f(Number<5>());
  }
  if constexpr (kMax >= 4) {
    if (count == 4) return f(Number<4>());
  }
  if (count == 3) return f(Number<3>());
  if (count == 2) return f(Number<2>());
  f(Number<1>());
}

constexpr uint64_t kStagedFloats = 1 << 16;

// Rows times the scales of a block of kF8Block32, so that no weight needs it: a power of two may be
// on either side of a product as long as both sides stay exact. False when one would not.
inline bool ScaleRows(const BlockTask& task, const std::byte* scales, float* staged) {
  const uint32_t inputs = task.matrix->inputs;
  for (uint32_t row = 0; row < task.rows; ++row, staged += inputs) {
    const float* x = task.x + row * task.x_stride;
    for (uint32_t i = 0; i < inputs; i += kGroupInputs) {
      const uint32_t exponent = static_cast<uint32_t>(scales[i / kGroupInputs]) + kF8Exponents;
      if (exponent >= 254) return false;
      const float factor = PowerFromBits(exponent);
      const float inverse = PowerFromBits(254 - exponent);
      const uint32_t end = Least(inputs, i + kGroupInputs);
      uint32_t k = i;
      for (; k + kLanes <= end; k += kLanes) {
        const Floats value = Load(x + k);
        const Floats scaled = Mul(value, Set(factor));
        if (AnyDiffers(Mul(scaled, Set(inverse)), value)) return false;
        Store(staged + k, scaled);
      }
      for (; k < end; ++k) {
        staged[k] = x[k] * factor;
        if (!(staged[k] * inverse == x[k])) return false;
      }
    }
  }
  return true;
}

template <int kRows>
void StreamScaled(const BlockTask& task, float* staged) {
  BlockTask block = task;  // outputs that share their scales
  for (uint32_t begin = task.output_begin; begin < task.output_end; begin = block.output_end) {
    block.output_begin = begin;
    block.output_end = Least(task.output_end, begin / kScaleBlock * kScaleBlock + kScaleBlock);
    const bool scaled =
        ScaleRows(task, ScalesOf<BlockFormat::kF8Block32>(*task.matrix, begin), staged);
    if (scaled) {
      StreamRows<BlockFormat::kF8Block32, true, kRows>(block, staged, task.matrix->inputs);
    } else {
      StreamRows<BlockFormat::kF8Block32, false, kRows>(block, task.x, task.x_stride);
    }
  }
}

template <BlockFormat kFormat>
void StreamBlocks(const BlockTask& task) {
  const uint32_t inputs = task.matrix->inputs;
  WithFew<kStreamRowsMax>(task.rows, [&]<typename Rows>(Rows) {
    constexpr int kRows = Rows::kValue;
    if constexpr (kFormat == BlockFormat::kF8Block32) {
      alignas(64) float staged[kStagedFloats];
      if (uint64_t{kRows} * inputs <= kStagedFloats) return StreamScaled<kRows>(task, staged);
    }
    if constexpr (kReordered<kFormat>) {
      alignas(64) float staged[kStagedFloats];
      StageRows<kFormat>(task.x, task.x_stride, kRows, inputs, staged, inputs);
      return StreamRows<kFormat, false, kRows>(task, staged, inputs);
    }
    StreamRows<kFormat, false, kRows>(task, task.x, task.x_stride);
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
constexpr uint32_t kTileOutputs = 8;  // a tile: half of a first-level cache

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
    __builtin_prefetch(weights + kStreamBytesAhead, 0, 2);
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
