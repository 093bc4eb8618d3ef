// tensor/probe_avx2.cc
// The probe's loops with AVX2 and FMA: the instructions that cpu/avx2.cc multiplies with. Twin:
// probe_avx512.cc.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensor/probe.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace plumb::tensor::avx2_probe {

using Floats = __m256;
using Ints = __m256i;
constexpr uint32_t kLanes = 8;

inline Floats SetFloat(float x) { return _mm256_set1_ps(x); }
inline Ints Set32(int32_t x) { return _mm256_set1_epi32(x); }
inline Floats Zero() { return _mm256_setzero_ps(); }
inline Ints ZeroInts() { return _mm256_setzero_si256(); }
inline Ints Load(const std::byte* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline void Hide(Floats& x) { asm volatile("" : "+x"(x)); }
inline void Hide(Ints& x) { asm volatile("" : "+x"(x)); }
inline Floats Fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
inline Ints AddWords(Ints a, Ints b) { return _mm256_add_epi64(a, b); }
inline Ints Dot16(Ints sum, Ints a, Ints b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
inline Ints Dot8(Ints sum, Ints a, Ints b) {
  const Ints pairs = _mm256_maddubs_epi16(a, b);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline uint64_t Sum(Floats v) {
  alignas(32) float lanes[kLanes];
  _mm256_store_ps(lanes, v);
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return static_cast<uint64_t>(sum);
}
inline uint64_t Sum(Ints v) {
  alignas(32) uint32_t lanes[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), v);
  uint64_t sum = 0;
  for (const uint32_t lane : lanes) sum += lane;
  return sum;
}
inline uint64_t SumWords(Ints v) {
  alignas(32) uint64_t words[kLanes / 2];
  _mm256_store_si256(reinterpret_cast<__m256i*>(words), v);
  uint64_t sum = 0;
  for (const uint64_t word : words) sum += word;
  return sum;
}

#include "tensor/probe-inl.h"

constexpr ProbeTable kTable =
    MakeTable("avx2", "vfmadd, 256 bits", "vpmaddubsw + vpmaddwd + vpaddd, 256 bits",
              "vpmaddwd + vpaddd, 256 bits");

}  // namespace plumb::tensor::avx2_probe

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace plumb::tensor {

const ProbeTable& Avx2Probe() { return avx2_probe::kTable; }

}  // namespace plumb::tensor

#endif  // defined(__x86_64__)
