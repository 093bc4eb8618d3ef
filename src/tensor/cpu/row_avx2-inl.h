// tensor/cpu/row_avx2-inl.h
// Primitives of cache rows: small floats to f32 and back, 8 at a time, sums of dot products, and
// transposition. Twin: row_avx512-inl.h.

// ---- widening ----

// The low four bits of each lane, as E2M1; the others may be anything. A permutation looks at three
// bits; the table holds them once more where the shift puts them, so that exclusive or clears them.
inline Floats F4Floats(Ints codes) {
  const Ints values = _mm256_set_epi32(
      0x40c00000 ^ 7 << 28, 0x40800000 ^ 6 << 28, 0x40400000 ^ 5 << 28, 0x40000000 ^ 4 << 28,
      0x3fc00000 ^ 3 << 28, 0x3f800000 ^ 2 << 28, 0x3f000000 ^ 1 << 28, 0);
  const Ints magnitudes = _mm256_permutevar8x32_epi32(values, codes);
  return _mm256_castsi256_ps(_mm256_xor_si256(magnitudes, _mm256_slli_epi32(codes, 28)));
}
inline Floats LoadF4(const void* p) {
  int32_t bytes;
  __builtin_memcpy(&bytes, p, 4);
  const __m256i both = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes));
  return F4Floats(_mm256_or_si256(both, _mm256_slli_epi64(both, 28)));
}
// By way of f16: E4M3 has the same bits with one more of exponent there, worth 2^-8 of its value.
inline Floats LoadF8(const void* p) {
  const __m128i words = _mm_cvtepi8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
  const __m128i nan = _mm_set1_epi16(0x3f80);
  __m128i halfs =
      _mm_and_si128(_mm_slli_epi16(words, 7), _mm_set1_epi16(static_cast<int16_t>(0xbfff)));
  const __m128i none = _mm_cmpeq_epi16(_mm_and_si128(halfs, nan), nan);
  halfs = _mm_or_si128(halfs, _mm_srli_epi16(none, 1));
  return _mm256_mul_ps(_mm256_cvtph_ps(halfs), _mm256_set1_ps(256));
}
inline Ints ShiftOutCode(Ints codes) { return _mm256_srli_epi32(codes, 4); }

// ---- narrowing ----

inline uint32_t MaxOfInts(Ints a) {
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
}

// Codes of Code (cache_rows-inl.h), one in each lane.
template <typename Code>
inline Ints RoundToCodes(Floats x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i sign =
      _mm256_srli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(INT32_MIN)), Code::kSignShift);
  const __m256 magnitude =
      _mm256_min_ps(_mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(INT32_MAX))),
                    _mm256_set1_ps(Code::kMax));
  const __m256i m = _mm256_castps_si256(magnitude);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(m, Code::kShift), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(m, odd), _mm256_set1_epi32(Code::kUp));
  const __m256i normal =
      _mm256_sub_epi32(_mm256_srli_epi32(up, Code::kShift), _mm256_set1_epi32(Code::kBias));
  const __m256 shift = _mm256_set1_ps(Code::kSubnormalShift);
  const __m256i subnormal = _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(magnitude, shift)),
                                             _mm256_castps_si256(shift));
  const __m256 small = _mm256_cmp_ps(magnitude, _mm256_set1_ps(Code::kLeastNormal), _CMP_LT_OQ);
  return _mm256_or_si256(sign, _mm256_blendv_epi8(normal, subnormal, _mm256_castps_si256(small)));
}
inline void StoreF8(void* p, Ints codes) {
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));
  _mm_storel_epi64(static_cast<__m128i*>(p), _mm_packus_epi16(words, words));
}
inline void StoreF4(void* p, Ints codes) {
  const __m256i both = _mm256_or_si256(codes, _mm256_srli_epi64(codes, 28));
  const __m128i first = _mm_set_epi64x(-1, static_cast<int64_t>(0xffffffffffff0800u));
  const __m128i low = _mm_shuffle_epi8(_mm256_castsi256_si128(both), first);
  const __m128i high = _mm_shuffle_epi8(_mm256_extracti128_si256(both, 1), first);
  const int32_t bytes = _mm_cvtsi128_si32(_mm_unpacklo_epi16(low, high));
  __builtin_memcpy(p, &bytes, 4);
}
inline Floats RoundBf16(Floats x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i mask = _mm256_set1_epi32(static_cast<int32_t>(0xffff0000u));
  return _mm256_castsi256_ps(_mm256_and_si256(_mm256_blendv_epi8(up, quiet, nan), mask));
}

// ---- dot products ----

// A tile of dot products, each in 16 virtual lanes; with keys and one query it fills the registers.
constexpr uint32_t kDotKeys = 3;
constexpr uint32_t kDotHeads = 2;

inline Floats FoldFours(Floats a, Floats b) {
  return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}
inline Floats FoldTwos(Floats a, Floats b) {
  return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
}
inline Floats FoldOnes(Floats a, Floats b) {
  return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
}

// scores[head][key, key + 3) = scale * the folded sums; one score more is overwritten.
template <uint32_t kHeads>
inline void FoldDots(const Floats (&sums)[kDotKeys][kHeads][2], float scale,
                     float (*scores)[kPageTokens], uint32_t key) {
  Floats four[kDotKeys];  // of a key, a half for each head
#pragma GCC unroll 3
  for (uint32_t k = 0; k < kDotKeys; ++k) {
    const Floats first = _mm256_add_ps(sums[k][0][0], sums[k][0][1]);
    const Floats second =
        kHeads == 1 ? first : _mm256_add_ps(sums[k][kHeads - 1][0], sums[k][kHeads - 1][1]);
    four[k] = FoldFours(first, second);
  }
  const Floats folded = FoldOnes(FoldTwos(four[0], four[1]), FoldTwos(four[2], four[2]));
  const Floats scaled = _mm256_mul_ps(folded, _mm256_set1_ps(scale));
  _mm_storeu_ps(&scores[0][key], _mm256_castps256_ps128(scaled));
  if constexpr (kHeads > 1) _mm_storeu_ps(&scores[1][key], _mm256_extractf128_ps(scaled, 1));
}

// ---- transposition ----

// out[i] = the 32-bit word at rows[lane] + offset + 4 i, for every lane.
inline void TransposeFours(const std::byte* const* rows, uint64_t offset, Ints (&out)[4]) {
  __m256i halves[4];
#pragma GCC unroll 4
  for (uint32_t r = 0; r < 4; ++r) {
    const auto four = [&](uint32_t row) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[row] + offset));
    };
    halves[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(four(r)), four(r + 4), 1);
  }
  const __m256i low01 = _mm256_unpacklo_epi32(halves[0], halves[1]);
  const __m256i low23 = _mm256_unpacklo_epi32(halves[2], halves[3]);
  const __m256i high01 = _mm256_unpackhi_epi32(halves[0], halves[1]);
  const __m256i high23 = _mm256_unpackhi_epi32(halves[2], halves[3]);
  out[0] = _mm256_unpacklo_epi64(low01, low23);
  out[1] = _mm256_unpackhi_epi64(low01, low23);
  out[2] = _mm256_unpacklo_epi64(high01, high23);
  out[3] = _mm256_unpackhi_epi64(high01, high23);
}
inline Floats AsFloats(Ints a) { return _mm256_castsi256_ps(a); }
