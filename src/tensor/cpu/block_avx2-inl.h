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

// Four bytes in every lane, shifted so that lane i has input i in its low bits. A permutation looks
// at three of them, and exclusive or with the fourth sets the sign.
alignas(32) constexpr F4Magnitudes kF4Magnitudes = MakeF4Magnitudes();
inline void WidenF4(const std::byte* p, uint32_t scale, Floats (&w)[4]) {
  const Floats magnitudes = _mm256_castsi256_ps(
      _mm256_load_si256(reinterpret_cast<const __m256i*>(kF4Magnitudes.bits[scale])));
  const Ints shifts = _mm256_set_epi32(28, 24, 20, 16, 12, 8, 4, 0);
#pragma GCC unroll 4
  for (uint32_t v = 0; v < 4; ++v) {
    int32_t bytes;
    __builtin_memcpy(&bytes, p + 4 * v, 4);
    const Ints codes = _mm256_srlv_epi32(_mm256_set1_epi32(bytes), shifts);
    w[v] = _mm256_xor_ps(_mm256_permutevar8x32_ps(magnitudes, codes),
                         _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
  }
}

constexpr bool kF4InOrder = true;
inline Floats ToF4Order(Floats x) { return x; }
inline Floats FromF4Order(Floats x) { return x; }
