// tensor/cpu/avx2.cc
// The AVX2 target (with FMA and F16C): vector primitives, then the algorithms of cpu/*-inl.h. It is
// first-class: many machines have no more. Rules and twin: cpu/avx512.cc.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/block_task.h"
#include "tensor/cpu/f4_tables.h"
#include "tensor/cpu/tables.h"
#include "tensor/exact_math.h"
#include "tensor/kv_page.h"
#include "tensor/small_float.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

extern "C" __m256 Sleef_finz_expf8_u10avx2(__m256);

namespace plumb::tensor::avx2 {

using Floats = __m256;
using Ints = __m256i;
constexpr uint32_t kLanes = 8;
constexpr uint32_t kTileRowsMax = 4;

inline Floats Load(const float* p) { return _mm256_loadu_ps(p); }
inline void Store(float* p, Floats v) { _mm256_storeu_ps(p, v); }
inline Floats Set(float x) { return _mm256_set1_ps(x); }
inline Floats Zero() { return _mm256_setzero_ps(); }
inline Floats Fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
inline Floats Add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
inline Floats Sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
inline Floats Mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats Div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
inline Floats Max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
inline Floats Exp(Floats a) { return Sleef_finz_expf8_u10avx2(a); }
// 2^n where a = n + kExp2Shift.
inline Floats PowerOfTwo(Floats a) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a), 23));
}
inline float MaxOfLanes(Floats a) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}
// 2 * kLanes int8 as int16; pairs of them times pairs, added to int32.
inline Ints WidenBytes(const void* p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline Ints SetInts(int32_t x) { return _mm256_set1_epi32(x); }
inline Ints AddPairs(Ints a, Ints b, Ints sum) {
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  asm("" : "+x"(sum));  // else all products are computed first, and 16 registers are too few
  return sum;
}
inline Ints MagnitudeBits(Floats a) {
  return _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(INT32_MAX));
}
inline Ints MaxInts(Ints a, Ints b) { return _mm256_max_epi32(a, b); }
// To nearest even, which must fit.
inline void StoreWords(int16_t* p, Floats v) {
  const Ints rounded = _mm256_cvtps_epi32(v);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packs_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)));
}

// The sum of 16 virtual lanes: i + 8, then + 4, + 2, + 1.
inline float SumOfSixteen(const Floats (&lanes)[2]) {
  const Floats eight = _mm256_add_ps(lanes[0], lanes[1]);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
inline Floats Negate(Floats a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
inline Floats FmaSubAdd(Floats a, Floats b, Floats c) { return _mm256_fmaddsub_ps(a, b, c); }
inline Floats SwapPairs(Floats a) { return _mm256_permute_ps(a, 0xb1); }
inline Floats DuplicatePairs(const float* p) {
  const __m256i index = _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0);
  return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), index);
}
inline Floats LoadHalfs(const void* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline void StoreHalfs(void* p, Floats v) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

constexpr uint32_t kSumsInRegisters = 2;
constexpr uint32_t kManyRows = 12;

inline Ints LoadBytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void StoreBytes(void* p, Ints v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
inline Ints LoadUint8s(const void* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
inline Ints LoadInt8s(const void* p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
// 2^(e - 127), the lane's e in [1, 255] (255: infinity).
inline Floats PowersOfTwo(Ints e) { return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23)); }
inline Floats ToFloats(Ints v) { return _mm256_cvtepi32_ps(v); }
template <uint8_t kMask>
inline Ints AndBytes(Ints v) {
  return _mm256_and_si256(v, _mm256_set1_epi8(kMask));
}
template <uint16_t kMask>
inline Ints AndWords(Ints v) {
  return _mm256_and_si256(v, _mm256_set1_epi16(kMask));
}
inline Ints Or(Ints a, Ints b) { return _mm256_or_si256(a, b); }
// Of 16-bit words.
template <uint32_t kWord>
inline Ints SubWords(Ints v) {
  return kWord == 0 ? v : _mm256_sub_epi16(v, _mm256_set1_epi16(kWord));
}
template <uint32_t kBits>
inline Ints ShiftRight(Ints v) {
  return kBits == 0 ? v : _mm256_srli_epi16(v, kBits);
}
template <uint32_t kBits>
inline Ints ShiftLeft(Ints v) {
  return kBits == 0 ? v : _mm256_slli_epi16(v, kBits);
}

template <uint32_t kZeroPoint>
inline Ints StartDot(const int32_t* minus8) {
  if constexpr (kZeroPoint == 0) return _mm256_setzero_si256();
  return _mm256_slli_epi32(_mm256_set1_epi32(*minus8), __builtin_ctz(kZeroPoint / 8 | 1 << 16));
}
// sums += weights times the two inputs at `p`, in every lane. The empty asm stops the compiler from
// regrouping sums of integers: that keeps every product alive at once, and 16 registers are too
// few.
template <uint32_t kVectors>
inline void AddDots(Ints (&sums)[kVectors], const Ints (&weights)[kVectors], const int16_t* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, 4);
  const Ints inputs = _mm256_set1_epi32(pair);
#pragma GCC unroll 2
  for (uint32_t v = 0; v < kVectors; ++v) {
    sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(weights[v], inputs));
    asm("" : "+x"(sums[v]));
  }
}

#include "tensor/cpu/block_avx2-inl.h"
#include "tensor/cpu/row_avx2-inl.h"

inline uint32_t AbsoluteMaxBits(const float* x, uint32_t n) {
  const Ints mask = _mm256_set1_epi32(INT32_MAX);
  Ints largest[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (uint32_t i = 0; i < n; i += 16) {
    largest[0] = _mm256_max_epu32(largest[0], _mm256_and_si256(LoadBytes(x + i), mask));
    largest[1] = _mm256_max_epu32(largest[1], _mm256_and_si256(LoadBytes(x + i + 8), mask));
  }
  const Ints both = _mm256_max_epu32(largest[0], largest[1]);
  __m128i four = _mm_max_epu32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
}

// 16 values times `inverse`, rounded to nearest even: int16 in order, and their sum.
inline Ints RoundHalf(const float* x, float inverse, int32_t* sum) {
  const Ints low = _mm256_cvtps_epi32(Mul(Load(x), Set(inverse)));
  const Ints high = _mm256_cvtps_epi32(Mul(Load(x + 8), Set(inverse)));
  const Ints both = _mm256_add_epi32(low, high);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  *sum = _mm_cvtsi128_si32(four);
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
}

inline void QuantizeGroup(const float* x, float inverse, int16_t* quants, int32_t* sums) {
  for (uint32_t half = 0; half < 2; ++half) {
    const Ints words = RoundHalf(x + 16 * half, inverse, sums + half);
    const Ints exchanged = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(words, 0xd8), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants + 16 * half), exchanged);
  }
}

#include "tensor/cpu/all-inl.h"

}  // namespace plumb::tensor::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace plumb::tensor {
const KernelTable& Avx2Kernels() {
  static constexpr KernelTable kTable = avx2::MakeTable("avx2");
  return kTable;
}
}  // namespace plumb::tensor

#endif  // __x86_64__
