// engine/grammar_testing.h
// For tests and simulations: a grammar without a language. What may come next is a function of how
// many tokens were accepted and of the latest one: often a third of the letters, sometimes a single
// token, sometimes an end; after `tokens_max` tokens the answer is complete.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "text/grammar.h"

namespace plumb::engine {

struct FakeGrammarOptions {
  uint64_t seed = 0;
  uint32_t end_token = UINT32_MAX;    // beyond the vocabulary: it never ends by itself
  uint32_t tokens_max = UINT32_MAX;   // complete after so many
  uint32_t fails_after = UINT32_MAX;  // the mask after so many tokens is over a limit
};

class FakeGrammarState final : public text::GrammarState {
 public:
  explicit FakeGrammarState(const FakeGrammarOptions& options) : options_(options) {}

  base::Status FillMask(std::span<uint32_t> mask) override {
    if (accepted_.size() >= options_.fails_after) return base::Unsupported("over the fake limit");
    std::fill(mask.begin(), mask.end(), 0);
    for (uint32_t token = 0; token < kLetters; ++token) {
      if (Allows(token)) mask[token / 32] |= 1u << (token % 32);
    }
    if (options_.end_token / 32 < mask.size() && Allows(options_.end_token)) {
      mask[options_.end_token / 32] |= 1u << (options_.end_token % 32);
    }
    return base::OkStatus();
  }
  base::Status Accept(base::TokenId token) override {
    if (!Allows(base::Index(token))) return base::InvalidArgument("token", "not allowed here");
    accepted_.push_back(token);
    return base::OkStatus();
  }
  void Rollback(uint32_t tokens) override {
    CHECK(tokens <= accepted_.size());
    accepted_.resize(accepted_.size() - tokens);
  }
  uint32_t CountAllowed(std::span<const base::TokenId> tokens) override {
    uint32_t count = 0;
    while (count < tokens.size() && Accept(tokens[count]).ok()) ++count;
    Rollback(count);
    return count;
  }
  void AppendForced(uint32_t max, std::vector<base::TokenId>& out) override {
    uint32_t count = 0;
    for (; count < max && !Complete() && Hash() % 4 == 0; ++count) {
      out.push_back(base::TokenId{Single()});
      accepted_.push_back(out.back());
    }
    Rollback(count);
  }
  bool Complete() override { return accepted_.size() >= options_.tokens_max; }

 private:
  static constexpr uint32_t kLetters = 128;

  uint64_t Hash() const {
    const uint64_t last = accepted_.empty() ? 0 : base::Index(accepted_.back()) + 1;
    return base::Rng(options_.seed ^ accepted_.size() << 32 ^ last).Next() >> 8;
  }
  uint32_t Single() const { return static_cast<uint32_t>('a' + Hash() / 64 % 26); }
  bool Allows(uint32_t token) {
    if (Complete()) return token == options_.end_token;
    const uint64_t hash = Hash();
    if (hash % 4 == 0 || token == Single()) return token == Single();
    if (token == options_.end_token) return hash % 8 == 1;
    return token < kLetters && std::rotr(token * 0x9E3779B9u, 7) % 3 == hash % 3;
  }

  const FakeGrammarOptions options_;
  std::vector<base::TokenId> accepted_;
};

class FakeGrammar final : public text::Grammar {
 public:
  explicit FakeGrammar(const FakeGrammarOptions& options) : options_(options) {}
  std::unique_ptr<text::GrammarState> NewState() const override {
    return std::make_unique<FakeGrammarState>(options_);
  }

 private:
  const FakeGrammarOptions options_;
};

}  // namespace plumb::engine
