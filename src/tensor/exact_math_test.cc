// tensor/exact_math_test.cc: SLEEF's scalar and vector functions agree bit for bit, which the
// equality of all kernel tables rests on.
#include "tensor/exact_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "tensor/cpu_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
extern "C" __attribute__((target("avx2"))) __m256 Sleef_finz_expf8_u10avx2(__m256);
extern "C" __attribute__((target("avx512f"))) __m512 Sleef_finz_expf16_u10avx512f(__m512);
#endif

namespace plumb::tensor {
namespace {

// All exponents and signs, plus a dense walk through the range that attention uses.
std::vector<float> Inputs() {
  std::vector<float> inputs;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099) {
    inputs.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (float x = -110; x < 90; x += 0.001f) inputs.push_back(x);
  inputs.insert(inputs.end(),
                {0.0f, -0.0f, INFINITY, -INFINITY, 88.72284f, -87.33655f, -103.9721f});
  inputs.resize(inputs.size() / 16 * 16 + 16);
  return inputs;
}

bool SameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void Exp8(const float* x, float* out) {
  _mm256_storeu_ps(out, Sleef_finz_expf8_u10avx2(_mm256_loadu_ps(x)));
}
__attribute__((target("avx512f"))) void Exp16(const float* x, float* out) {
  _mm512_storeu_ps(out, Sleef_finz_expf16_u10avx512f(_mm512_loadu_ps(x)));
}

TEST(ExactMath, VectorExpEqualsScalarExp) {
  const CpuFeatures features = DetectCpu();
  if (!features.avx2) GTEST_SKIP() << "no AVX2";
  const std::vector<float> inputs = Inputs();
  float out[16];
  for (size_t i = 0; i < inputs.size(); i += 16) {
    Exp8(&inputs[i], out);
    Exp8(&inputs[i + 8], out + 8);
    for (size_t k = 0; k < 16; ++k) {
      ASSERT_TRUE(SameBits(out[k], ExactExp(inputs[i + k]))) << inputs[i + k];
    }
    if (!features.avx512) continue;
    Exp16(&inputs[i], out);
    for (size_t k = 0; k < 16; ++k) {
      ASSERT_TRUE(SameBits(out[k], ExactExp(inputs[i + k]))) << inputs[i + k];
    }
  }
}
#endif

TEST(ExactMath, ExpIsWithinOneUlpAndExactAtTheEnds) {
  for (float x = -80; x < 80; x += 0.37f) {
    const double exact = std::exp(double{x});
    EXPECT_LE(std::fabs(ExactExp(x) - exact), exact * 0x1.0p-23) << x;
  }
  EXPECT_EQ(ExactExp(0.0f), 1.0f);
  EXPECT_EQ(ExactExp(-INFINITY), 0.0f);
  EXPECT_EQ(ExactLog(1.0f), 0.0f);
  EXPECT_NEAR(ExactPow(10000.0, -0.5), 0.01, 1e-17);
}

}  // namespace
}  // namespace plumb::tensor
