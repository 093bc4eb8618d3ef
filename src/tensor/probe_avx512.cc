// tensor/probe_avx512.cc
// The probe's loops with AVX-512 and VNNI: the instructions that cpu/avx512.cc multiplies with.
// Twin: probe_avx2.cc.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensor/probe.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vnni,avx2,fma"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vnni,avx2,fma")
#endif

namespace plumb::tensor::avx512_probe {

using Floats = __m512;
using Ints = __m512i;
constexpr uint32_t kLanes = 16;

inline Floats SetFloat(float x) { return _mm512_set1_ps(x); }
inline Ints Set32(int32_t x) { return _mm512_set1_epi32(x); }
inline Floats Zero() { return _mm512_setzero_ps(); }
inline Ints ZeroInts() { return _mm512_setzero_si512(); }
inline Ints Load(const std::byte* p) { return _mm512_loadu_si512(p); }
inline void Hide(Floats& x) { asm volatile("" : "+v"(x)); }
inline void Hide(Ints& x) { asm volatile("" : "+v"(x)); }
inline Floats Fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Ints AddWords(Ints a, Ints b) { return _mm512_add_epi64(a, b); }
inline Ints Dot8(Ints sum, Ints a, Ints b) { return _mm512_dpbusd_epi32(sum, a, b); }
inline Ints Dot16(Ints sum, Ints a, Ints b) { return _mm512_dpwssd_epi32(sum, a, b); }
inline uint64_t Sum(Floats v) {
  alignas(64) float lanes[kLanes];
  _mm512_store_ps(lanes, v);
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return static_cast<uint64_t>(sum);
}
inline uint64_t Sum(Ints v) {
  alignas(64) uint32_t lanes[kLanes];
  _mm512_store_si512(lanes, v);
  uint64_t sum = 0;
  for (const uint32_t lane : lanes) sum += lane;
  return sum;
}
inline uint64_t SumWords(Ints v) {
  alignas(64) uint64_t words[kLanes / 2];
  _mm512_store_si512(words, v);
  uint64_t sum = 0;
  for (const uint64_t word : words) sum += word;
  return sum;
}

#include "tensor/probe-inl.h"

constexpr ProbeTable kTable =
    MakeTable("avx512", "vfmadd, 512 bits", "vpdpbusd, 512 bits", "vpdpwssd, 512 bits");

}  // namespace plumb::tensor::avx512_probe

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace plumb::tensor {

const ProbeTable& Avx512Probe() { return avx512_probe::kTable; }

}  // namespace plumb::tensor

#endif  // defined(__x86_64__)
