// engine/step_cost_test.cc
// The learned step time against functions it must find: curves of machines, with noise, changes of
// speed and single odd steps.
#include "engine/step_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.h"

namespace plumb::engine {
namespace {

using Curve = std::function<double(const StepShape&)>;  // milliseconds

// Weights are read once for up to `few` rows, then each row costs as much.
Curve Flat(double weights, double row, double logits, double key, double few) {
  return [=](const StepShape& shape) {
    return weights + row * std::max(shape.rows - few, 0.0) + logits * shape.logits_rows +
           key * static_cast<double>(shape.keys);
  };
}

void Observe(StepCost& cost, const StepShape& shape, double ms) {
  cost.Observe(shape, base::Seconds(ms * 1e-3));
}

double Predicted(const StepCost& cost, const StepShape& shape) {
  return cost.Predict(shape).seconds() * 1e3;
}

StepShape Decode(uint32_t rows, uint32_t position) {
  return {rows, rows, uint64_t{rows} * (position + 1)};
}

StepShape Prefill(uint32_t streams, uint32_t rows, uint32_t position) {
  StepShape shape = Decode(streams, 500);
  shape.rows += rows;
  shape.keys += KeysOf(position, rows);
  return shape;
}

// A server's life: prompts in chunks, streams of one to sixteen, contexts to 16k.
void Live(StepCost& cost, const Curve& curve, base::Rng& rng, double noise, int rounds) {
  const auto observe = [&](const StepShape& shape) {
    Observe(cost, shape, curve(shape) * (1 + noise * (2 * rng.Uniform() - 1)));
  };
  for (int round = 0; round < rounds; ++round) {
    const uint32_t streams = 1u << rng.Below(5);
    const uint32_t chunk = 4u << rng.Below(6);
    const uint32_t end = 512u << rng.Below(6);
    for (uint32_t position = 0; position + chunk <= end; position += std::max(end / 32, chunk)) {
      observe(Prefill(streams, chunk, position));
    }
    for (uint32_t position = end; position < end + 32; ++position) {
      observe(Decode(streams, position));
    }
  }
}

void ExpectKnown(const StepCost& cost, const Curve& curve, double tolerance) {
  for (const StepShape& shape :
       {Decode(1, 300), Decode(8, 300), Decode(16, 2'000), Prefill(8, 8, 100),
        Prefill(8, 32, 4'000), Prefill(1, 128, 1'000), Prefill(4, 64, 12'000)}) {
    const double expected = curve(shape);
    EXPECT_NEAR(Predicted(cost, shape), expected, tolerance * expected)
        << shape.rows << " rows, " << shape.keys << " keys";
  }
}

TEST(StepCost, KnowsNothingBeforeTheFirstStep) {
  StepCost cost;
  EXPECT_FALSE(cost.measured());
  EXPECT_EQ(cost.Predict({8, 8, 100}).ns, 0);
  EXPECT_EQ(cost.KeyPrice(), 0);
  cost.Observe({0, 0, 0}, base::Milliseconds(5));
  cost.Observe({8, 8, 100}, {0});
  EXPECT_FALSE(cost.measured());
}

TEST(StepCost, FindsCurvesOfManyKinds) {
  const Curve curves[] = {
      Flat(4, 0.7, 0.3, 0.0002, 4),  // a small model
      Flat(90, 6, 1, 0.002, 8),      // a large one, bound by reading its weights
      Flat(0.1, 1, 0, 0, 0),         // nothing but rows
      Flat(20, 0.01, 0, 0.001, 0),   // attention is all
      [](const StepShape& shape) {   // concave: many rows are cheaper each
        return 3 * std::sqrt(double{1} * shape.rows) + 0.2 * shape.rows + 0.1 * shape.logits_rows;
      },
  };
  for (size_t i = 0; i < std::size(curves); ++i) {
    SCOPED_TRACE(i);
    base::Rng rng(i + 1);
    StepCost exact, noisy;
    Live(exact, curves[i], rng, 0, 40);
    ExpectKnown(exact, curves[i], 0.10);
    Live(noisy, curves[i], rng, 0.1, 40);
    ExpectKnown(noisy, curves[i], 0.15);
    EXPECT_EQ(noisy.rescaled(), 0u);
  }
}

TEST(StepCost, OneRowSaysThatFurtherRowsMayCostAsMuch) {
  StepCost cost;
  for (int i = 0; i < 50; ++i) Observe(cost, Decode(1, 100 + i), 10);
  EXPECT_NEAR(Predicted(cost, Decode(1, 200)), 10, 0.1);
  // Careful, but not without measure.
  EXPECT_GE(Predicted(cost, Decode(4, 200)), 30);
  EXPECT_LE(Predicted(cost, Decode(4, 200)), 45);
  // Two rows are hardly dearer, it turns out.
  for (int i = 0; i < 20; ++i) Observe(cost, Decode(2, 100 + i), 10.5);
  EXPECT_NEAR(Predicted(cost, Decode(2, 100)), 10.5, 0.2);
  EXPECT_LE(Predicted(cost, Decode(4, 100)), 13);
}

TEST(StepCost, MoreOfAnythingNeverCostsLess) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    base::Rng rng(seed);
    StepCost cost;
    const auto draw = [&] {
      const uint32_t rows = 1 + static_cast<uint32_t>(rng.Below(rng.Below(2) == 0 ? 20 : 600));
      return StepShape{rows, static_cast<uint32_t>(rng.Below(rows + 1)), rng.Below(1u << 22)};
    };
    // Times that have nothing to do with the shapes.
    for (int i = 0; i < 200; ++i) Observe(cost, draw(), 0.1 + 100 * rng.Uniform());
    for (int i = 0; i < 200; ++i) {
      const StepShape a = draw();
      StepShape b = a;
      b.rows += static_cast<uint32_t>(rng.Below(100));
      b.logits_rows += static_cast<uint32_t>(rng.Below(10));
      b.keys += rng.Below(100'000);
      ASSERT_GE(Predicted(cost, a), 0);
      ASSERT_LE(Predicted(cost, a), Predicted(cost, b));
    }
  }
}

TEST(StepCost, OneOddStepMovesLittle) {
  const Curve curve = Flat(4, 0.7, 0.3, 0.0002, 4);
  for (const double factor : {100.0, 0.01}) {
    base::Rng rng(3);
    StepCost cost;
    Live(cost, curve, rng, 0.02, 40);
    const StepShape shape = Prefill(8, 32, 4'000);
    Observe(cost, shape, factor * curve(shape));
    ExpectKnown(cost, curve, 0.12);
    EXPECT_EQ(cost.rescaled(), 0u);
    // Nor when it is the first of its shape, or the first ever.
    const StepShape other = Decode(64, 12'000);
    Observe(cost, other, factor * curve(other));
    for (int i = 0; i < 30; ++i) Observe(cost, other, curve(other));
    ExpectKnown(cost, curve, 0.12);
    StepCost fresh;
    Observe(fresh, shape, factor * curve(shape));
    for (int i = 0; i < 30; ++i) Observe(fresh, shape, curve(shape));
    EXPECT_NEAR(Predicted(fresh, shape), curve(shape), 0.15 * curve(shape));
  }
}

TEST(StepCost, AChangeOfSpeedIsBelievedForEveryShape) {
  const Curve curve = Flat(4, 0.7, 0.3, 0.0002, 4);
  for (const double factor : {3.0, 0.4}) {
    base::Rng rng(4);
    StepCost cost;
    Live(cost, curve, rng, 0.02, 40);
    const StepShape seen = Decode(8, 300);
    for (int i = 0; i < 16; ++i) Observe(cost, seen, curve(seen));
    // Only this one is seen on the changed machine.
    for (int i = 0; i < 24; ++i) {
      Observe(cost, seen, factor * curve(seen) * (1 + 0.02 * rng.Uniform()));
    }
    EXPECT_GE(cost.rescaled(), 1u);
    ExpectKnown(cost, [&](const StepShape& shape) { return factor * curve(shape); }, 0.15);
  }
}

TEST(StepCost, AKeysPriceComparesRowsFarBackWithEarlyOnes) {
  base::Rng rng(5);
  StepCost cost;
  Live(cost, Flat(4, 0.5, 0.3, 0.0005, 0), rng, 0.02, 60);
  EXPECT_NEAR(cost.KeyPrice(), 0.001, 0.0002);
}

TEST(StepCost, KeysOfRowsAreThoseBeforeAndTheirOwn) {
  uint64_t keys = 0;
  for (uint64_t position = 100; position < 130; ++position) keys += position + 1;
  EXPECT_EQ(KeysOf(100, 30), keys);
  EXPECT_EQ(KeysOf(7, 0), 0u);
}

}  // namespace
}  // namespace plumb::engine
