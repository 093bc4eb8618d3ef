// tests/golden/v41/golden_observer.h
// Compares every stage of a forward pass with the reference's, and may put the reference's values
// in its place, so that each stage is computed from the reference's inputs. The reference's names
// of stages: make_stages.py.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "golden_file.h"
#include "model/families/deepseek_observer.h"

namespace plumb::model {

class GoldenObserver final : public DeepseekObserver {
 public:
  // `file` must outlive it. With `feed`, values seen are replaced by the reference's.
  GoldenObserver(const GoldenFile& file, bool feed) : file_(file), feed_(feed) {}

  void Values(DeepseekStage stage, uint32_t layer, std::span<float> values) override {
    const std::string name = Name(stage, layer);
    if (!file_.Has(name)) return;
    const std::vector<float> wanted = file_.Floats(name);
    if (stage == DeepseekStage::kExpertWeights) {
      CompareWeights(layer, values, wanted);
      return;
    }
    Note(name.substr(0, name.find('.')), RelativeError(values, wanted));
    if (feed_) std::copy(wanted.begin(), wanted.end(), values.begin());
  }

  void Chose(DeepseekChoice choice, uint32_t layer, uint32_t row,
             std::span<const uint32_t> chosen) override {
    const char* prefix = choice == DeepseekChoice::kExperts ? "moe_idx."
                         : choice == DeepseekChoice::kRows  ? "topk."
                                                            : "cand.";
    const std::string name = prefix + std::to_string(layer);
    if (!file_.Has(name)) return;
    const std::set<int64_t> ours(chosen.begin(), chosen.end());
    std::set<int64_t> theirs;
    for (const int32_t index : Row(name, row)) {
      if (index >= 0) theirs.insert(index);
    }
    ++choices_;
    if (ours == theirs) return;
    ++differing_;
    std::vector<int64_t> both;
    std::set_intersection(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                          std::back_inserter(both));
    differing_entries_ += theirs.size() - std::min(theirs.size(), both.size());
  }

  // The largest error of each kind of stage.
  const std::map<std::string, double>& errors() const { return errors_; }
  uint32_t choices() const { return choices_; }
  uint32_t differing() const { return differing_; }  // choices that are not the reference's
  uint64_t differing_entries() const { return differing_entries_; }

 private:
  static std::string Name(DeepseekStage stage, uint32_t layer) {
    const auto of = [](const char* prefix, uint32_t number) {
      return prefix + std::to_string(number);
    };
    switch (stage) {
      case DeepseekStage::kStreamsIn:
        return of("streams_in.", layer);
      case DeepseekStage::kPreMix:  // the reference calls it by the layer that computed it
        return layer == 0 ? "" : of("pre.", layer - 1);
      case DeepseekStage::kAttentionIn:
        return of("attn_in.", layer);
      case DeepseekStage::kAttentionOut:
        return of("attn_out.", layer);
      case DeepseekStage::kExpertsOut:
        return of("ffn_out.", layer);
      case DeepseekStage::kStreamsOut:
        return of("streams.", layer);
      case DeepseekStage::kFinalHidden:
        return "final_hidden";
      case DeepseekStage::kWindowRows:
        return "";
      case DeepseekStage::kExpertWeights:
        return of("moe_w.", layer);
    }
    return "";
  }

  std::vector<int32_t> Row(const std::string& name, uint32_t row) {
    const uint64_t columns = file_.Columns(name);
    const std::vector<int32_t> all = file_.Integers(name);
    return {all.begin() + static_cast<ptrdiff_t>(row * columns),
            all.begin() + static_cast<ptrdiff_t>((row + 1) * columns)};
  }

  // Ours are in order of experts, the reference's in order of scores.
  void CompareWeights(uint32_t layer, std::span<const float> ours,
                      const std::vector<float>& theirs) {
    const std::string name = "moe_idx." + std::to_string(layer);
    const uint64_t used = file_.Columns(name);
    const std::vector<int32_t> experts = file_.Integers(name);
    ASSERT_EQ(ours.size(), theirs.size());
    std::vector<float> sorted;
    for (size_t row = 0; row < theirs.size() / used; ++row) {
      std::map<int32_t, float> by_expert;
      for (size_t i = row * used; i < (row + 1) * used; ++i) by_expert[experts[i]] = theirs[i];
      for (const auto& [expert, weight] : by_expert) sorted.push_back(weight);
    }
    if (sorted.size() == ours.size()) Note("moe_w", RelativeError(ours, sorted));
  }

  void Note(const std::string& kind, double error) {
    double& largest = errors_[kind];
    if (!(error <= largest)) largest = error;
  }

  const GoldenFile& file_;
  const bool feed_;
  std::map<std::string, double> errors_;
  uint32_t choices_ = 0;
  uint32_t differing_ = 0;
  uint64_t differing_entries_ = 0;
};

}  // namespace plumb::model
