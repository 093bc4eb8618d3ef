// tensor/cpu/block_f8-inl.h
// Few rows times kF8Block32: 32 outputs share their scales, so that rows are multiplied by these
// once for them all, and no weight is, wherever that is exact. Included by block_stream-inl.h;
// faster ways to widen the weights, for some processors: block_vbmi-inl.h.

constexpr float kFloatMax = 0x1.fffffep127f;
constexpr float kFloatNormal = 0x1p-126f;  // the least with all bits

// Rows of kF8Block32 are staged in multiples of so many inputs, the last ones padded with -0.
constexpr uint32_t kStagedUnit = 64;
constexpr uint32_t StagedInputs(uint32_t inputs) {
  return (inputs + kStagedUnit - 1) / kStagedUnit * kStagedUnit;
}

// The factors of a block's scales: 2^exponents above them, one for each group of inputs.
struct ScaleFactors {
  float of[kStagedFloats / kGroupInputs];
  float largest;
  float least;
};
inline void FindFactors(const std::byte* scales, uint32_t groups, uint32_t exponents,
                        ScaleFactors& factors) {
  alignas(64) std::byte padded[kStagedFloats / kGroupInputs + kLanes];
  __builtin_memcpy(padded, scales, groups);
  __builtin_memset(padded + groups, static_cast<int>(scales[groups - 1]), kLanes);
  const Floats shift = Set(PowerFromBits(127 + exponents));
  Floats largest = Zero();
  Floats minus_least = Set(-kFloatMax);
  for (uint32_t g = 0; g < groups; g += kLanes) {
    // A scale of 0, whose power is no normal number, comes out as 0 here.
    const Floats factor = Mul(PowersOfTwo(LoadUint8s(padded + g)), shift);
    Store(factors.of + g, factor);
    largest = Max(largest, factor);
    minus_least = Max(minus_least, Negate(factor));
  }
  factors.largest = MaxOfLanes(largest);
  factors.least = -MaxOfLanes(minus_least);
}

// Rows times the scales of a block of kF8Block32, so that no weight needs it: a power of two may be
// on either side of a product as long as both sides stay exact.
inline void ScaleRows(const BlockTask& task, const ScaleFactors& factors, float* staged) {
  const uint32_t inputs = task.matrix->inputs;
  const uint32_t stride = StagedInputs(inputs);
  const uint32_t whole = inputs / kGroupInputs * kGroupInputs;
  for (uint32_t row = 0; row < task.rows; ++row, staged += stride) {
    const float* x = task.x + row * task.x_stride;
    for (uint32_t i = 0; i < whole; i += kGroupInputs) {
      const Floats factor = Set(factors.of[i / kGroupInputs]);
#pragma GCC unroll 4
      for (uint32_t k = i; k < i + kGroupInputs; k += kLanes) {
        Store(staged + k, Mul(Load(x + k), factor));
      }
    }
    for (uint32_t k = whole; k < inputs; ++k) staged[k] = x[k] * factors.of[k / kGroupInputs];
    for (uint32_t k = inputs; k < stride; ++k) staged[k] = -0.0f;
  }
}

// The magnitudes of all rows: the largest, and the least that is not 0.
inline Magnitudes MagnitudesOf(const BlockTask& task) {
  Magnitudes magnitudes;
  const uint32_t inputs = task.matrix->inputs;
  for (uint32_t row = 0; row < task.rows; ++row) {
    const float* x = task.x + row * task.x_stride;
    uint32_t i = 0;
    for (; i + kLanes <= inputs; i += kLanes) magnitudes.Add(Load(x + i));
    for (; i < inputs; ++i) magnitudes.Add(Set(x[i]));
  }
  return magnitudes;
}

// S streams what has its scales in x. staged: rows * StagedInputs(inputs) values, or null.
template <typename S, int kRows>
void StreamScaled(const BlockTask& task, float* staged) {
  using Unscaled = Streamer<BlockFormat::kF8Block32, false>;
  const uint32_t inputs = task.matrix->inputs;
  const Magnitudes magnitudes = MagnitudesOf(task);
  const float largest = FromBits(magnitudes.LargestBits());
  const float least = FromBits(magnitudes.LeastBits());
  ScaleFactors factors;
  BlockTask block = task;  // outputs that share their scales
  for (uint32_t begin = task.output_begin; begin < task.output_end; begin = block.output_end) {
    block.output_begin = begin;
    block.output_end = Least(task.output_end, begin / kScaleBlock * kScaleBlock + kScaleBlock);
    bool exact = staged != nullptr;
    if (exact) {
      FindFactors(ScalesOf<BlockFormat::kF8Block32>(*task.matrix, begin),
                  (inputs + kGroupInputs - 1) / kGroupInputs, S::kExponents, factors);
      // Neither too large for an f32 nor, with the last bits at stake, too small; NaN is neither.
      exact = largest * factors.largest <= kFloatMax && least * factors.least >= kFloatNormal;
    }
    if (exact) {
      ScaleRows(task, factors, staged);
      StreamRows<S, kRows>(block, staged, StagedInputs(inputs));
    } else {
      StreamRows<Unscaled, kRows>(block, task.x, task.x_stride);
    }
  }
}

template <typename S>
void StreamF8(const BlockTask& task) {
  const bool fits = uint64_t{task.rows} * StagedInputs(task.matrix->inputs) <= kStagedFloats;
  WithFew<kStreamRowsMax>(task.rows, [&]<typename Rows>(Rows) {
    alignas(64) float staged[kStagedFloats];
    StreamScaled<S, Rows::kValue>(task, fits ? staged : nullptr);
  });
}
