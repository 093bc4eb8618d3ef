// tensor/cpu/avx2.cc
// The AVX2 target (with FMA and F16C): vector primitives, then the algorithms of cpu/*-inl.h. It is
// first-class: many machines have no more. Rules and twin: cpu/avx512.cc.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/cpu/tables.h"
#include "tensor/exact_math.h"
#include "tensor/kv_page.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

extern "C" __m256 Sleef_finz_expf8_u10avx2(__m256);
extern "C" __m256 Sleef_finz_tanhf8_u10avx2(__m256);

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
inline Floats Tanh(Floats a) { return Sleef_finz_tanhf8_u10avx2(a); }
// 2^n where a = n + kExp2Shift.
inline Floats PowerOfTwo(Floats a) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a), 23));
}
inline float MaxOfLanes(Floats a) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
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
inline Floats LoadBFloats(const void* p) {
  const __m128i bits = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

inline Ints LoadBytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline Ints LowNibbles(Ints v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
inline Ints HighNibbles(Ints v) { return LowNibbles(_mm256_srli_epi16(v, 4)); }
inline Floats ToFloats(Ints v) { return _mm256_cvtepi32_ps(v); }

inline Ints FourInputs(const int8_t* four_inputs) {
  int32_t four;
  __builtin_memcpy(&four, four_inputs, 4);
  return _mm256_set1_epi32(four);
}

// Stops the compiler from regrouping sums of integers: that keeps every product alive at once, and
// 16 registers are too few.
inline void KeepOrder(Ints& v) { asm("" : "+x"(v)); }

template <DType kType, typename Input>
struct Weights {
  Ints bytes;
  explicit Weights(Ints q) : bytes(q) {}
};

// maddubs multiplies unsigned weights by signed activations into pairs of int16. With weights of b
// bits a pair is at most 2 * 127 * (2^b - 1), so 8, 4 or 2 quads of 4, 5 or 6 bits fit before the
// int16 sums must be widened.
template <DType kType, typename Input>
struct Dot {
  static constexpr uint32_t kQuads = LayoutOf(kType).quant_bytes == 256 ? 8
                                     : kType == DType::kQ6_K            ? 2
                                                                        : 4;
  Ints pairs;
  Ints sum;
  void Start(int32_t minus8) {
    constexpr uint32_t kZeroPoint = LayoutOf(kType).zero_point;
    static_assert(kZeroPoint % 8 == 0);
    sum = _mm256_set1_epi32(minus8 * static_cast<int32_t>(kZeroPoint / 8));
  }
  void Add(const Weights<kType, Input>& weights, const int8_t* four_inputs, uint32_t quads) {
    const Ints products = _mm256_maddubs_epi16(weights.bytes, FourInputs(four_inputs));
    pairs = quads % kQuads == 0 ? products : _mm256_add_epi16(pairs, products);
    KeepOrder(pairs);
    if (quads % kQuads != kQuads - 1) return;
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    KeepOrder(sum);
  }
  Ints Total() const { return sum; }
};

// Eight-bit weights: |w| times a with the sign of w, at most 2 * 128 * 127 = 32512 a pair. The
// stored q + 128 becomes signed again, so the zero point is gone.
template <>
struct Weights<DType::kQ8_0, int8_t> {
  Ints magnitude;
  Ints sign;
  explicit Weights(Ints q)
      : magnitude(_mm256_abs_epi8(_mm256_xor_si256(q, _mm256_set1_epi8(INT8_MIN)))),
        sign(_mm256_xor_si256(q, _mm256_set1_epi8(INT8_MIN))) {}
};
template <>
struct Dot<DType::kQ8_0, int8_t> {
  Ints sum;
  void Start(int32_t /*minus8*/) { sum = _mm256_setzero_si256(); }
  void Add(const Weights<DType::kQ8_0, int8_t>& weights, const int8_t* four_inputs,
           uint32_t /*quads*/) {
    const Ints inputs = _mm256_sign_epi8(FourInputs(four_inputs), weights.sign);
    const Ints pairs = _mm256_maddubs_epi16(weights.magnitude, inputs);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    KeepOrder(sum);
  }
  Ints Total() const { return sum; }
};

// 16-bit activations: a quad's bytes become inputs 0, 2 and inputs 1, 3, which madd multiplies and
// adds in int32; nothing can overflow.
template <DType kType>
struct Weights<kType, int16_t> {
  Ints even, odd;
  explicit Weights(Ints q)
      : even(_mm256_and_si256(q, _mm256_set1_epi32(0x00ff00ff))), odd(_mm256_srli_epi16(q, 8)) {}
};
template <DType kType>
struct Dot<kType, int16_t> {
  Ints sum;
  void Start(int32_t minus8) {
    sum = _mm256_set1_epi32(minus8 * static_cast<int32_t>(LayoutOf(kType).zero_point / 8));
  }
  void Add(const Weights<kType, int16_t>& weights, const int16_t* four_inputs, uint32_t) {
    int32_t pairs[2];
    __builtin_memcpy(pairs, four_inputs, 8);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(weights.even, _mm256_set1_epi32(pairs[0])));
    KeepOrder(sum);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(weights.odd, _mm256_set1_epi32(pairs[1])));
    KeepOrder(sum);
  }
  Ints Total() const { return sum; }
};

inline uint32_t AbsoluteMaxBits(const float* x) {
  const Ints mask = _mm256_set1_epi32(INT32_MAX);
  Ints largest = _mm256_setzero_si256();
  for (uint32_t i = 0; i < 32; i += 8) {
    largest = _mm256_max_epu32(largest, _mm256_and_si256(LoadBytes(x + i), mask));
  }
  __m128i four =
      _mm_max_epu32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
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

inline void QuantizeGroup(const float* x, float inverse, int8_t* quants, int32_t* sums) {
  for (uint32_t half = 0; half < 2; ++half) {
    const Ints words = RoundHalf(x + 16 * half, inverse, sums + half);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(quants + 16 * half),
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
}

// As int16, the middle two of every four exchanged.
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
