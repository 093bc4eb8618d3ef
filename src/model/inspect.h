// model/inspect.h
// What a model file holds, for people: numbers, quantisation mix, memory, template. Works also for
// families and quantisations that cannot be served yet; then `unsupported` says why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "model/families/deepseek_v41_need.h"

namespace plumb::model {

struct TypeShare {
  std::string type;  // "Q4_K"
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;  // in the file
};

// Memory to serve the model, in bytes.
struct MemoryNeed {
  uint64_t weight_bytes = 0;  // resident, after repacking
  uint64_t lookup_bytes = 0;  // of these: embedding rows beside the output matrix, only looked up
  uint64_t token_bytes = 0;   // keys and values of one token
  uint64_t page_bytes = 0;    // of kPageTokens tokens
  uint64_t state_bytes = 0;   // of a sequence, beside its pages
  // Activations of a step of kWorkspaceRows rows, as floats and as the products' integers, and
  // attention's partial results, with a thread for each usable processor.
  uint64_t workspace_bytes = 0;
};

struct Inspection {
  Config config;
  std::string format;  // "GGUF 3"
  uint64_t file_bytes = 0;
  uint64_t tensors = 0;
  uint64_t parameters = 0;       // elements of all tensors
  std::vector<TypeShare> types;  // most bytes first
  MemoryNeed memory;
  std::optional<DeepseekNeed> deepseek;  // of that family; its weights are mapped, not repacked
  std::string tokenizer_model;  // "gpt2", "llama", ..., "tokenizer.json"; empty when absent
  std::string tokenizer_pre;
  uint32_t vocabulary_tokens = 0;  // entries of tokenizer.ggml.tokens
  std::string chat_template;       // Jinja source; empty when absent
  base::Status unsupported;        // ok, or why LoadModel would refuse
};

constexpr uint32_t kWorkspaceRows = 512;

// The errors of ReadConfig and ReadDeepseekConfig.
base::Result<Inspection> Inspect(const Checkpoint& gguf);

// Bytes to serve `sequences` sequences of `context_tokens` tokens each.
uint64_t MemoryFor(const MemoryNeed& need, uint64_t context_tokens, uint64_t sequences);

}  // namespace plumb::model
