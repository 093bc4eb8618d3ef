// tensor/cpu/avx512.cc
// The AVX-512 target (F, BW, VL, DQ, VNNI): vector primitives, then the algorithms of cpu/*-inl.h.
// Inside the region nothing of the standard library is used, so that no shared inline function is
// compiled for a processor that others do not have. Twin: cpu/avx2.cc.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/block_task.h"
#include "tensor/cpu/f4_tables.h"
#include "tensor/cpu/f8_tables.h"
#include "tensor/cpu/tables.h"
#include "tensor/exact_math.h"
#include "tensor/kv_page.h"
#include "tensor/small_float.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(                                                               \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")
#pragma GCC diagnostic ignored "-Wuninitialized"        // false in _mm512_reduce_*, GCC 12
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // the same
#endif

extern "C" __m512 Sleef_finz_expf16_u10avx512f(__m512);

namespace plumb::tensor::avx512 {

using Floats = __m512;  // kLanes values
using Ints = __m512i;   // kLanes int32, or 4 * kLanes bytes
constexpr uint32_t kLanes = 16;
constexpr uint32_t kTileRowsMax = 8;  // rows per pass over weights, queries per pass over keys

inline Floats Load(const float* p) { return _mm512_loadu_ps(p); }
inline void Store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
inline Floats Set(float x) { return _mm512_set1_ps(x); }
inline Floats Zero() { return _mm512_setzero_ps(); }
inline Floats Fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats Add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats Sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
inline Floats Mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats Div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
inline Floats Max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
inline Floats Exp(Floats a) { return Sleef_finz_expf16_u10avx512f(a); }
// 2^n where a = n + kExp2Shift.
inline Floats PowerOfTwo(Floats a) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a), 23));
}
inline float MaxOfLanes(Floats a) { return _mm512_reduce_max_ps(a); }
// 2 * kLanes int8 as int16; pairs of them times pairs, added to int32.
inline Ints WidenBytes(const void* p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
inline Ints SetInts(int32_t x) { return _mm512_set1_epi32(x); }
inline Ints AddPairs(Ints a, Ints b, Ints sum) { return _mm512_dpwssd_epi32(sum, a, b); }
inline Ints MagnitudeBits(Floats a) {
  return _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MAX));
}
inline Ints MaxInts(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
// To nearest even, which must fit.
inline void StoreWords(int16_t* p, Floats v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(v)));
}

// The sum of 16 virtual lanes: i + 8, then + 4, + 2, + 1.
inline float SumOfSixteen(const Floats (&lanes)[1]) {
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(lanes[0]), _mm512_extractf32x8_ps(lanes[0], 1));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
inline Floats Negate(Floats a) {
  return _mm512_castsi512_ps(
      _mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN)));
}
// [a0 b0 - c0, a1 b1 + c1, ...]
inline Floats FmaSubAdd(Floats a, Floats b, Floats c) { return _mm512_fmaddsub_ps(a, b, c); }
// Neighbours exchanged; each of kLanes / 2 values twice.
inline Floats SwapPairs(Floats a) { return _mm512_permute_ps(a, 0xb1); }
inline Floats DuplicatePairs(const float* p) {
  const __m512i index = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return _mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}
