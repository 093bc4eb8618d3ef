// text/grammar_trigger.cc: free text is followed by an automaton (Knuth, Morris and Pratt) that
// knows how much of `begin` the text ends with; what was is kept per token, for Rollback.
#include "text/grammar_trigger.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace plumb::text {

using base::Result;
using base::Status;

namespace {

// Parts under the grammar in one answer; each keeps its state, since it may be rolled back into.
constexpr size_t kPartsMax = 256;

// How much of a text the bytes seen so far end with.
class Matcher {
 public:
  explicit Matcher(std::string text) : text_(std::move(text)), fallback_(text_.size() + 1, 0) {
    for (size_t i = 1; i < text_.size(); ++i) {
      size_t matched = fallback_[i];
      while (matched > 0 && text_[matched] != text_[i]) matched = fallback_[matched];
      fallback_[i + 1] = static_cast<uint32_t>(matched + (text_[matched] == text_[i] ? 1 : 0));
    }
  }

  // `matched` < size().
  uint32_t Next(uint32_t matched, char byte) const {
    while (matched > 0 && text_[matched] != byte) matched = fallback_[matched];
    return matched + (text_[matched] == byte ? 1 : 0);
  }
  uint32_t size() const { return static_cast<uint32_t>(text_.size()); }
  char last() const { return text_.back(); }

 private:
  const std::string text_;
  std::vector<uint32_t> fallback_;  // of each length matched: the next shorter one that fits
};

// What `bytes` lead to; nothing when the text is found before the last of them.
std::optional<uint32_t> Run(const Matcher& matcher, uint32_t matched, std::string_view bytes) {
  for (const char byte : bytes) {
    if (matched == matcher.size()) return std::nullopt;
    matched = matcher.Next(matched, byte);
  }
  return matched;
}

class Triggered final : public Grammar, public std::enable_shared_from_this<Triggered> {
 public:
  std::shared_ptr<const GrammarVocabulary> vocabulary;
  std::shared_ptr<const Grammar> inner;
  std::optional<TokenId> begin_token;  // else a text, by `matcher`
  std::optional<Matcher> matcher;
  // By how much of the text was matched: the tokens that would run over its end.
  std::vector<std::vector<TokenId>> crossing;
  bool repeats = false;

  std::unique_ptr<GrammarState> NewState() const override;

  void FindCrossing() {
    crossing.resize(matcher->size());
    for (uint32_t id = 0; id < vocabulary->size(); ++id) {
      const std::string_view bytes = vocabulary->TokenBytes(TokenId{id});
      const size_t last = bytes.find(matcher->last());
      if (last == std::string_view::npos || last + 1 == bytes.size()) continue;
      for (uint32_t matched = 0; matched < matcher->size(); ++matched)
        if (!Run(*matcher, matched, bytes)) crossing[matched].push_back(TokenId{id});
    }
  }
};

class TriggeredState final : public GrammarState {
 public:
  explicit TriggeredState(std::shared_ptr<const Triggered> grammar)
      : grammar_(std::move(grammar)), vocabulary_(*grammar_->vocabulary) {}

  Status FillMask(std::span<uint32_t> mask) override {
    if (at_.ended) {
      AllowOnly(vocabulary_.end_tokens(), mask);
    } else if (at_.in_grammar) {
      return parts_.back()->FillMask(mask);
    } else {
      AllowAll(vocabulary_.size(), mask);
      if (grammar_->matcher) Forbid(grammar_->crossing[at_.matched], mask);
    }
    return base::OkStatus();
  }

  Status Accept(TokenId token) override {
    const Place before = at_;
    RETURN_IF_ERROR(Step(token));
    history_.push_back(before);
    return base::OkStatus();
  }

  void Rollback(uint32_t tokens) override {
    CHECK(tokens <= history_.size()) << tokens << " of " << history_.size();
    for (; tokens > 0; --tokens) {
      const Place& before = history_.back();
      // The token was the part's, unless it led into the part or came after it.
      while (parts_.size() > before.parts) parts_.pop_back();
      if (before.in_grammar) parts_.back()->Rollback(1);
      at_ = before;
      history_.pop_back();
    }
  }

