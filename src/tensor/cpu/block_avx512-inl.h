// tensor/cpu/block_avx512-inl.h
// Primitives of block-inl.h: 32 weights as a checkpoint stores them become two vectors, in the
// order of their virtual lanes, and 32 activations likewise. Twin: block_avx2-inl.h.

// Rows up to which weights are widened in registers, and the outputs that share such a pass.
constexpr uint32_t kStreamRowsMax = 4;
constexpr uint32_t StreamOutputs(int /*rows*/) { return 4; }
// Rows of a tile of widened weights; kOutputsTogether * kPieceRowsMax sums fill the registers.
constexpr uint32_t kPieceRowsMax = 6;

inline void WidenF32(const std::byte* p, Floats (&w)[2]) {
  w[0] = _mm512_loadu_ps(p);
  w[1] = _mm512_loadu_ps(p + 64);
}

inline Floats WidenSixteenBf16(const std::byte* p) {
  const __m512i words =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}
inline void WidenBf16(const std::byte* p, Floats (&w)[2]) {
  w[0] = WidenSixteenBf16(p);
  w[1] = WidenSixteenBf16(p + 32);
}

// E4M3 times `factor`, by way of f16: the same bits with three more of exponent, so 2^-8 of the
// value; its subnormals are normal f32.
constexpr uint32_t kF8Exponents = 8;  // that `factor` has to give back
inline void WidenF8(const std::byte* p, Floats factor, Floats (&w)[2]) {
  const __m512i words =
      _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  const __m512i halfs =
      _mm512_and_si512(_mm512_slli_epi16(words, 7), _mm512_set1_epi16(static_cast<short>(0xbfff)));
  w[0] = _mm512_mul_ps(_mm512_cvtph_ps(_mm512_castsi512_si256(halfs)), factor);
  w[1] = _mm512_mul_ps(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halfs, 1)), factor);
}

// The low halves of 16 bytes, then the high ones: even inputs, then odd ones. The multiplication
// shifts right by 4, on units that neither permutations nor products need.
alignas(64) constexpr F4Values kF4Values = MakeF4Values();
inline void WidenF4(const std::byte* p, uint32_t scale, Floats (&w)[2]) {
  const Floats values = _mm512_castsi512_ps(_mm512_load_si512(kF4Values.bits[scale]));
  const __m512i low = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512i high = _mm512_mulhi_epu16(low, _mm512_set1_epi32(1 << 12));
  w[0] = _mm512_permutexvar_ps(low, values);
  w[1] = _mm512_permutexvar_ps(high, values);
}

// 32 activations in the order of WidenF4.
inline void SplitPairs(const float* p, Floats (&x)[2]) {
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
  const Floats first = _mm512_loadu_ps(p);
  const Floats second = _mm512_loadu_ps(p + 16);
  x[0] = _mm512_permutex2var_ps(first, even, second);
  x[1] = _mm512_permutex2var_ps(first, odd, second);
}