inline Floats LoadHalfs(const void* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
inline void StoreHalfs(void* p, Floats v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

constexpr uint32_t kSumsInRegisters = 8;  // vectors of a tile's sums
// Rows from which on a panel's weights are expanded once for all; 0: never. Here unpacking runs
// beside the products on units that they leave idle.
constexpr uint32_t kManyRows = 0;

inline Ints LoadBytes(const void* p) { return _mm512_loadu_si512(p); }
inline void StoreBytes(void* p, Ints v) { _mm512_storeu_si512(p, v); }
inline Ints LoadUint8s(const void* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline Ints LoadInt8s(const void* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
// 2^(e - 127), the lane's e in [1, 255] (255: infinity).
inline Floats PowersOfTwo(Ints e) { return _mm512_castsi512_ps(_mm512_slli_epi32(e, 23)); }
inline Floats ToFloats(Ints v) { return _mm512_cvtepi32_ps(v); }
template <uint8_t kMask>
inline Ints AndBytes(Ints v) {
  return _mm512_and_si512(v, _mm512_set1_epi8(kMask));
}
template <uint16_t kMask>
inline Ints AndWords(Ints v) {
  return _mm512_and_si512(v, _mm512_set1_epi16(kMask));
}
inline Ints Or(Ints a, Ints b) { return _mm512_or_si512(a, b); }
// Of 16-bit words.
template <uint32_t kWord>
inline Ints SubWords(Ints v) {
  return kWord == 0 ? v : _mm512_sub_epi16(v, _mm512_set1_epi16(kWord));
}
template <uint32_t kBits>
inline Ints ShiftRight(Ints v) {
  return kBits == 0 ? v : _mm512_srli_epi16(v, kBits);
}
template <uint32_t kBits>
inline Ints ShiftLeft(Ints v) {
  return kBits == 0 ? v : _mm512_slli_epi16(v, kBits);
}

// The zero point's share of a dot, from -8 times the sum of the inputs.
template <uint32_t kZeroPoint>
inline Ints StartDot(const int32_t* minus8) {
  static_assert(kZeroPoint == 0 || (kZeroPoint >= 8 && __builtin_popcount(kZeroPoint) == 1));
  if constexpr (kZeroPoint == 0) return _mm512_setzero_si512();
  return _mm512_slli_epi32(_mm512_set1_epi32(*minus8), __builtin_ctz(kZeroPoint / 8 | 1 << 16));
}
// Two 16-bit values, as a memory operand.
struct __attribute__((may_alias, packed)) Pair {
  int16_t inputs[2];
};
// sum += weights times the two inputs at `p`, in every lane. As assembly, since GCC 12 splits the
// broadcast from the instruction and copies the sums around.
template <uint32_t kVectors>
inline void AddDots(Ints (&sums)[kVectors], const Ints (&weights)[kVectors], const int16_t* p) {
  static_assert(kVectors == 1);
  asm("vpdpwssd %2%{1to16%}, %1, %0"
      : "+v"(sums[0])
      : "v"(weights[0]), "m"(*reinterpret_cast<const Pair*>(p)));
}

#include "tensor/cpu/block_avx512-inl.h"
#include "tensor/cpu/row_avx512-inl.h"

// The largest bit pattern of |x| among n values, n a multiple of 32.
inline uint32_t AbsoluteMaxBits(const float* x, uint32_t n) {
  const __m512i mask = _mm512_set1_epi32(INT32_MAX);
  __m512i a = _mm512_setzero_si512();
  __m512i b = a;
  for (uint32_t i = 0; i < n; i += 32) {
    a = _mm512_max_epu32(a, _mm512_and_si512(_mm512_loadu_si512(x + i), mask));
    b = _mm512_max_epu32(b, _mm512_and_si512(_mm512_loadu_si512(x + i + 16), mask));
  }
  return _mm512_reduce_max_epu32(_mm512_max_epu32(a, b));
}

// 32 values times `inverse`, to nearest even, as int16, the middle two of every four exchanged;
// sums of both halves.
inline void QuantizeGroup(const float* x, float inverse, int16_t* quants, int32_t* sums) {
  for (uint32_t half = 0; half < 2; ++half) {
    const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(x + 16 * half), _mm512_set1_ps(inverse));
    const __m512i rounded = _mm512_cvtps_epi32(scaled);
    sums[half] = _mm512_reduce_add_epi32(rounded);
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(quants + 16 * half),
        _mm512_cvtepi32_epi16(_mm512_shuffle_epi32(rounded, static_cast<_MM_PERM_ENUM>(0xd8))));
  }
}

#include "tensor/cpu/all-inl.h"

// A function has one target attribute for Clang, so that the larger one takes the other's place.
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(                                                               \
    __attribute__((                                                                         \
        target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512vbmi,avx2,fma,f16c"))), \
    apply_to = function)
#include "tensor/cpu/block_vbmi-inl.h"
#else
#pragma GCC push_options
#pragma GCC target("avx512vbmi")
#include "tensor/cpu/block_vbmi-inl.h"
#pragma GCC pop_options
#endif

template <typename W>
constexpr KernelTable MakeWideTable() {
  KernelTable table = MakeTable("avx512");
  table.multiply_blocks = MultiplyBlocksWide<W>;
  return table;
}

}  // namespace plumb::tensor::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace plumb::tensor {
const KernelTable& Avx512Kernels(F8Widening widening) {
  static constexpr KernelTable kConversions = avx512::MakeTable("avx512");
  static constexpr KernelTable kTables = avx512::MakeWideTable<avx512::F8Tables>();
  static constexpr KernelTable kShifts = avx512::MakeWideTable<avx512::F8Shifts>();
  return widening == F8Widening::kShifts   ? kShifts
         : widening == F8Widening::kTables ? kTables
                                           : kConversions;
}
}  // namespace plumb::tensor

#endif  // __x86_64__
