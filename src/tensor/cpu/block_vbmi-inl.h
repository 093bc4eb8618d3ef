// tensor/cpu/block_vbmi-inl.h
// Few rows times kF8Block32 on processors with VBMI: two lookups of bytes widen 64 weights, where
// conversions by way of f16 take twice the instructions. Included after all-inl.h, in a region of
// its own; everything else is the products of block-inl.h, and so are the bits.

constexpr uint32_t kWideInputs = 64;

alignas(64) constexpr F8Bytes kF8Bytes = MakeF8Bytes(kF8Exponents);

// Where each weight stands before its bytes are made words and its words are made floats, so that
// the four vectors come out as inputs 0.., 16.., 32.., 48.. in order.
struct WideOrder {
  alignas(64) uint8_t from[kWideInputs];
};
constexpr WideOrder MakeWideOrder() {
  WideOrder order = {};
  for (uint32_t i = 0; i < kWideInputs; ++i) {
    const uint32_t vector = i % 16 / 8 * 2 + i % 2;  // of the four
    order.from[i] = static_cast<uint8_t>(16 * vector + i / 16 * 4 + i % 8 / 2);
  }
  return order;
}
alignas(64) constexpr WideOrder kWideOrder = MakeWideOrder();

// As WidenF8, of 64 weights.
inline void WidenWideF8(const std::byte* p, Floats (&w)[4]) {
  const __m512i codes =
      _mm512_permutexvar_epi8(_mm512_load_si512(kWideOrder.from), _mm512_loadu_si512(p));
  const __m512i low = _mm512_permutex2var_epi8(_mm512_load_si512(kF8Bytes.low), codes,
                                               _mm512_load_si512(kF8Bytes.low + 64));
  const __m512i magnitude = _mm512_permutex2var_epi8(_mm512_load_si512(kF8Bytes.high), codes,
                                                     _mm512_load_si512(kF8Bytes.high + 64));
  // magnitude | (codes & sign)
  const __m512i high =
      _mm512_ternarylogic_epi32(magnitude, codes, _mm512_set1_epi8(static_cast<char>(0x80)), 0xf8);
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
#pragma GCC unroll 2
  for (uint32_t half = 0; half < 2; ++half) {
    const __m512i words =
        half == 0 ? _mm512_unpacklo_epi8(low, high) : _mm512_unpackhi_epi8(low, high);
    w[2 * half] = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
    w[2 * half + 1] = _mm512_castsi512_ps(_mm512_and_si512(words, upper));
  }
}

// As StreamOutputsOf, with the scales in x.
template <int kOutputs, int kRows>
void StreamWideOutputs(const BlockTask& task, uint32_t output, const float* x, uint64_t x_stride) {
  const BlockMatrix& matrix = *task.matrix;
  const uint64_t row_bytes = matrix.inputs;
  const std::byte* weights = matrix.weights + output * row_bytes;
  StreamSums<kOutputs, kRows> sums;
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) sums.at[o][row][0] = Zero();
  }
  StreamAhead<kOutputs> stream(row_bytes);
  uint64_t at = 0;
  for (; at + kWideInputs <= row_bytes; at += kWideInputs) {
    const uint64_t ahead = stream.From(at);
#pragma GCC unroll 16
    for (int o = 0; o < kOutputs; ++o) {
      __builtin_prefetch(weights + o * row_bytes + ahead, 0, 2);
      Floats w[4];
      WidenWideF8(weights + o * row_bytes + at, w);
#pragma GCC unroll 4
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
        for (uint32_t v = 0; v < 4; ++v) {
          Floats& sum = sums.at[o][row][0];
          sum = Fma(w[v], Load(x + row * x_stride + at + v * kLanes), sum);
        }
      }
    }
  }
  constexpr BlockFormat kF8 = BlockFormat::kF8Block32;
  if (at + kGroupInputs <= row_bytes) {
    AddStreamed<kF8, true>(sums, weights + at, row_bytes, nullptr, 0, 0, x + at, x_stride);
    at += kGroupInputs;
  }
  if (at < row_bytes) {
    AddEnd<kF8, true>(sums, weights + at, row_bytes, nullptr, 0,
                      static_cast<uint32_t>(row_bytes - at), x + at, x_stride);
  }
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
      task.out[row * task.out_stride + output + o] = SumOfSixteen(sums.at[o][row]);
    }
  }
}

struct WideF8 {
  template <int kOutputs, int kRows>
  static void Stream(const BlockTask& task, uint32_t output, const float* x, uint64_t x_stride) {
    StreamWideOutputs<kOutputs, kRows>(task, output, x, x_stride);
  }
};

void MultiplyBlocksVbmi(const BlockTask& task) {
  const bool staged = uint64_t{task.rows} * task.matrix->inputs <= kStagedFloats;
  if (task.matrix->format != BlockFormat::kF8Block32 || task.rows > kStreamRowsMax || !staged) {
    return MultiplyBlocks(task);
  }
  StreamF8<WideF8>(task);
}
