// tests/fuzz/deepseek_fuzz.cc
// Arbitrary bytes as the config.json and the one safetensors file of a DeepSeek-V4.1 folder: the
// config is read, tensors are mapped, the whole is inspected, and, when it still is a model, loaded
// and run for two tokens. Layout of an input: config bytes (u32), config, the file.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/deepseek_checkpoint.h"
#include "model/inspect.h"
#include "model/load.h"
#include "tensor/cpu_features.h"

namespace {

namespace model = plumb::model;

constexpr uint64_t kBytesMax = 4u << 20;

// Every id its own class, as far as there are classes.
plumb::base::Result<std::vector<uint32_t>> Classes(const model::DeepseekConfig& config) {
  std::vector<uint32_t> classes(config.vocabulary);
  for (uint32_t id = 0; id < classes.size(); ++id) classes[id] = id % config.engram_classes;
  return classes;
}

void LoadAndRun(const model::Checkpoint& checkpoint, const model::DeepseekConfig& config) {
  static plumb::tensor::ThreadPool pool({.threads = 1});
  model::LoadOptions options{.pool = pool, .kernels = **plumb::tensor::SelectKernels("auto")};
  options.rows_max = 2;
  options.logits_rows_max = 1;
  options.context_max = 4;
  options.replay_rows = 0;
  options.token_classes = [&] { return Classes(config); };
  auto loaded = model::LoadModel(checkpoint, options);
  if (!loaded.ok()) {
    CHECK(!loaded.status().message().empty());
    return;
  }
  const model::ModelInfo& info = (*loaded)->info();
  if (info.context_max < 2) return;
  std::vector<std::byte> page(info.page_bytes), state(info.state_bytes);
  std::byte* const pages[] = {page.data()};
  const plumb::base::TokenId tokens[] = {plumb::base::TokenId{0}, plumb::base::TokenId{0}};
  std::vector<float> logits(info.vocabulary_size);
  const model::SequenceRows rows[] = {
      {.tokens = tokens, .position = 0, .pages = pages, .logits_rows = 1, .state = state.data()}};
  (*loaded)->Forward(rows, logits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t config_bytes = 0;
  if (size < sizeof config_bytes) return 0;
  std::memcpy(&config_bytes, data, sizeof config_bytes);
  const std::string_view rest(reinterpret_cast<const char*>(data) + sizeof config_bytes,
                              size - sizeof config_bytes);
  if (config_bytes > rest.size()) return 0;
  const std::string_view config = rest.substr(0, config_bytes);
  const auto read = model::ReadDeepseekConfig(config, "fuzz");
  if (!read.ok()) {
    CHECK(!read.status().message().empty());
    return 0;
  }
  const model::DeepseekNeed need = model::NeedOf(*read);
  CHECK(need.page_bytes >= need.token_bytes) << need.page_bytes;
  auto file = model::Safetensors::Parse(std::as_bytes(std::span(rest.substr(config_bytes))));
  if (!file.ok()) return 0;
  std::vector<std::unique_ptr<model::Safetensors>> files;
  files.push_back(*std::move(file));
  const auto checkpoint = model::DeepseekCheckpoint::Assemble("fuzz", {.config = config},
                                                              std::nullopt, std::move(files));
  if (!checkpoint.ok()) return 0;
  const auto inspection = model::Inspect(**checkpoint);
  CHECK(inspection.ok()) << inspection.status().ToString();
  if (inspection->unsupported.ok() && need.state_bytes <= kBytesMax)
    LoadAndRun(**checkpoint, *read);
  return 0;
}
