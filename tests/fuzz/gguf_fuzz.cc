// tests/fuzz/gguf_fuzz.cc
// Arbitrary bytes as a model file: parsed, every value read by every getter, inspected, and, when
// it still looks like a model, loaded and run for two tokens. Only files whose loading is cheap are
// loaded, since the fuzzer's time is for the checks and not for products.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "model/gguf.h"
#include "model/inspect.h"
#include "model/load.h"
#include "tensor/cpu_features.h"

namespace {

using plumb::base::TokenId;
using plumb::model::Gguf;

constexpr uint64_t kWeightBytesMax = 4u << 20;
constexpr uint64_t kPageBytesMax = 4u << 20;
constexpr uint32_t kContext = 4;

void ReadEverything(const Gguf& gguf) {
  for (const auto& [key, value] : gguf.values()) {
    (void)gguf.Unsigned(key).ok();
    (void)gguf.Number(key).ok();
    (void)gguf.Bool(key).ok();
    (void)gguf.Text(key).ok();
    (void)gguf.Texts(key).ok();
    (void)gguf.Numbers(key).ok();
    (void)gguf.Integers(key).ok();
  }
  uint64_t sum = 0;  // touches both ends of every tensor
  for (const plumb::model::GgufTensor& tensor : gguf.tensors()) {
    CHECK(gguf.FindTensor(tensor.name) == &tensor) << tensor.name;
    sum += static_cast<uint64_t>(tensor.bytes.front()) + static_cast<uint64_t>(tensor.bytes.back());
  }
  CHECK(sum <= 510 * gguf.tensors().size()) << sum;
}

void LoadAndRun(const Gguf& gguf) {
  static plumb::tensor::ThreadPool pool({.threads = 1});
  auto model = plumb::model::LoadModel(gguf, {.pool = pool,
                                              .kernels = **plumb::tensor::SelectKernels("auto"),
                                              .rows_max = 2,
                                              .logits_rows_max = 2,
                                              .context_max = kContext});
  if (!model.ok()) return;
  const plumb::model::ModelInfo& info = (*model)->info();
  std::vector<std::byte> page(info.page_bytes);
  std::byte* const pages[] = {page.data()};
  const TokenId tokens[] = {TokenId{info.vocabulary_size - 1}, TokenId{0}};
  const uint32_t count = info.context_max < 2 ? 1 : 2;
  std::vector<float> logits(uint64_t{count} * info.vocabulary_size);
  const plumb::model::SequenceRows rows[] = {{std::span(tokens).first(count), 0, pages, count}};
  (*model)->Forward(rows, logits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto gguf = Gguf::Parse(std::as_bytes(std::span(data, size)));
  if (!gguf.ok()) {
    CHECK(!gguf.status().message().empty());
    return 0;
  }
  ReadEverything(**gguf);
  auto inspection = plumb::model::Inspect(**gguf);
  if (!inspection.ok()) return 0;
  const plumb::model::MemoryNeed& memory = inspection->memory;
  if (memory.weight_bytes <= kWeightBytesMax && memory.page_bytes <= kPageBytesMax) {
    LoadAndRun(**gguf);
  }
  return 0;
}
