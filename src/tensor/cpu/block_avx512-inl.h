// tensor/cpu/block_avx512-inl.h
// Primitives of block-inl.h: 32 weights as a checkpoint stores them become two vectors, in the
// order of their virtual lanes, and 32 activations likewise. Twin: block_avx2-inl.h.

// Rows up to which weights are widened in registers, and the outputs that share such a pass.
constexpr uint32_t kStreamRowsMax = 4;
// Of F4 more would be too many streams for what it takes to widen one.
template <BlockFormat kFormat>
constexpr uint32_t StreamOutputs(int rows) {
  return rows == 1 && kFormat != BlockFormat::kF4Group32 ? 8 : 4;
}
// Rows of a tile of widened weights; 4 * kPieceRowsMax sums fill the registers.
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

// E4M3 by way of f16: the same bits with three more of exponent, so 2^-8 of the value. All are then
// normal numbers, which no processor is slow with.
constexpr uint32_t kF8Exponents = 8;
inline Floats WidenSixteenF8(const std::byte* p) {
  const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm512_cvtph_ps(
      _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(static_cast<short>(0xbfff))));
}
inline void WidenF8(const std::byte* p, Floats (&w)[2]) {
  w[0] = WidenSixteenF8(p);
  w[1] = WidenSixteenF8(p + 16);
}

// Of the values added, as f32 bits: the largest magnitude, and the least that is not 0 (the largest
// finite one where there is none).
class Magnitudes {
 public:
  Magnitudes() : most_(_mm512_setzero_si512()), less_(_mm512_set1_epi32(0x7f7ffffe)) {}
  void Add(Floats x) {
    const Ints bits = MagnitudeBits(x);
    most_ = _mm512_max_epu32(most_, bits);
    less_ = _mm512_min_epu32(less_, _mm512_sub_epi32(bits, _mm512_set1_epi32(1)));
  }
  uint32_t LargestBits() const { return _mm512_reduce_max_epu32(most_); }
  uint32_t LeastBits() const { return _mm512_reduce_min_epu32(less_) + 1; }

 private:
  Ints most_;
  Ints less_;  // one less than the least
};

// Eight bytes in every lane, shifted so that lane 2 i has input i in its low bits and lane 2 i + 1
// input 8 + i; a permutation of the values, already scaled, ignores the bits above.
alignas(64) constexpr F4Values kF4Values = MakeF4Values();
inline Floats WidenSixteenF4(const std::byte* p, Floats values) {
  long long bytes;
  __builtin_memcpy(&bytes, p, 8);
  const __m512i shifts = _mm512_set_epi32(28, 28, 24, 24, 20, 20, 16, 16, 12, 12, 8, 8, 4, 4, 0, 0);
  return _mm512_permutexvar_ps(_mm512_srlv_epi32(_mm512_set1_epi64(bytes), shifts), values);
}
inline void WidenF4(const std::byte* p, uint32_t scale, Floats (&w)[2]) {
  const Floats values = _mm512_castsi512_ps(_mm512_load_si512(kF4Values.bits[scale]));
  w[0] = WidenSixteenF4(p, values);
  w[1] = WidenSixteenF4(p + 8, values);
}

// 16 activations in the order in which WidenF4 has their weights, and back.
inline void ToF4Order(Floats (&x)[1]) {
  x[0] = _mm512_permutexvar_ps(
      _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0), x[0]);
}
inline void FromF4Order(Floats (&x)[1]) {
  x[0] = _mm512_permutexvar_ps(
      _mm512_set_epi32(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0), x[0]);
}
