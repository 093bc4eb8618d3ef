// cli/perplexity_model.h
// A model with its tokenizer, loaded to be measured: no engine, no chat template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/model_store.h"
#include "cli/perplexity_measure.h"
#include "cli/progress.h"
#include "model/checkpoint.h"
#include "model/model.h"
#include "tensor/kernel_table.h"
#include "tensor/thread_pool.h"
#include "text/tokenizer.h"

namespace plumb::cli {

// What the loaded model borrows, and where progress goes.
struct MeasureSurroundings {
  tensor::ThreadPool& pool;
  const tensor::KernelTable& kernels;
  const base::Clock& clock;
  const ProgressOutput& output;
};

struct MeasuredModel {
  std::unique_ptr<model::Model> model;
  std::unique_ptr<text::Tokenizer> tokenizer;
};

// For windows of `context` tokens. kInvalidArgument (field "--context"): the model's context is
// shorter; the errors of loading, which name the file.
base::Result<MeasuredModel> LoadToMeasure(const ModelReference& reference, uint32_t context,
                                          const MeasureSurroundings& surroundings);

// The text's tokens, and the BOS that stands before every window where the vocabulary wants one.
// Spellings of control tokens are text. kInvalidArgument (field "text"): not UTF-8, too long.
struct MeasuredText {
  std::vector<base::TokenId> tokens;
  std::optional<base::TokenId> bos;
};
base::Result<MeasuredText> Tokenize(std::string_view text, const text::Tokenizer& tokenizer);

// A text to measure. kInvalidArgument: it cannot be read.
base::Result<std::string> ReadMeasuredText(const std::string& path);

// Whether windows of `context` tokens of this text can be measured with this model, found out
// without loading it. kInvalidArgument: the text (as Tokenize and CheckJob say), or the model's
// context is shorter; kUnsupported, kCorrupt, kNotFound: the model.
base::Status CheckMeasurable(const model::Checkpoint& file, std::string_view text,
                             uint32_t context);

// SHA-256 of the ids as 32-bit little-endian numbers: equal exactly when the tokens are.
std::string Digest(std::span<const base::TokenId> tokens);

// Measure, with a progress line for each window.
base::Result<Measurement> MeasureWithProgress(const MeasureJob& job, MeasureParts parts,
                                              const MeasureSurroundings& surroundings);

}  // namespace plumb::cli
