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
inline void WidenF8(const std::byte* p, Floats factor, Floats (&w)[4]) {
#pragma GCC unroll 2
  for (uint32_t half = 0; half < 2; ++half) {
    const Ints words =
        _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * half)));
    const Ints halfs = _mm256_and_si256(_mm256_slli_epi16(words, 7),
                                        _mm256_set1_epi16(static_cast<short>(0xbfff)));
    w[2 * half] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(halfs)), factor);
    w[2 * half + 1] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(halfs, 1)), factor);
  }
}

// A permutation looks at the low three bits of a code only; the sign is set by exclusive or.
alignas(32) constexpr F4Magnitudes kF4Magnitudes = MakeF4Magnitudes();
inline Floats WidenEightF4(Ints codes, Floats magnitudes) {
  return _mm256_xor_ps(_mm256_permutevar8x32_ps(magnitudes, codes),
                       _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
}
inline void WidenF4(const std::byte* p, uint32_t scale, Floats (&w)[4]) {
  const Floats magnitudes = _mm256_castsi256_ps(
      _mm256_load_si256(reinterpret_cast<const __m256i*>(kF4Magnitudes.bits[scale])));
#pragma GCC unroll 2
  for (uint32_t half = 0; half < 2; ++half) {
    const Ints low =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8 * half)));
    const Ints high = _mm256_mulhi_epu16(low, _mm256_set1_epi32(1 << 12));
    w[half] = WidenEightF4(low, magnitudes);
    w[half + 2] = WidenEightF4(high, magnitudes);
  }
}

// 32 activations in the order of WidenF4.
inline void SplitPairs(const float* p, Floats (&x)[4]) {
#pragma GCC unroll 2
  for (uint32_t half = 0; half < 2; ++half) {
    const Floats first = _mm256_loadu_ps(p + 16 * half);
    const Floats second = _mm256_loadu_ps(p + 16 * half + 8);
    const __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(first, second, 0x88));
    const __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(first, second, 0xdd));
    x[half] = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
    x[half + 2] = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8));
  }
}
