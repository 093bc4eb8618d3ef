// cli/perplexity_model_test.cc
// That what is measured is what the numerics id says.
#include "cli/perplexity_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/cpu_features.h"

namespace plumb::cli {
namespace {

TEST(LoadToMeasure, AllRowsOfAWindowHaveAllLayers) {
  const auto mini = ResolveModel(ModelStore("", ShippedFolders(ThisProgram())), "v41-mini");
  ASSERT_TRUE(mini.ok()) << mini.status().ToString();
  tensor::ThreadPool pool({.threads = 1});
  const base::SystemClock clock;
  const ProgressOutput output = NoProgress();
  const auto measured =
      LoadToMeasure(*mini, 64, {pool, **tensor::SelectKernels("auto"), clock, output});
  ASSERT_TRUE(measured.ok()) << measured.status().ToString();
  EXPECT_EQ(measured->model->info().replay_rows, 0u);
  EXPECT_THAT(measured->model->info().numerics_id, testing::StartsWith("d1-kvq-k0"));
}

}  // namespace
}  // namespace plumb::cli
