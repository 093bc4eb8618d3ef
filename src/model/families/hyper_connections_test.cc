// model/families/hyper_connections_test.cc: the mixes against the formulas in double, the sums over
// which axis they run, and that a row does not see its neighbours.
#include "model/families/hyper_connections.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "model/families/tiny_runner.h"

namespace plumb::model {
namespace {

constexpr uint32_t kStreams = 4, kHidden = 64, kRows = 5, kValues = 24;
constexpr HyperShape kShape = {kStreams, kHidden, 20, 1e-6f, 1e-20f};

std::vector<float> Random(size_t count, uint64_t seed, double size = 1) {
  base::Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>((2 * rng.Uniform() - 1) * size);
  return values;
}

// Everything that the functions need, of one seed.
struct Fixture {
  Fixture() : pool({.threads = 2}), compute{pool, Fastest()} {
    weights.fn = {tensor::BlockFormat::kF32, kValues, kStreams * kHidden,
                  reinterpret_cast<const std::byte*>(fn.data()), nullptr};
    weights.base = Random(kValues, 2);
    weights.scale[0] = 1.1f;
    weights.scale[1] = 0.8f;
    weights.scale[2] = 1.3f;
    auto created = HyperConnections::Create(kShape, kRows);
    CHECK(created.ok());
    hyper.emplace(*std::move(created));
  }
  tensor::ThreadPool pool;
  tensor::Compute compute;
  std::vector<float> fn = Random(kValues * kStreams * kHidden, 1, 0.2);
  std::vector<float> streams = Random(kRows * kStreams * kHidden, 3, 2);
  HyperWeights weights;
  std::optional<HyperConnections> hyper;
};

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

// The formulas of the published description, in double.
struct PlainMix {
  std::array<double, kStreams> read, write;
  double carry[kStreams][kStreams];

  PlainMix(const Fixture& f, uint32_t row) {
    constexpr double kEpsilon = 1e-6;
    const float* x = f.streams.data() + row * kStreams * kHidden;
    double squares = 0;
    for (uint32_t i = 0; i < kStreams * kHidden; ++i) squares += double{x[i]} * x[i];
    const double inverse = 1 / std::sqrt(squares / (kStreams * kHidden));
    std::array<double, kValues> z{};
    for (uint32_t j = 0; j < kValues; ++j) {
      for (uint32_t i = 0; i < kStreams * kHidden; ++i) {
        z[j] += double{f.fn[j * kStreams * kHidden + i]} * x[i];
      }
      z[j] *= inverse;
    }
    const auto& scale = f.weights.scale;
    const auto& base = f.weights.base;
    for (uint32_t n = 0; n < kStreams; ++n) {
      read[n] = Logistic(z[n] * scale[0] + base[n]) + kEpsilon;
      write[n] = 2 * Logistic(z[4 + n] * scale[1] + base[4 + n]);
      double sum = 0;
      for (uint32_t k = 0; k < kStreams; ++k) {
        carry[n][k] = std::exp(z[8 + 4 * n + k] * scale[2] + base[8 + 4 * n + k]);
        sum += carry[n][k];
      }
      for (uint32_t k = 0; k < kStreams; ++k) carry[n][k] = carry[n][k] / sum + kEpsilon;
    }
    for (int i = 0; i < 20; ++i) {
      if (i > 0) Divide(true, kEpsilon);
      Divide(false, kEpsilon);
    }
  }
  void Divide(bool rows, double epsilon) {
    for (uint32_t a = 0; a < kStreams; ++a) {
      double sum = epsilon;
      for (uint32_t b = 0; b < kStreams; ++b) sum += rows ? carry[a][b] : carry[b][a];
      for (uint32_t b = 0; b < kStreams; ++b) (rows ? carry[a][b] : carry[b][a]) /= sum;
    }
  }
};

TEST(HyperConnections, MixIsTheFormula) {
  Fixture f;
  const HyperMix mix = f.hyper->Mix(f.compute, f.weights, f.streams.data(), kRows);
  for (uint32_t row = 0; row < kRows; ++row) {
    const PlainMix plain(f, row);
    for (uint32_t k = 0; k < kStreams; ++k) {
      EXPECT_NEAR(mix.read[row * kStreams + k], plain.read[k], 4e-6);
      EXPECT_NEAR(mix.write[row * kStreams + k], plain.write[k], 4e-6);
      for (uint32_t n = 0; n < kStreams; ++n) {
        EXPECT_NEAR(mix.carry[(row * kStreams + k) * kStreams + n], plain.carry[k][n], 4e-6);
      }
    }
  }
}

TEST(HyperConnections, UpdateSumsOverTheRowsOfTheCarryMatrix) {
  Fixture f;
  const std::vector<float> y = Random(kRows * kHidden, 4);
  const HyperMix mix = f.hyper->Mix(f.compute, f.weights, f.streams.data(), kRows);
  const std::vector<float> old = f.streams;
  f.hyper->Update(f.compute, mix, y.data(), kRows, f.streams.data());
  for (uint32_t row = 0; row < kRows; ++row) {
    for (uint32_t n = 0; n < kStreams; ++n) {
      for (uint32_t i = 0; i < kHidden; ++i) {
        double sum = double{mix.write[row * kStreams + n]} * y[row * kHidden + i];
        for (uint32_t k = 0; k < kStreams; ++k) {
          sum += double{mix.carry[(row * kStreams + k) * kStreams + n]} *
                 old[(row * kStreams + k) * kHidden + i];
        }
        EXPECT_NEAR(f.streams[(row * kStreams + n) * kHidden + i], sum, 4e-6);
      }
    }
  }
}

TEST(HyperConnections, CollapseMixesTheStreams) {
  Fixture f;
  const std::vector<float> read = Random(kRows * kStreams, 5);
  std::vector<float> out(kRows * kHidden);
  f.hyper->Collapse(f.compute, f.streams.data(), read.data(), kRows, out.data());
  for (uint32_t row = 0; row < kRows; ++row) {
    for (uint32_t i = 0; i < kHidden; ++i) {
      double sum = 0;
      for (uint32_t k = 0; k < kStreams; ++k) {
        sum += double{read[row * kStreams + k]} * f.streams[(row * kStreams + k) * kHidden + i];
      }
      EXPECT_NEAR(out[row * kHidden + i], sum, 4e-6);
    }
  }
}

TEST(HyperConnections, ARowDoesNotSeeItsNeighbours) {
  Fixture f;
  const HyperMix all = f.hyper->Mix(f.compute, f.weights, f.streams.data(), kRows);
  constexpr uint32_t kRow = 3;
  const HyperMix one =
      f.hyper->Mix(f.compute, f.weights, f.streams.data() + kRow * kStreams * kHidden, 1);
  EXPECT_TRUE(SameBits({all.read + kRow * kStreams, kStreams}, {one.read, kStreams}));
  EXPECT_TRUE(SameBits({all.write + kRow * kStreams, kStreams}, {one.write, kStreams}));
  EXPECT_TRUE(SameBits({all.carry + kRow * kStreams * kStreams, kStreams * kStreams},
                       {one.carry, kStreams * kStreams}));
}

}  // namespace
}  // namespace plumb::model
