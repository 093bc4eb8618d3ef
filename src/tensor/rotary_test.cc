// tensor/rotary_test.cc: the table against the formula, and what Build refuses.
// The rotation itself: kernels_test.cc, ops_test.cc.
#include "tensor/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumb::tensor {
namespace {

TEST(Rotary, TableHoldsTheFormula) {
  ThreadPool pool({.threads = 2});
  const float factors[] = {1.0f, 2.0f, 8.0f, 0.5f};
  const auto table = RotaryTable::Build({.dims = 8,
                                         .positions_max = 1000,
                                         .base = 500000.0,
                                         .position_scale = 0.25,
                                         .frequency_factors = factors},
                                        pool);
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  for (const uint32_t position : {0u, 1u, 63u, 64u, 999u}) {
    for (uint32_t i = 0; i < 4; ++i) {
      const double angle = position * 0.25 * std::pow(500000.0, -2.0 * i / 8) / factors[i];
      EXPECT_NEAR(table->cosines(position)[i], std::cos(angle), 0x1.0p-24);
      EXPECT_NEAR(table->sines(position)[i], std::sin(angle), 0x1.0p-24);
    }
  }
}

TEST(Rotary, BadConfigurationsAreRefused) {
  ThreadPool pool({.threads = 1});
  const float zero[] = {1.0f, 0.0f};
  const float bad[] = {1.0f, NAN};
  for (const RotaryConfig& config : {RotaryConfig{.dims = 0, .positions_max = 1},
                                     {.dims = 3, .positions_max = 1},
                                     {.dims = 2048, .positions_max = 1},
                                     {.dims = 4, .positions_max = 0},
                                     {.dims = 4, .positions_max = 1, .base = 0},
                                     {.dims = 4, .positions_max = 1, .base = NAN},
                                     {.dims = 4, .positions_max = 1, .position_scale = INFINITY},
                                     {.dims = 2, .positions_max = 1, .frequency_factors = zero},
                                     {.dims = 4, .positions_max = 1, .frequency_factors = zero},
                                     {.dims = 4, .positions_max = 1, .frequency_factors = bad}}) {
    EXPECT_EQ(RotaryTable::Build(config, pool).status().code(), base::Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace plumb::tensor
