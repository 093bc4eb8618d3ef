// tests/golden/logits/check_logits.cc
// Judges a model's logits against the NumPy reference: `check_logits GOLDENS.json MODEL.gguf`.
// At each stored position the reference's five best tokens and their log-probabilities are known;
// ours must agree on the best, up to near-ties, and give it nearly the same log-probability.
// Limits: below.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/thread.h"
#include "model/load.h"
#include "tensor/cpu_features.h"
#include "tensor/ops.h"

namespace {

using plumb::base::Result;
using plumb::base::Status;
using plumb::base::TokenId;

constexpr double kAgreementMin = 0.98;  // of positions with the same best token
constexpr double kMeanErrorMax = 0.03;  // |difference of the best token's log-probability|
// A disagreement is a near-tie when the reference prefers its best over ours by less than this.
constexpr double kMarginMax = 0.1;
constexpr uint32_t kRows = 64;
constexpr uint64_t kGoldensBytesMax = 4u << 20;

struct Golden {
  std::string name;
  std::vector<TokenId> tokens;
  std::vector<uint32_t> positions;
  std::vector<std::vector<uint32_t>> top;  // by position; best first
  std::vector<std::vector<double>> logprobs;
};

struct Tally {
  uint64_t positions = 0;
  uint64_t agreed = 0;
  uint64_t bad_disagreements = 0;
  double error_sum = 0;
  double error_max = 0;
};

Result<std::vector<Golden>> ReadGoldens(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, plumb::base::ReadFile(path, kGoldensBytesMax));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return plumb::base::Corrupt("the goldens are not JSON");
  std::vector<Golden> goldens;
  for (const auto& entry : json["prompts"]) {
    Golden golden;
    golden.name = entry["name"].get<std::string>();
    for (const uint32_t token : entry["tokens"].get<std::vector<uint32_t>>()) {
      golden.tokens.push_back(TokenId{token});
    }
    entry["positions"].get_to(golden.positions);
    entry["top"].get_to(golden.top);
    entry["logprobs"].get_to(golden.logprobs);
    if (golden.top.size() != golden.positions.size() ||
        golden.logprobs.size() != golden.positions.size()) {
      return plumb::base::Corrupt("the goldens of " + golden.name + " are incomplete");
    }
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

class Checker {
 public:
  Checker(plumb::model::Model& model, plumb::tensor::Compute compute)
      : model_(model), compute_(compute) {}

  void Check(const Golden& golden) {
    const uint64_t vocabulary = model_.info().vocabulary_size;
    const size_t page_count =
        (golden.tokens.size() + plumb::model::kPageTokens - 1) / plumb::model::kPageTokens;
    std::vector<std::vector<std::byte>> memory(page_count,
                                               std::vector<std::byte>(model_.info().page_bytes));
    std::vector<std::byte*> pages;
    for (auto& page : memory) pages.push_back(page.data());
    std::vector<float> logits;
    size_t next = 0;  // golden position
    for (uint32_t begin = 0; begin < golden.tokens.size(); begin += kRows) {
      const auto count =
          static_cast<uint32_t>(std::min<size_t>(kRows, golden.tokens.size() - begin));
      logits.resize(count * vocabulary);
      const plumb::model::SequenceRows rows[] = {
          {std::span(golden.tokens).subspan(begin, count), begin, pages, count}};
      model_.Forward(rows, logits);
      for (; next < golden.positions.size() && golden.positions[next] < begin + count; ++next) {
        const uint64_t row = golden.positions[next] - begin;
        Compare(golden, next, std::span(logits).subspan(row * vocabulary, vocabulary));
      }
    }
  }
  const Tally& tally() const { return tally_; }

 private:
  void Compare(const Golden& golden, size_t index, std::span<const float> logits) {
    const double normaliser = plumb::tensor::LogSumExp(compute_, logits);
    const auto best =
        static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    const std::vector<uint32_t>& top = golden.top[index];
    const std::vector<double>& logprobs = golden.logprobs[index];
    const double error = std::abs(logits[top[0]] - normaliser - logprobs[0]);
    ++tally_.positions;
    tally_.error_sum += error;
    tally_.error_max = std::max(tally_.error_max, error);
    if (best == top[0]) {
      ++tally_.agreed;
      return;
    }
    const auto found = std::find(top.begin(), top.end(), best);
    const bool listed = found != top.end();
    // Not among the five: the margin is at least that of the fifth.
    const double margin = logprobs[0] - (listed ? logprobs[found - top.begin()] : logprobs.back());
    const bool near_tie = listed && margin < kMarginMax;
    tally_.bad_disagreements += near_tie ? 0 : 1;
    std::cout << fmt::format("  {} position {}: ours {}, reference {} by {}{:.4f} nat{}\n",
                             golden.name, golden.positions[index], best, top[0],
                             listed ? "" : "at least ", margin, near_tie ? "" : "  NOT A NEAR-TIE");
  }

  plumb::model::Model& model_;
  const plumb::tensor::Compute compute_;
  Tally tally_;
};

Result<bool> Run(const std::string& goldens_path, const std::string& model_path) {
  ASSIGN_OR_RETURN(const std::vector<Golden> goldens, ReadGoldens(goldens_path));
  ASSIGN_OR_RETURN(const auto gguf, plumb::model::OpenModelFile(model_path));
  plumb::tensor::ThreadPool pool({.threads = plumb::base::UsableProcessors()});
  ASSIGN_OR_RETURN(const auto* kernels, plumb::tensor::SelectKernels("auto"));
  ASSIGN_OR_RETURN(
      const auto model,
      plumb::model::LoadModel(
          *gguf, {.pool = pool, .kernels = *kernels, .rows_max = kRows, .logits_rows_max = kRows}));
  Checker checker(*model, {pool, *kernels});
  for (const Golden& golden : goldens) checker.Check(golden);

  const Tally& tally = checker.tally();
  if (tally.positions == 0) return plumb::base::Corrupt("the goldens hold no position");
  const double agreement = static_cast<double>(tally.agreed) / static_cast<double>(tally.positions);
  const double mean = tally.error_sum / static_cast<double>(tally.positions);
  std::cout << fmt::format(
      "{} prompts, {} positions, kernels {}: top-1 agreement {:.2f} % (>= {:.0f}), mean |dlogprob| "
      "of the top token {:.4f} (<= {}), largest {:.3f}, disagreements that are no near-tie: {}\n",
      goldens.size(), tally.positions, kernels->name, 100 * agreement, 100 * kAgreementMin, mean,
      kMeanErrorMax, tally.error_max, tally.bad_disagreements);
  return agreement >= kAgreementMin && mean <= kMeanErrorMax && tally.bad_disagreements == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: check_logits GOLDENS.json MODEL.gguf\n";
    return 2;
  }
  const auto good = Run(argv[1], argv[2]);
  if (!good.ok()) {
    std::cerr << good.status().ToString() << "\n";
    return 2;
  }
  std::cout << (*good ? "PASS\n" : "FAIL\n");
  return *good ? 0 : 1;
}
