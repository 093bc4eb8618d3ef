// tensor/cpu/block_stream-inl.h
// Few rows times a matrix as stored: weights stream through registers, those of several outputs
// side by side, each widened where it is used. What limits is memory, so the streams ask for it
// ahead. Included by block-inl.h; a faster way for some processors: block_vbmi-inl.h.

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
#pragma GCC unroll 16
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

// Memory is asked for so far ahead of what is read, of all outputs of a stream together; beyond the
// end of an output's row, for those of the output that this stream takes up after it, since the
// rows between belong to its neighbours. Into the second-level cache: the first has too few lines
// to wait for.
constexpr uint64_t kStreamBytesAhead = 16384;

// Where an output's weights of so many bytes later are, from where it stands in its row.
template <int kOutputs>
class StreamAhead {
 public:
  explicit StreamAhead(uint64_t row_bytes)
      : row_bytes_(row_bytes),
        skipped_(kBytes / row_bytes * (kOutputs - 1) * row_bytes),
        row_end_((kBytes / row_bytes + 1) * row_bytes) {}
  // `at` grows by less than a row from call to call.
  uint64_t From(uint64_t at) {
    if (at + kBytes >= row_end_) {
      row_end_ += row_bytes_;
      skipped_ += (kOutputs - 1) * row_bytes_;
    }
    return at + kBytes + skipped_;
  }

 private:
  static constexpr uint64_t kBytes = kStreamBytesAhead / kOutputs;
  const uint64_t row_bytes_;
  uint64_t skipped_;
  uint64_t row_end_;
};

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
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (uint32_t part = 0; part < kLaneVectors; ++part) sums.at[o][row][part] = Zero();
    }
  }
  if constexpr (kFormat == BlockFormat::kF4Group32) {  // those of the next outputs
    for (uint64_t byte = 0; byte < kOutputs * groups; byte += 64) {
      __builtin_prefetch(scales + kOutputs * groups + byte, 0, 2);
    }
  }
  StreamAhead<kOutputs> stream(row_bytes);
  uint64_t at = 0;
  for (uint64_t group = 0; group < groups;) {
    const uint64_t ahead = stream.From(at);
#pragma GCC unroll 16
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
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
      task.out[row * task.out_stride + output + o] = FoldSixteen<kFormat>(sums.at[o][row]);
    }
  }
}

// How outputs of one format are computed, kOutputs at a time.
template <BlockFormat kFormat, bool kScaled>
struct Streamer {
  template <int kOutputs, int kRows>
  static void Stream(const BlockTask& task, uint32_t output, const float* x, uint64_t x_stride) {
    StreamOutputsOf<kFormat, kScaled, kOutputs, kRows>(task, output, x, x_stride);
  }
};

template <typename S, int kRows>
void StreamRows(const BlockTask& task, const float* x, uint64_t x_stride) {
  constexpr uint32_t kOutputs = StreamOutputs(kRows);
  static_assert(kOutputsTogether % kOutputs == 0);
  uint32_t output = task.output_begin;
  for (; task.output_end - output >= kOutputs; output += kOutputs) {
    S::template Stream<kOutputs, kRows>(task, output, x, x_stride);
  }
  if constexpr (kOutputs > 4) {
    for (; task.output_end - output >= 4; output += 4) {
      S::template Stream<4, kRows>(task, output, x, x_stride);
    }
  }
  for (; output < task.output_end; ++output)
    S::template Stream<1, kRows>(task, output, x, x_stride);
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
  Differences inexact;
  uint32_t largest = 0;
  for (uint32_t row = 0; row < task.rows; ++row, staged += inputs) {
    const float* x = task.x + row * task.x_stride;
    for (uint32_t i = 0; i < inputs; i += kGroupInputs) {
      const uint32_t exponent = static_cast<uint32_t>(scales[i / kGroupInputs]) + kF8Exponents;
      largest = Most(largest, exponent);
      const float factor = PowerFromBits(exponent);
      const float inverse = PowerFromBits(254 - exponent);
      if (i + kGroupInputs <= inputs) {
#pragma GCC unroll 4
        for (uint32_t k = i; k < i + kGroupInputs; k += kLanes) {
          const Floats value = Load(x + k);
          const Floats scaled = Mul(value, Set(factor));
          inexact.Add(Mul(scaled, Set(inverse)), value);
          Store(staged + k, scaled);
        }
        continue;
      }
      for (uint32_t k = i; k < inputs; ++k) {
        staged[k] = x[k] * factor;
        if (!(staged[k] * inverse == x[k])) return false;
      }
    }
  }
  return largest < 254 && !inexact.found();
}

template <typename S, int kRows>
void StreamScaled(const BlockTask& task, float* staged) {
  using Unscaled = Streamer<BlockFormat::kF8Block32, false>;
  BlockTask block = task;  // outputs that share their scales
  for (uint32_t begin = task.output_begin; begin < task.output_end; begin = block.output_end) {
    block.output_begin = begin;
    block.output_end = Least(task.output_end, begin / kScaleBlock * kScaleBlock + kScaleBlock);
    const bool scaled =
        ScaleRows(task, ScalesOf<BlockFormat::kF8Block32>(*task.matrix, begin), staged);
    if (scaled) {
      StreamRows<S, kRows>(block, staged, task.matrix->inputs);
    } else {
      StreamRows<Unscaled, kRows>(block, task.x, task.x_stride);
    }
  }
}

// rows * inputs <= kStagedFloats. S streams what has its scales in x.
template <typename S>
void StreamF8(const BlockTask& task) {
  WithFew<kStreamRowsMax>(task.rows, [&]<typename Rows>(Rows) {
    alignas(64) float staged[kStagedFloats];
    StreamScaled<S, Rows::kValue>(task, staged);
  });
}

template <BlockFormat kFormat>
void StreamBlocks(const BlockTask& task) {
  const uint32_t inputs = task.matrix->inputs;
  if constexpr (kFormat == BlockFormat::kF8Block32) {
    if (uint64_t{task.rows} * inputs <= kStagedFloats) {
      return StreamF8<Streamer<kFormat, true>>(task);
    }
  }
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
