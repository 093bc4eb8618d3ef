// tensor/cpu/block_avx2-inl.h
// Primitives of block-inl.h: 32 weights as a checkpoint stores them become four vectors, in the
// order of their virtual lanes, and 32 activations likewise. Twin: block_avx512-inl.h.

constexpr uint32_t kStreamRowsMax = 3;
constexpr uint32_t StreamOutputs(int rows) { return rows == 1 ? 4 : 2; }
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

// Whether any pair of values that were added differs; NaN does.
class Differences {
 public:
  void Add(Floats a, Floats b) { any_ = _mm256_or_ps(any_, _mm256_cmp_ps(a, b, _CMP_NEQ_UQ)); }
  bool found() const { return _mm256_movemask_ps(any_) != 0; }

 private:
  Floats any_ = {};
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
