// model/inspect_test.cc: the memory that inspection tells beside the weights, which
// model/load_test.cc holds against a loaded model.
#include "model/inspect.h"

#include <gtest/gtest.h>

#include <string>

#include "base/thread.h"
#include "model/gguf.h"
#include "model/tiny_model.h"
#include "tensor/attention.h"

namespace plumb::model {
namespace {

constexpr uint32_t kF32 = 0, kF16 = 1, kQ8_0 = 8, kBF16 = 30;

Inspection Of(const TinyModelSpec& spec) {
  const std::string file = TinyModel(spec);
  const auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
  EXPECT_TRUE(gguf.ok()) << gguf.status().ToString();
  return Inspect(**gguf).value();
}

TEST(Inspect, TellsTheEmbeddingRowsThatAreOnlyLookedUp) {
  struct Case {
    uint32_t type;
    uint64_t row_bytes;
    bool held_once;  // where it is the output too
  };
  for (const Case& c :
       {Case{kF32, 256, true}, {kF16, 128, true}, {kBF16, 128, false}, {kQ8_0, 2 * 34, true}}) {
    TinyModelSpec spec{.types = {c.type}, .embedding_type = c.type, .tied_output = false};
    const MemoryNeed own = Of(spec).memory;
    spec.tied_output = true;
    const MemoryNeed tied = Of(spec).memory;
    EXPECT_EQ(own.lookup_bytes, c.row_bytes * spec.vocabulary) << c.type;
    EXPECT_EQ(tied.lookup_bytes, c.held_once ? 0 : own.lookup_bytes) << c.type;
    // A step reads the output matrix and the layers, whichever tensor the matrix comes from.
    EXPECT_EQ(tied.weight_bytes - tied.lookup_bytes, own.weight_bytes - own.lookup_bytes) << c.type;
  }
}

TEST(Inspect, TheWorkspaceHoldsWhatAStepNeeds) {
  constexpr uint64_t kFloats = 2 * 64 + 2 * 64 + 2 * 32 + 2 * 96;  // hidden, heads, keys, gates
  constexpr uint64_t kQuants = 3 * (32 * 2 + 16) + 4;              // 96 inputs, 3 groups, a scale
  const TinyModelSpec spec;
  const tensor::KvLayout layout{spec.layers, spec.kv_heads, spec.head_dim};
  const auto scratch = tensor::AttentionScratch::Allocate(layout, spec.heads, spec.context,
                                                          base::UsableProcessors());
  ASSERT_TRUE(scratch.ok());
  const uint64_t expected = 512 * (kFloats * 4 + kQuants) + scratch->floats() * 4;
  EXPECT_EQ(Of(spec).memory.workspace_bytes, expected);
  // Routed experts: a probability for each, rows gathered, computed and summed.
  TinyModelSpec routed;
  routed.experts = 4;
  routed.experts_used = 2;
  EXPECT_EQ(Of(routed).memory.workspace_bytes, expected + 512 * (4 + 3 * 64) * 4);
}

TEST(Inspect, TheWorkspaceGrowsWithThreadsUpToItsLimit) {
  const tensor::KvLayout layout{2, 2, 64};
  EXPECT_EQ(tensor::AttentionScratch::Bytes(layout, 8, 4096, 1), 0u);
  const uint64_t two = tensor::AttentionScratch::Bytes(layout, 8, 4096, 2);
  EXPECT_GT(two, 0u);
  EXPECT_EQ(tensor::AttentionScratch::Bytes(layout, 8, 4096, 4), 2 * two);
  EXPECT_EQ(tensor::AttentionScratch::Bytes(layout, 64, 1u << 20, 256),
            tensor::AttentionScratch::kBytesMax);
}

}  // namespace
}  // namespace plumb::model
