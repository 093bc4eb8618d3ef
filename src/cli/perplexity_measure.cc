// cli/perplexity_measure.cc
// A window at a time, through both models in step; what a position says is computed on the pool,
// one position per item, and summed afterwards in order.
#include "cli/perplexity_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plumb::cli {
namespace {

using base::Status;
using base::TokenId;

// What one position tells.
struct Position {
  double nll = 0;
  double reference_nll = 0;
  double divergence = 0;
  bool agrees = false;
};

// A row of logits, and what normalises them.
struct Row {
  std::span<const float> logits;
  float most = 0;
  uint32_t likeliest = 0;  // the lower id of equals
  double log_sum = 0;      // log of the sum of exp(logit); not finite when a logit is not

  explicit Row(std::span<const float> row) : logits(row) {
    likeliest = static_cast<uint32_t>(std::ranges::max_element(row) - row.begin());
    most = row[likeliest];
    double sum = 0;
    for (const float logit : row) sum += std::exp(double{logit} - double{most});
    log_sum = double{most} + std::log(sum);
  }
  double LogProbability(size_t token) const { return double{logits[token]} - log_sum; }
};

// The sum of p (log p - log q); never below 0 but for rounding.
double KullbackLeibler(const Row& p, const Row& q) {
  double sum = 0;
  for (size_t token = 0; token < p.logits.size(); ++token) {
    const double log_p = p.LogProbability(token);
    sum += std::exp(log_p) * (log_p - q.LogProbability(token));
  }
  return std::max(sum, 0.0);
}

// A model, and the keys, values and state of one window.
class WindowRunner {
 public:
  WindowRunner(model::Model& model, uint32_t context) : model_(model) {
    const model::ModelInfo& info = model.info();
    CHECK(context <= info.context_max) << context;
    CHECK(model.rows_max() >= kMeasureLogitsRows && model.logits_rows_max() >= kMeasureLogitsRows);
    const uint32_t count = (context + model::kPageTokens - 1) / model::kPageTokens;
    memory_.resize(count, std::vector<std::byte>(info.page_bytes));
    for (auto& page : memory_) pages_.push_back(page.data());
    state_.resize(info.state_bytes);
    logits_.resize(uint64_t{kMeasureLogitsRows} * info.vocabulary_size);
  }

  // Positions [begin, end) of the window, without logits.
  void Read(std::span<const TokenId> window, uint32_t begin, uint32_t end) {
    const uint32_t most = std::min(kMeasureRows, model_.rows_max());
    for (; begin < end; begin += most) {
      const uint32_t count = std::min(most, end - begin);
      const model::SequenceRows rows[] = {Rows(window, begin, count, 0)};
      model_.Forward(rows, {});
    }
  }
  // The same with logits; at most kMeasureLogitsRows.
  void Predict(std::span<const TokenId> window, uint32_t begin, uint32_t end) {
    const uint32_t count = end - begin;
    const model::SequenceRows rows[] = {Rows(window, begin, count, count)};
    model_.Forward(rows, std::span(logits_).first(uint64_t{count} * vocabulary()));
  }
  std::span<const float> Logits(uint32_t row) const {
    return std::span(logits_).subspan(uint64_t{row} * vocabulary(), vocabulary());
  }

 private:
  uint64_t vocabulary() const { return model_.info().vocabulary_size; }
  model::SequenceRows Rows(std::span<const TokenId> window, uint32_t begin, uint32_t count,
                           uint32_t logits_rows) {
    return {.tokens = window.subspan(begin, count),
            .position = begin,
            .pages = pages_,
            .logits_rows = logits_rows,
            .state = state_.empty() ? nullptr : state_.data()};
  }

  model::Model& model_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::byte*> pages_;
  std::vector<std::byte> state_;
  std::vector<float> logits_;
};

Likelihood Summarise(std::span<const Position> positions, double Position::* nll) {
  const auto count = static_cast<double>(positions.size());
  double sum = 0;
  for (const Position& position : positions) sum += position.*nll;
  Likelihood result{.mean_nll = sum / count};
  double squares = 0;
  for (const Position& position : positions) {
    squares += (position.*nll - result.mean_nll) * (position.*nll - result.mean_nll);
  }
  if (positions.size() > 1) result.standard_error = std::sqrt(squares / (count - 1) / count);
  return result;
}

Divergence SummariseDivergence(std::span<const Position> positions) {
  Divergence result;
  std::vector<double> sorted;
  uint64_t agreed = 0;
  double sum = 0;
  for (const Position& position : positions) {
    sum += position.divergence;
    agreed += position.agrees ? 1 : 0;
    sorted.push_back(position.divergence);
  }
  std::ranges::sort(sorted);
  // The smallest value that at least this share of all does not exceed.
  const auto at = [&](uint64_t percent) {
    return sorted[(sorted.size() * percent + 99) / 100 - 1];
  };
  const auto count = static_cast<double>(positions.size());
  result.mean = sum / count;
  result.median = at(50);
  result.p99 = at(99);
  result.largest = sorted.back();
  result.agreement = static_cast<double>(agreed) / count;
  return result;
}

class MeasureRun {
 public:
  MeasureRun(const MeasureJob& job, const MeasureParts& parts)
      : job_(job), parts_(parts), model_(parts.model, job.context) {
    if (parts.reference != nullptr) reference_.emplace(*parts.reference, job.context);
  }

