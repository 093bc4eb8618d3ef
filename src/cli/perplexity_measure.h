// cli/perplexity_measure.h
// Perplexity of a text under a model, and the distance of its next-token distribution from a
// reference's. As is customary: the text is cut into windows of `context` tokens that know nothing
// of each other; the first half of a window is context only, and each later token of it is
// predicted from all before it. So a window counts context - context / 2 - 1 positions. Sums are
// f64 in order of position, so figures do not depend on threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "model/model.h"
#include "tensor/thread_pool.h"

namespace plumb::cli {

constexpr uint32_t kMeasureRows = 512;       // rows of one Forward
constexpr uint32_t kMeasureLogitsRows = 64;  // of those, with logits
constexpr uint32_t kMeasureContextMin = 8;
constexpr uint64_t kMeasureWindowsMax = 1u << 30;

struct MeasureJob {
  std::span<const base::TokenId> tokens;  // of the whole text
  uint32_t context = 512;                 // tokens of a window, >= kMeasureContextMin
  std::optional<base::TokenId> bos;       // takes the place of each window's first token
  uint64_t windows_max = 0;               // 0 = as many as the text has; an unfull one is left out
};

struct MeasureParts {
  tensor::ThreadPool& pool;
  model::Model& model;
  model::Model* reference = nullptr;  // of the same vocabulary
  // Called after each window, with the perplexity so far. May be empty.
  std::function<void(uint64_t windows_done, double perplexity)> progress;
};

// Of the tokens counted.
struct Likelihood {
  double mean_nll = 0;        // nat
  double standard_error = 0;  // of the mean
  double perplexity() const;
  double perplexity_error() const;  // standard error, to first order
};

// KL(reference || model) of the next token's distribution, in nat.
struct Divergence {
  double mean = 0, median = 0, p99 = 0, largest = 0;
  double agreement = 0;  // share of positions whose likeliest token is the same
};

struct Measurement {
  uint64_t windows = 0;
  uint64_t positions = 0;  // counted
  Likelihood model;
  std::optional<Likelihood> reference;
  std::optional<Divergence> divergence;
};

// Windows that a text of so many tokens has.
uint64_t WindowsOf(const MeasureJob& job);

// kInvalidArgument (field "text"): the text has less than one window.
base::Status CheckJob(const MeasureJob& job);

// kInvalidArgument: CheckJob's; kCorrupt: a logit that is not finite. The
// context is within both models' (CHECK).
base::Result<Measurement> Measure(const MeasureJob& job, const MeasureParts& parts);

}  // namespace plumb::cli