  uint32_t CountAllowed(std::span<const TokenId> tokens) override {
    uint32_t count = 0;
    while (count < tokens.size() && Accept(tokens[count]).ok()) ++count;
    Rollback(count);
    return count;
  }

  void AppendForced(uint32_t max, std::vector<TokenId>& out) override {
    if (!at_.in_grammar || at_.ended) return;
    const size_t before = out.size();
    parts_.back()->AppendForced(max, out);
    // Where free text goes on, no end follows for sure.
    while (grammar_->repeats && out.size() > before && vocabulary_.IsEnd(out.back()))
      out.pop_back();
  }

  bool Complete() override {
    return at_.ended || (at_.in_grammar && !grammar_->repeats && parts_.back()->Complete());
  }

 private:
  struct Place {
    bool in_grammar = false;
    bool ended = false;    // an end token was accepted
    uint32_t matched = 0;  // bytes of `begin` that free text ends with
    uint32_t parts = 0;    // == parts_.size()
  };

  static void Forbid(const std::vector<TokenId>& tokens, std::span<uint32_t> mask) {
    for (const TokenId token : tokens) {
      const uint32_t index = base::Index(token);
      if (index / 32 < mask.size()) mask[index / 32] &= ~(1u << (index % 32));
    }
  }

  // Changes nothing when it fails.
  Status Step(TokenId token) {
    const Status refused = base::InvalidArgument("token", "the grammar does not allow it here");
    if (at_.ended || base::Index(token) >= vocabulary_.size()) return refused;
    if (at_.in_grammar) {
      RETURN_IF_ERROR(parts_.back()->Accept(token));
      at_.ended = vocabulary_.IsEnd(token);
      if (grammar_->repeats && !at_.ended && parts_.back()->Complete()) {
        at_.in_grammar = false;
        at_.matched = 0;
      }
      return base::OkStatus();
    }
    if (vocabulary_.IsEnd(token)) {
      at_.ended = true;
      return base::OkStatus();
    }
    bool begins = token == grammar_->begin_token;
    uint32_t matched = 0;
    const std::string_view bytes = vocabulary_.TokenBytes(token);
    if (grammar_->matcher && !bytes.empty()) {  // a control token is no text, and breaks it
      const std::optional<uint32_t> next = Run(*grammar_->matcher, at_.matched, bytes);
      if (!next) return refused;
      begins = *next == grammar_->matcher->size();
      matched = *next;
    }
    if (begins && parts_.size() >= kPartsMax) {
      return base::InvalidArgument("", "the answer has too many parts under its grammar")
          .WithReason("grammar_too_large");
    }
    at_.matched = begins ? 0 : matched;
    if (begins) {
      parts_.push_back(grammar_->inner->NewState());
      at_.in_grammar = true;
      at_.parts = static_cast<uint32_t>(parts_.size());
    }
    return base::OkStatus();
  }

  const std::shared_ptr<const Triggered> grammar_;
  const GrammarVocabulary& vocabulary_;  // the grammar's
  Place at_;
  std::vector<Place> history_;  // before each accepted token
  std::vector<std::unique_ptr<GrammarState>> parts_;
};

std::unique_ptr<GrammarState> Triggered::NewState() const {
  return std::make_unique<TriggeredState>(shared_from_this());
}

}  // namespace

Result<std::shared_ptr<const Grammar>> MakeTriggered(
    std::shared_ptr<const GrammarVocabulary> vocabulary, const GrammarSpec& spec,
    std::shared_ptr<const Grammar> inner) {
  auto made = std::make_shared<Triggered>();
  made->begin_token = vocabulary->ControlToken(spec.begin);
  if (made->begin_token && vocabulary->IsEnd(*made->begin_token)) {
    return base::InvalidArgument("grammar",
                                 "the begin of the grammar is a token that ends answers");
  }
  made->vocabulary = std::move(vocabulary);
  made->inner = std::move(inner);
  made->repeats = !spec.end.empty();
  if (!made->begin_token) {
    made->matcher.emplace(spec.begin);
    made->FindCrossing();
  }
  return std::shared_ptr<const Grammar>(std::move(made));
}

}  // namespace plumb::text
