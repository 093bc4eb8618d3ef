// tensor/cpu/block_avx2-inl.h
// Primitives of block-inl.h: 32 weights as a checkpoint stores them become four vectors, in the
// order of their virtual lanes, and 32 activations likewise. Twin: block_avx512-inl.h.

constexpr uint32_t kStreamRowsMax = 3;
template <BlockFormat>
constexpr uint32_t StreamOutputs(int rows) {
  return rows == 1 ? 4 : 2;
}
constexpr uint32_t kPieceRowsMax = 3;

inline void WidenF32(const std::byte* p, Floats (&w)[4]) {
#pragma GCC unroll 4
  for (uint32_t v = 0; v < 4; ++v) {
    w[v] = _mm256_loadu_ps(reinterpret_cast<const float*>(p + 32 * v));
  }
}

inline void WidenBf16(const std::byte* p, Floats (&w)[4]) {
#pragma GCC unroll 4
  for (uint32_t v = 0; v < 4; ++v) {
    const Ints words =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * v)));
    w[v] = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
  }
}

constexpr uint32_t kF8Exponents = 8;
inline void WidenF8(const std::byte* p, Floats (&w)[4]) {
#pragma GCC unroll 2
  for (uint32_t half = 0; half < 2; ++half) {
    const Ints words =
        _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * half)));
    const Ints halfs = _mm256_and_si256(_mm256_slli_epi16(words, 7),
                                        _mm256_set1_epi16(static_cast<short>(0xbfff)));
    w[2 * half] = _mm256_cvtph_ps(_mm256_castsi256_si128(halfs));
    w[2 * half + 1] = _mm256_cvtph_ps(_mm256_extracti128_si256(halfs, 1));
  }
}

// Of the values added, as f32 bits: the largest magnitude, and the least that is not 0 (the largest
// finite one where there is none).
class Magnitudes {
 public:
  Magnitudes() : most_(_mm256_setzero_si256()), less_(_mm256_set1_epi32(0x7f7ffffe)) {}
  void Add(Floats x) {
    const Ints bits = MagnitudeBits(x);
    most_ = _mm256_max_epu32(most_, bits);
    less_ = _mm256_min_epu32(less_, _mm256_sub_epi32(bits, _mm256_set1_epi32(1)));
  }
  uint32_t LargestBits() const {
    alignas(32) uint32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), most_);
    uint32_t bits = lanes[0];
    for (uint32_t i = 1; i < 8; ++i) bits = lanes[i] > bits ? lanes[i] : bits;
    return bits;
  }
  uint32_t LeastBits() const {
    alignas(32) uint32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), less_);
    uint32_t bits = lanes[0];
    for (uint32_t i = 1; i < 8; ++i) bits = lanes[i] < bits ? lanes[i] : bits;
    return bits + 1;
  }

 private:
  Ints most_;
  Ints less_;  // one less than the least
};

// A code's value has bits in the upper half of an f32 alone, so that two lookups of bytes, which
// have room for all 16 codes, give 32 values: even inputs in the lower half of a vector and odd
// ones in the upper. In fours, lanes then have inputs 0 4 8 12, 1 5 9 13; 2 6 10 14, 3 7 11 15.
alignas(16) constexpr F4Bytes kF4Bytes = MakeF4Bytes();
inline Ints InBothHalves(const void* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline void WidenF4(const std::byte* p, uint32_t scale, Floats (&w)[4]) {
  const Ints codes = _mm256_and_si256(
      _mm256_srlv_epi64(InBothHalves(p), _mm256_set_epi64x(4, 4, 0, 0)), _mm256_set1_epi8(15));
  const Ints high = _mm256_shuffle_epi8(InBothHalves(kF4Bytes.of[scale].high), codes);
  const Ints low = _mm256_shuffle_epi8(InBothHalves(kF4Bytes.of[scale].low), codes);
  const Ints upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
#pragma GCC unroll 2
  for (uint32_t half = 0; half < 2; ++half) {
    const Ints words =
        half == 0 ? _mm256_unpacklo_epi8(low, high) : _mm256_unpackhi_epi8(low, high);
    w[2 * half] = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    w[2 * half + 1] = _mm256_castsi256_ps(_mm256_and_si256(words, upper));
  }
}

// 16 activations into the order in which WidenF4 has their weights, and back: the inputs, four in a
// row, are transposed.
inline Floats Columns(Floats pairs) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xd8));
}
inline void ToF4Order(Floats (&x)[2]) {
  const Floats even_rows = _mm256_permute2f128_ps(x[0], x[1], 0x20);
  const Floats odd_rows = _mm256_permute2f128_ps(x[0], x[1], 0x31);
  x[0] = Columns(_mm256_unpacklo_ps(even_rows, odd_rows));
  x[1] = Columns(_mm256_unpackhi_ps(even_rows, odd_rows));
}
inline void FromF4Order(Floats (&x)[2]) { ToF4Order(x); }
