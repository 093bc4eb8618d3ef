// tensor/cpu/block_stream-inl.h
// Few rows times a matrix as stored: weights stream through registers, those of several outputs
// side by side, each widened where it is used. Memory is half of what limits, so the streams are
// long and ask for it ahead. Included by block-inl.h; goes on in block_f8-inl.h.

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
      WidenF8(weights + output % 4 * stride, w);
    } else {
      WidenGroup<kFormat>(weights + output % 4 * stride, scales + output % 4 * scale_stride, group,
                          w);
    }
    if (output % 4 == 3) {  // few distances are enough for all addresses
      weights += 4 * stride;
      scales += 4 * scale_stride;
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

// Outputs that are computed side by side lie `apart` outputs from each other, so that each of them
// and those that follow it are one long stream of bytes: what processors fetch ahead by themselves.
struct StreamPlace {
  uint32_t output;  // the first of them
  uint32_t apart;
  uint32_t done;  // outputs of each stream in front of them
};

// What they do not do is begin early: at a page's edge, and where the outputs that share scales
// end and their streams jump. So memory is asked for besides, so many bytes ahead of what is read.
template <BlockFormat kFormat>
constexpr uint64_t kStreamBytesAhead = kFormat == BlockFormat::kF8Block32   ? 2048
                                       : kFormat == BlockFormat::kF4Group32 ? 512
                                                                            : 1024;

constexpr uint64_t kScaleBytesAhead = 1024;  // likewise, of kF4Group32

// Asks for the 64 bytes of each of kOutputs streams that will be read when this row of weights,
// now at byte `at`, has gone on so far. `left` is what each stream has from this row on; those of
// kF8Block32 go on behind the end of the last one, and past the others' ends it does no harm.
template <BlockFormat kFormat, int kOutputs>
inline void AskAhead(const std::byte* row, uint64_t at, uint64_t left, uint64_t apart_bytes) {
  uint64_t ahead = at + kStreamBytesAhead<kFormat>;
  if (kFormat == BlockFormat::kF8Block32 && ahead >= left) ahead += (kOutputs - 1) * apart_bytes;
  const std::byte* p = row + ahead;
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o, p += apart_bytes) {
    // Short of the second-level cache's latency the first one has lines enough to wait for.
    __builtin_prefetch(p, 0, kFormat == BlockFormat::kF4Group32 ? 3 : 2);
  }
}

template <int kOutputs, int kRows>
inline void ClearSums(StreamSums<kOutputs, kRows>& sums) {
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (uint32_t part = 0; part < kLaneVectors; ++part) sums.at[o][row][part] = Zero();
    }
  }
}

template <BlockFormat kFormat, int kOutputs, int kRows>
inline void StoreSums(const StreamSums<kOutputs, kRows>& sums, const BlockTask& task,
                      StreamPlace place) {
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
    float* out = task.out + place.output + uint64_t{place.apart} * static_cast<uint32_t>(o);
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
      out[row * task.out_stride] = FoldSixteen<kFormat>(sums.at[o][row]);
    }
  }
}

// Not inlined, nor are its distances known to be multiples of others: GCC 12 keeps a pointer for
// each output then, far more than there are registers.
template <BlockFormat kFormat, bool kScaled, int kOutputs, int kRows>
[[gnu::noinline]] void StreamOutputsOf(const BlockTask& task, StreamPlace place, const float* x,
                                       uint64_t x_stride) {
  constexpr uint64_t kGroup = kGroupBytes<kFormat>;
  constexpr uint64_t kLineGroups = kGroup < 64 ? 64 / kGroup : 1;
  const BlockMatrix& matrix = *task.matrix;
  const uint64_t row_bytes = BlockRowBytes(kFormat, matrix.inputs);
  const uint64_t groups = matrix.inputs / kGroupInputs;
  const std::byte* weights = matrix.weights + place.output * row_bytes;
  const std::byte* scales = ScalesOf<kFormat>(matrix, place.output);
  const uint64_t apart = place.apart * row_bytes;
  // Together in one block, or none.
  const uint64_t scales_apart = kFormat == BlockFormat::kF4Group32 ? groups * place.apart : 0;
  const uint64_t left = apart - place.done * row_bytes;
  StreamSums<kOutputs, kRows> sums;
  ClearSums(sums);
  if constexpr (kFormat == BlockFormat::kF4Group32) {
    for (uint64_t o = 0; o < kOutputs; ++o) {
      for (uint64_t byte = 0; byte < groups + 64; byte += 64) {
        __builtin_prefetch(scales + o * scales_apart + kScaleBytesAhead + byte, 0, 2);
      }
    }
  }
  uint64_t group = 0;
  for (; group + kLineGroups <= groups; group += kLineGroups) {
    const uint64_t at = group * kGroup;
#pragma GCC unroll 2
    for (uint64_t line = 0; line < kLineGroups * kGroup; line += 64) {
      AskAhead<kFormat, kOutputs>(weights, at + line, left, apart);
    }
    uint64_t weight_step = apart;
    uint64_t scale_step = scales_apart;
    asm("" : "+r"(weight_step), "+r"(scale_step));
#pragma GCC unroll 4
    for (uint64_t i = 0; i < kLineGroups; ++i) {
      AddStreamed<kFormat, kScaled>(sums, weights + at + i * kGroup, weight_step, scales + group,
                                    scale_step, i, x + (group + i) * kGroupInputs, x_stride);
    }
  }
  for (; group < groups; ++group) {
    AddStreamed<kFormat, kScaled>(sums, weights + group * kGroup, apart, scales, scales_apart,
                                  group, x + group * kGroupInputs, x_stride);
  }
  if constexpr (kFormat != BlockFormat::kF4Group32) {
    if (matrix.inputs % kGroupInputs != 0) {
      AddEnd<kFormat, kScaled>(sums, weights + groups * kGroup, apart, scales, groups,
                               matrix.inputs % kGroupInputs, x + groups * kGroupInputs, x_stride);
    }
  }
  StoreSums<kFormat>(sums, task, place);
}

// How outputs of one format are computed, kOutputs at a time.
template <BlockFormat kStored, bool kScaled>
struct Streamer {
  static constexpr BlockFormat kFormat = kStored;
  static constexpr uint32_t kExponents = kF8Exponents;  // that weights lack when kScaled
  template <int kOutputs, int kRows>
  static void Stream(const BlockTask& task, StreamPlace place, const float* x, uint64_t x_stride) {
    StreamOutputsOf<kFormat, kScaled, kOutputs, kRows>(task, place, x, x_stride);
  }
};

template <typename S, int kRows>
void StreamRows(const BlockTask& task, const float* x, uint64_t x_stride) {
  constexpr uint32_t kOutputs = StreamOutputs<S::kFormat>(kRows);
  static_assert(kOutputsTogether % kOutputs == 0);
  const uint32_t apart = (task.output_end - task.output_begin) / kOutputs;
  for (uint32_t done = 0; done < apart; ++done) {
    S::template Stream<kOutputs, kRows>(task, {task.output_begin + done, apart, done}, x, x_stride);
  }
  for (uint32_t o = task.output_begin + apart * kOutputs; o < task.output_end; ++o) {
    S::template Stream<1, kRows>(task, {o, 1, 0}, x, x_stride);
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

#include "tensor/cpu/block_f8-inl.h"
