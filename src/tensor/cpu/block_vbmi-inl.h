// tensor/cpu/block_vbmi-inl.h
// Few rows times kF8Block32 on processors with VBMI: 64 weights become f32 at once, where
// conversions by way of f16 take twice the instructions. Two ways: by shifts, for processors that
// multiply subnormal numbers as fast as others, and by tables of normal ones. Included after
// all-inl.h, in a region of its own; everything else is the products of block-inl.h, and so are the
// bits.

constexpr uint32_t kWideInputs = 64;
static_assert(kStagedUnit == kWideInputs);

// Where each byte of a vector comes from, among 64 weights.
struct WideOrder {
  alignas(64) uint8_t from[kWideInputs];
};

// Byte v of lane i is input 16 v + i.
constexpr WideOrder MakeShiftOrder() {
  WideOrder order = {};
  for (uint32_t i = 0; i < kWideInputs; ++i) {
    order.from[i] = static_cast<uint8_t>(i % 4 * 16 + i / 4);
  }
  return order;
}
alignas(64) constexpr WideOrder kShiftOrder = MakeShiftOrder();

// A code at the head of a lane, shifted right by 4 with its sign, has exponent and mantissa where
// an f32 has them, biased by 7 instead of 127; those of exponent 0 are subnormal in both.
struct F8Shifts {
  static constexpr uint32_t kExponents = 120;
  static void Widen(__m512i bytes, Floats (&w)[4]) {
    const __m512i codes = _mm512_permutexvar_epi8(_mm512_load_si512(kShiftOrder.from), bytes);
    const __m512i odd = _mm512_srai_epi16(codes, 4);
    const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(codes, 8), 4);
    const __m512i kept = _mm512_set1_epi32(static_cast<int>(0x87f00000));
    w[0] = _mm512_castsi512_ps(_mm512_and_si512(_mm512_slli_epi32(even, 16), kept));
    w[1] = _mm512_castsi512_ps(_mm512_and_si512(_mm512_slli_epi32(odd, 16), kept));
    w[2] = _mm512_castsi512_ps(_mm512_and_si512(even, kept));
    w[3] = _mm512_castsi512_ps(_mm512_and_si512(odd, kept));
  }
};

// Where each weight stands before its bytes are made words and its words are made floats, so that
// the four vectors come out as inputs 0.., 16.., 32.., 48.. in order.
constexpr WideOrder MakeTableOrder() {
  WideOrder order = {};
  for (uint32_t i = 0; i < kWideInputs; ++i) {
    const uint32_t vector = i % 16 / 8 * 2 + i % 2;  // of the four
    order.from[i] = static_cast<uint8_t>(16 * vector + i / 16 * 4 + i % 8 / 2);
  }
  return order;
}
alignas(64) constexpr WideOrder kTableOrder = MakeTableOrder();
alignas(64) constexpr F8Bytes kF8Bytes = MakeF8Bytes(kF8Exponents);

// As WidenF8.
struct F8Tables {
  static constexpr uint32_t kExponents = kF8Exponents;
  static void Widen(__m512i bytes, Floats (&w)[4]) {
    const __m512i codes = _mm512_permutexvar_epi8(_mm512_load_si512(kTableOrder.from), bytes);
    const __m512i low = _mm512_permutex2var_epi8(_mm512_load_si512(kF8Bytes.low), codes,
                                                 _mm512_load_si512(kF8Bytes.low + 64));
    const __m512i magnitude = _mm512_permutex2var_epi8(_mm512_load_si512(kF8Bytes.high), codes,
                                                       _mm512_load_si512(kF8Bytes.high + 64));
    // magnitude | (codes & sign)
    const __m512i high = _mm512_ternarylogic_epi32(magnitude, codes,
                                                   _mm512_set1_epi8(static_cast<char>(0x80)), 0xf8);
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; ++half) {
      const __m512i words =
          half == 0 ? _mm512_unpacklo_epi8(low, high) : _mm512_unpackhi_epi8(low, high);
      w[2 * half] = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
      w[2 * half + 1] = _mm512_castsi512_ps(_mm512_and_si512(words, upper));
    }
  }
};

// 64 weights of each of kOutputs streams, or what is left of them, and 0 for the others.
template <typename W, bool kWhole, int kOutputs, int kRows>
inline void AddWide(StreamSums<kOutputs, kRows>& sums, const std::byte* weights, uint64_t apart,
                    uint64_t left, const float* x, uint64_t x_stride) {
  const __mmask64 mask = kWhole ? 0 : (__mmask64{1} << left) - 1;
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o, weights += apart) {
    Floats w[4];
    W::Widen(kWhole ? _mm512_loadu_si512(weights) : _mm512_maskz_loadu_epi8(mask, weights), w);
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < 4; ++v) {
        Floats& sum = sums.at[o][row][0];
        sum = Fma(w[v], Load(x + row * x_stride + v * kLanes), sum);
      }
    }
  }
}

// As StreamOutputsOf, with the scales in x, which is padded to whole kWideInputs.
template <typename W, int kOutputs, int kRows>
[[gnu::noinline]] void StreamWideOutputs(const BlockTask& task, StreamPlace place, const float* x,
                                         uint64_t x_stride) {
  constexpr BlockFormat kF8 = BlockFormat::kF8Block32;
  const uint64_t row_bytes = task.matrix->inputs;
  const std::byte* weights = task.matrix->weights + place.output * row_bytes;
  const uint64_t apart = place.apart * row_bytes;
  const uint64_t left = apart - place.done * row_bytes;
  StreamSums<kOutputs, kRows> sums;
  ClearSums(sums);
  uint64_t at = 0;
  for (; at + kWideInputs <= row_bytes; at += kWideInputs) {
    AskAhead<kF8, kOutputs>(weights, at, left, apart);
    AddWide<W, true>(sums, weights + at, apart, kWideInputs, x + at, x_stride);
  }
  if (at < row_bytes) {
    AddWide<W, false>(sums, weights + at, apart, row_bytes - at, x + at, x_stride);
  }
  StoreSums<kF8>(sums, task, place);
}

template <typename W>
struct WideF8 {
  static constexpr BlockFormat kFormat = BlockFormat::kF8Block32;
  static constexpr uint32_t kExponents = W::kExponents;
  template <int kOutputs, int kRows>
  static void Stream(const BlockTask& task, StreamPlace place, const float* x, uint64_t x_stride) {
    StreamWideOutputs<W, kOutputs, kRows>(task, place, x, x_stride);
  }
};

template <typename W>
void MultiplyBlocksWide(const BlockTask& task) {
  if (task.matrix->format != BlockFormat::kF8Block32 || task.rows > kStreamRowsMax) {
    return MultiplyBlocks(task);
  }
  StreamF8<WideF8<W>>(task);
}
