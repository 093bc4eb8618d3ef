// tensor/cpu/row_avx512-inl.h
// Primitives of cache rows: small floats to f32 and back, 16 at a time, sums of dot products, and
// transposition. Twin: row_avx2-inl.h.

// ---- widening ----

// The low four bits of each lane, as E2M1; the others may be anything.
inline Floats F4Floats(Ints codes) {
  const __m512 values =
      _mm512_set_ps(-6, -4, -3, -2, -1.5f, -1, -0.5f, -0.0f, 6, 4, 3, 2, 1.5f, 1, 0.5f, 0);
  return _mm512_permutexvar_ps(codes, values);
}
inline Floats LoadF4(const void* p) {
  int64_t bytes;
  __builtin_memcpy(&bytes, p, 8);
  const __m512i both = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(bytes));
  return F4Floats(_mm512_or_si512(both, _mm512_slli_epi64(both, 28)));
}
// By way of f16: E4M3 has the same bits with one more of exponent there, worth 2^-8 of its value.
inline Floats LoadF8(const void* p) {
  const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  const __m256i nan = _mm256_set1_epi16(0x3f80);
  __m256i halfs = _mm256_and_si256(_mm256_slli_epi16(words, 7),
                                   _mm256_set1_epi16(static_cast<int16_t>(0xbfff)));
  const __mmask16 none = _mm256_cmpeq_epi16_mask(_mm256_and_si256(halfs, nan), nan);
  halfs = _mm256_mask_blend_epi16(none, halfs, _mm256_set1_epi16(0x7fff));
  return _mm512_mul_ps(_mm512_cvtph_ps(halfs), _mm512_set1_ps(256));
}
inline Ints ShiftOutCode(Ints codes) { return _mm512_srli_epi32(codes, 4); }

// ---- narrowing ----

inline uint32_t MaxOfInts(Ints a) { return static_cast<uint32_t>(_mm512_reduce_max_epi32(a)); }

// Codes of Code (cache_rows-inl.h), one in each lane.
template <typename Code>
inline Ints RoundToCodes(Floats x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i sign =
      _mm512_srli_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(INT32_MIN)), Code::kSignShift);
  const __m512 magnitude = _mm512_min_ps(_mm512_abs_ps(x), _mm512_set1_ps(Code::kMax));
  const __m512i m = _mm512_castps_si512(magnitude);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(m, Code::kShift), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(m, odd), _mm512_set1_epi32(Code::kUp));
  const __m512i normal =
      _mm512_sub_epi32(_mm512_srli_epi32(up, Code::kShift), _mm512_set1_epi32(Code::kBias));
  const __m512 shift = _mm512_set1_ps(Code::kSubnormalShift);
  const __m512i subnormal = _mm512_sub_epi32(_mm512_castps_si512(_mm512_add_ps(magnitude, shift)),
                                             _mm512_castps_si512(shift));
  const __mmask16 small =
      _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(Code::kLeastNormal), _CMP_LT_OQ);
  return _mm512_or_si512(sign, _mm512_mask_blend_epi32(small, normal, subnormal));
}
inline void StoreF8(void* p, Ints codes) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(codes));
}
inline void StoreF4(void* p, Ints codes) {
  const __m512i both = _mm512_or_si512(codes, _mm512_srli_epi64(codes, 28));
  const int64_t bytes = _mm_cvtsi128_si64(_mm512_cvtepi64_epi8(both));
  __builtin_memcpy(p, &bytes, 8);
}
inline Floats RoundBf16(Floats x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i mask = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000u));
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_mask_blend_epi32(nan, up, quiet), mask));
}

// ---- dot products ----

// A tile of dot products, each in 16 virtual lanes.
constexpr uint32_t kDotKeys = 4;
constexpr uint32_t kDotHeads = 4;

// a + b of virtual lanes 8 apart, and so on: each step halves the lanes of two vectors of sums.
inline Floats FoldEights(Floats a, Floats b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}
inline Floats FoldFours(Floats a, Floats b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}
inline Floats FoldTwos(Floats a, Floats b) {
  return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}
inline Floats FoldOnes(Floats a, Floats b) {
  return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

// scores[head][key, key + 4) = scale * the folded sums.
template <uint32_t kHeads>
inline void FoldDots(const Floats (&sums)[kDotKeys][kHeads][1], float scale,
                     float (*scores)[kPageTokens], uint32_t key) {
  Floats four[kDotKeys];  // of a key, a quarter for each head
#pragma GCC unroll 4
  for (uint32_t k = 0; k < kDotKeys; ++k) {
    const Floats a = FoldEights(sums[k][0][0], sums[k][kHeads > 1 ? 1 : 0][0]);
    const Floats b = kHeads < 3 ? a : FoldEights(sums[k][2 % kHeads][0], sums[k][kHeads - 1][0]);
    four[k] = FoldFours(a, b);
  }
  const Floats folded = FoldOnes(FoldTwos(four[0], four[1]), FoldTwos(four[2], four[3]));
  const Floats scaled = _mm512_mul_ps(folded, _mm512_set1_ps(scale));
  _mm_storeu_ps(&scores[0][key], _mm512_castps512_ps128(scaled));
  if constexpr (kHeads > 1) _mm_storeu_ps(&scores[1][key], _mm512_extractf32x4_ps(scaled, 1));
  if constexpr (kHeads > 2) _mm_storeu_ps(&scores[2][key], _mm512_extractf32x4_ps(scaled, 2));
  if constexpr (kHeads > 3) _mm_storeu_ps(&scores[3][key], _mm512_extractf32x4_ps(scaled, 3));
}

// ---- transposition ----

// out[i] = the 32-bit word at rows[lane] + offset + 4 i, for every lane.
inline void TransposeFours(const std::byte* const* rows, uint64_t offset, Ints (&out)[4]) {
  __m512i quarters[4];
#pragma GCC unroll 4
  for (uint32_t r = 0; r < 4; ++r) {
    const auto four = [&](uint32_t row) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[row] + offset));
    };
    __m512i all = _mm512_castsi128_si512(four(r));
    all = _mm512_inserti32x4(all, four(r + 4), 1);
    all = _mm512_inserti32x4(all, four(r + 8), 2);
    quarters[r] = _mm512_inserti32x4(all, four(r + 12), 3);
  }
  const __m512i low01 = _mm512_unpacklo_epi32(quarters[0], quarters[1]);
  const __m512i low23 = _mm512_unpacklo_epi32(quarters[2], quarters[3]);
  const __m512i high01 = _mm512_unpackhi_epi32(quarters[0], quarters[1]);
  const __m512i high23 = _mm512_unpackhi_epi32(quarters[2], quarters[3]);
  out[0] = _mm512_unpacklo_epi64(low01, low23);
  out[1] = _mm512_unpackhi_epi64(low01, low23);
  out[2] = _mm512_unpacklo_epi64(high01, high23);
  out[3] = _mm512_unpackhi_epi64(high01, high23);
}
inline Floats AsFloats(Ints a) { return _mm512_castsi512_ps(a); }