  base::Result<Measurement> Do() {
    Measurement result{.windows = WindowsOf(job_)};
    double nll = 0;
    for (uint64_t w = 0; w < result.windows; ++w) {
      const size_t counted = positions_.size();
      RETURN_IF_ERROR(Window(w));
      for (size_t i = counted; i < positions_.size(); ++i) nll += positions_[i].nll;
      if (!parts_.progress) continue;
      parts_.progress(w + 1, std::exp(nll / static_cast<double>(positions_.size())));
    }
    result.positions = positions_.size();
    result.model = Summarise(positions_, &Position::nll);
    if (reference_) {
      result.reference = Summarise(positions_, &Position::reference_nll);
      result.divergence = SummariseDivergence(positions_);
    }
    return result;
  }

 private:
  Status Window(uint64_t index) {
    const auto tokens = job_.tokens.subspan(index * job_.context, job_.context);
    std::vector<TokenId> window(tokens.begin(), tokens.end());
    if (job_.bos) window[0] = *job_.bos;
    // Position p predicts the token at p + 1; the last token is only predicted.
    const uint32_t first = job_.context / 2;
    model_.Read(window, 0, first);
    if (reference_) reference_->Read(window, 0, first);
    const uint32_t end = job_.context - 1;
    for (uint32_t begin = first; begin < end; begin += kMeasureLogitsRows) {
      const uint32_t chunk_end = std::min(end, begin + kMeasureLogitsRows);
      model_.Predict(window, begin, chunk_end);
      if (reference_) reference_->Predict(window, begin, chunk_end);
      const size_t counted = positions_.size();
      positions_.resize(counted + chunk_end - begin);
      parts_.pool.ParallelFor(chunk_end - begin, [&](uint32_t row) {
        positions_[counted + row] = Judge(row, window[begin + row + 1]);
      });
      for (size_t i = counted; i < positions_.size(); ++i) {
        const Position& position = positions_[i];
        if (std::isfinite(position.nll + position.reference_nll + position.divergence)) continue;
        return base::Corrupt(fmt::format("window {}: a logit is not finite", index + 1));
      }
    }
    return base::OkStatus();
  }

  Position Judge(uint32_t row, TokenId next) const {
    Position position;
    const Row ours(model_.Logits(row));
    position.nll = -ours.LogProbability(static_cast<uint32_t>(next));
    if (!reference_) return position;
    const Row theirs(reference_->Logits(row));
    position.reference_nll = -theirs.LogProbability(static_cast<uint32_t>(next));
    position.divergence = KullbackLeibler(theirs, ours);
    position.agrees = ours.likeliest == theirs.likeliest;
    return position;
  }

  const MeasureJob& job_;
  const MeasureParts& parts_;
  WindowRunner model_;
  std::optional<WindowRunner> reference_;
  std::vector<Position> positions_;
};

}  // namespace

double Likelihood::perplexity() const { return std::exp(mean_nll); }
double Likelihood::perplexity_error() const { return perplexity() * standard_error; }

uint64_t WindowsOf(const MeasureJob& job) {
  const uint64_t windows = job.tokens.size() / job.context;
  return job.windows_max == 0 ? windows : std::min(windows, job.windows_max);
}

base::Status CheckJob(const MeasureJob& job) {
  if (WindowsOf(job) > 0) return base::OkStatus();
  return base::InvalidArgument(
      "text", fmt::format("the text has {} tokens, less than one window of {}", job.tokens.size(),
                          job.context));
}

base::Result<Measurement> Measure(const MeasureJob& job, const MeasureParts& parts) {
  CHECK(job.context >= kMeasureContextMin) << job.context;
  if (parts.reference != nullptr) {
    CHECK(parts.reference->info().vocabulary_size == parts.model.info().vocabulary_size);
  }
  RETURN_IF_ERROR(CheckJob(job));
  return MeasureRun(job, parts).Do();
}

}  // namespace plumb::cli
