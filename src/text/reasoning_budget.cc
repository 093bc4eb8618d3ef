// text/reasoning_budget.cc
// A meter beside another grammar's state; behind text/reasoning_budget.h.
#include "text/reasoning_budget.h"

#include <utility>

#include "base/check.h"
#include "text/reasoning_meter.h"

namespace plumb::text {
namespace {

using base::Status;

class Budgeted final : public Grammar, public std::enable_shared_from_this<Budgeted> {
 public:
  std::shared_ptr<const GrammarVocabulary> vocabulary;
  ReasoningBudget budget;
  std::shared_ptr<const Grammar> inner;

  std::unique_ptr<GrammarState> NewState() const override;
};

class BudgetedState final : public GrammarState {
 public:
  explicit BudgetedState(std::shared_ptr<const Budgeted> grammar)
      : grammar_(std::move(grammar)),
        inner_(grammar_->inner == nullptr ? nullptr : grammar_->inner->NewState()),
        at_{ReasoningMeter(AnswerStart::kReasoning, false, grammar_->budget.ends)} {}

  Status FillMask(std::span<uint32_t> mask) override {
    if (inner_ != nullptr) {
      RETURN_IF_ERROR(inner_->FillMask(mask));
    } else if (at_.ended) {
      AllowOnly(vocabulary().end_tokens(), mask);
    } else {
      AllowAll(vocabulary().size(), mask);
    }
    const TokenId* forced = Forced();
    if (forced == nullptr) return base::OkStatus();
    const uint32_t index = base::Index(*forced);
    const bool open = index / 32 < mask.size() && (mask[index / 32] >> (index % 32) & 1) != 0;
    if (open) AllowOnly(std::span(forced, 1), mask);
    return base::OkStatus();
  }

  Status Accept(TokenId token) override {
    const Status refused = base::InvalidArgument("token", "the grammar does not allow it here");
    if (at_.ended || base::Index(token) >= vocabulary().size()) return refused;
    const TokenId* forced = Forced();
    if (forced != nullptr && token != *forced && Takes(*forced)) return refused;
    if (inner_ != nullptr) RETURN_IF_ERROR(inner_->Accept(token));
    history_.push_back(at_);
    at_.closing = forced != nullptr && token == *forced ? at_.closing + 1 : 0;
    if (vocabulary().IsEnd(token)) {
      at_.ended = true;
    } else {
      at_.meter.Push(vocabulary().TokenBytes(token));
    }
    return base::OkStatus();
  }

  void Rollback(uint32_t tokens) override {
    CHECK(tokens <= history_.size()) << tokens << " of " << history_.size();
    if (tokens == 0) return;
    if (inner_ != nullptr) inner_->Rollback(tokens);
    at_ = history_[history_.size() - tokens];
    history_.resize(history_.size() - tokens, at_);
  }

  uint32_t CountAllowed(std::span<const TokenId> tokens) override {
    uint32_t count = 0;
    while (count < tokens.size() && Accept(tokens[count]).ok()) ++count;
    Rollback(count);
    return count;
  }

  void AppendForced(uint32_t max, std::vector<TokenId>& out) override {
    const TokenId* forced = Forced();
    if (forced == nullptr) {
      if (inner_ != nullptr && !at_.meter.inside()) inner_->AppendForced(max, out);
      return;
    }
    if (max > 0 && Takes(*forced)) out.push_back(*forced);
  }

  bool Complete() override { return inner_ == nullptr ? at_.ended : inner_->Complete(); }

 private:
  struct Place {
    ReasoningMeter meter;
    uint32_t closing = 0;  // tokens of `close` that have just been written
    bool ended = false;    // an end token was accepted
  };

  const GrammarVocabulary& vocabulary() const { return *grammar_->vocabulary; }

  // The token that must come, where the budget is used up; null: none must.
  const TokenId* Forced() const {
    const ReasoningBudget& budget = grammar_->budget;
    const bool used_up = at_.meter.tokens() >= budget.tokens_max;
    if (at_.ended || !at_.meter.inside() || !used_up) return nullptr;
    return &budget.close[at_.closing % budget.close.size()];
  }

  bool Takes(TokenId token) {
    return inner_ == nullptr || inner_->CountAllowed(std::span(&token, 1)) == 1;
  }

  const std::shared_ptr<const Budgeted> grammar_;
  const std::unique_ptr<GrammarState> inner_;
  Place at_;
  std::vector<Place> history_;  // before each accepted token
};

std::unique_ptr<GrammarState> Budgeted::NewState() const {
  return std::make_unique<BudgetedState>(shared_from_this());
}

}  // namespace

std::shared_ptr<const Grammar> MakeBudgeted(std::shared_ptr<const GrammarVocabulary> vocabulary,
                                            ReasoningBudget budget,
                                            std::shared_ptr<const Grammar> inner) {
  CHECK(!budget.ends.empty() && !budget.close.empty());
  auto made = std::make_shared<Budgeted>();
  made->vocabulary = std::move(vocabulary);
  made->budget = std::move(budget);
  made->inner = std::move(inner);
  return made;
}

}  // namespace plumb::text
