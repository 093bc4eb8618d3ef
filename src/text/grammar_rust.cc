// text/grammar_rust.cc: the handles of the Rust library as the classes of text/grammar.h, and its
// codes as statuses.
#include "text/grammar_rust.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "text/rust.h"

namespace plumb::text {

using base::Result;
using base::Status;

namespace {

constexpr uint32_t kNoToken = std::numeric_limits<uint32_t>::max();
// Grammars that take too long are given up for lost only after minutes.
constexpr uint32_t kBusyRetryMs = 10'000;
constexpr const char* kTooLarge = "grammar_too_large";

// Of a source: whatever cannot be enforced is the caller's to change.
Status CompileStatus(int32_t code, const RustBuffer& error) {
  Status refused = base::InvalidArgument("grammar", std::string(error.text()));
  if (code == PLUMB_INVALID) return refused;
  if (code == PLUMB_UNSUPPORTED) return std::move(refused).WithReason("grammar_unsupported");
  if (code == PLUMB_LIMIT) return std::move(refused).WithReason(kTooLarge);
  if (code == PLUMB_BUSY) {
    return Status(base::Code::kOverloaded, std::string(error.text()))
        .WithRetryAfterMs(kBusyRetryMs);
  }
  return base::Internal(std::string(error.text()));
}

// Of a state: which field the grammar came from is known no more.
Status StateStatus(int32_t code, const RustBuffer& error) {
  if (code == PLUMB_OK) return base::OkStatus();
  if (code == PLUMB_LIMIT)
    return base::InvalidArgument("", std::string(error.text())).WithReason(kTooLarge);
  return base::Internal(std::string(error.text()));
}

class RustState final : public GrammarState {
 public:
  explicit RustState(plumb_grammar_state* handle) : handle_(handle) {}
  ~RustState() override { plumb_grammar_state_free(handle_); }
  RustState(const RustState&) = delete;
  RustState& operator=(const RustState&) = delete;

  Status FillMask(std::span<uint32_t> mask) override {
    RustBuffer error;
    return StateStatus(plumb_grammar_state_mask(handle_, mask.data(), mask.size(), error.out()),
                       error);
  }

  Status Accept(TokenId token) override {
    RustBuffer error;
    uint8_t accepted = 0;
    const int32_t code =
        plumb_grammar_state_accept(handle_, base::Index(token), &accepted, error.out());
    RETURN_IF_ERROR(StateStatus(code, error));
    if (accepted == 0) return base::InvalidArgument("token", "the grammar does not allow it here");
    ++accepted_;
    return base::OkStatus();
  }

  void Rollback(uint32_t tokens) override {
    CHECK(tokens <= accepted_) << tokens << " of " << accepted_;
    accepted_ -= tokens;
    RustBuffer error;
    const int32_t code = plumb_grammar_state_rollback(handle_, tokens, error.out());
    CHECK(code == PLUMB_OK) << error.text();
  }

  uint32_t CountAllowed(std::span<const TokenId> tokens) override {
    static_assert(sizeof(TokenId) == sizeof(uint32_t));
    RustBuffer error;
    size_t allowed = 0;
    const auto* ids = reinterpret_cast<const uint32_t*>(tokens.data());
    plumb_grammar_state_count_allowed(handle_, ids, tokens.size(), &allowed, error.out());
    return static_cast<uint32_t>(allowed);
  }

  void AppendForced(uint32_t max, std::vector<TokenId>& out) override {
    RustBuffer error;
    plumb_ids ids = {nullptr, 0, 0};
    plumb_grammar_state_forced(handle_, max, &ids, error.out());
    for (size_t i = 0; i < ids.size; ++i) out.push_back(TokenId{ids.data[i]});
    plumb_ids_free(ids);
  }

  bool Complete() override {
    RustBuffer error;
    uint8_t complete = 0;
    plumb_grammar_state_complete(handle_, &complete, error.out());
    return complete != 0;
  }

 private:
  plumb_grammar_state* const handle_;
  uint32_t accepted_ = 0;
};

class RustGrammar final : public Grammar {
 public:
  explicit RustGrammar(plumb_grammar* handle) : handle_(handle) {}
  ~RustGrammar() override { plumb_grammar_free(handle_); }
  RustGrammar(const RustGrammar&) = delete;
  RustGrammar& operator=(const RustGrammar&) = delete;

  std::unique_ptr<GrammarState> NewState() const override {
    plumb_grammar_state* state = nullptr;
    RustBuffer error;
    const int32_t code = plumb_grammar_state_new(handle_, &state, error.out());
    CHECK(code == PLUMB_OK) << error.text();
    return std::make_unique<RustState>(state);
  }

 private:
  plumb_grammar* const handle_;
};

}  // namespace

GrammarVocabulary::~GrammarVocabulary() { plumb_grammar_vocabulary_free(handle_); }

Result<std::shared_ptr<const GrammarVocabulary>> GrammarVocabulary::Make(
    const Tokenizer& tokenizer) {
  std::unique_ptr<GrammarVocabulary> made(new GrammarVocabulary());
  std::vector<uint32_t> ends;
  for (const TokenId token : tokenizer.end_tokens()) ends.push_back(base::Index(token));
  RustBuffer error;
  const int32_t code = plumb_grammar_vocabulary_new(tokenizer.rust(), ends.data(), ends.size(),
                                                    &made->handle_, error.out());
  if (code != PLUMB_OK) return CompileStatus(code, error);
  made->end_tokens_.assign(tokenizer.end_tokens().begin(), tokenizer.end_tokens().end());
  made->begins_.push_back(0);
  for (uint32_t id = 0; id < tokenizer.size(); ++id) {
    made->bytes_ += tokenizer.TokenBytes(TokenId{id});
    made->begins_.push_back(static_cast<uint32_t>(made->bytes_.size()));
    if (tokenizer.IsControl(TokenId{id}))
      made->controls_.emplace_back(tokenizer.TokenName(TokenId{id}), TokenId{id});
  }
  std::sort(made->controls_.begin(), made->controls_.end());
  return std::shared_ptr<const GrammarVocabulary>(std::move(made));
}

Result<std::shared_ptr<const Grammar>> GrammarVocabulary::Compile(const GrammarSpec& spec,
                                                                  uint32_t ms_max) const {
  std::vector<plumb_view> choices;
  for (const std::string& choice : spec.choices) choices.push_back(View(choice));
  const std::optional<TokenId> end = ControlToken(spec.end);
  if (end && IsEnd(*end)) {
    return base::InvalidArgument(
        "grammar", "the end of the grammar is a token that ends the answer; leave it out");
  }
  const plumb_grammar_spec given = {
      .kind = static_cast<uint8_t>(spec.kind),
      .source = View(spec.source),
      .choices = choices.data(),
      .choice_count = choices.size(),
      .end_text = View(end ? std::string_view() : std::string_view(spec.end)),
      .end_token = end ? base::Index(*end) : kNoToken,
  };
  plumb_grammar* handle = nullptr;
  RustBuffer error;
  const int32_t code = plumb_grammar_compile(handle_, &given, ms_max, &handle, error.out());
  if (code != PLUMB_OK) return CompileStatus(code, error);
  return std::shared_ptr<const Grammar>(std::make_shared<RustGrammar>(handle));
}

std::string_view GrammarVocabulary::TokenBytes(TokenId id) const {
  const uint32_t index = base::Index(id);
  if (index >= size()) return {};
  return std::string_view(bytes_).substr(begins_[index], begins_[index + 1] - begins_[index]);
}

bool GrammarVocabulary::IsEnd(TokenId id) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), id) != end_tokens_.end();
}

std::optional<TokenId> GrammarVocabulary::ControlToken(std::string_view name) const {
  const auto found = std::lower_bound(
      controls_.begin(), controls_.end(), name,
      [](const auto& control, std::string_view wanted) { return control.first < wanted; });
  if (name.empty() || found == controls_.end() || found->first != name) return std::nullopt;
  return found->second;
}

void AllowAll(uint32_t size, std::span<uint32_t> mask) {
  for (size_t word = 0; word < mask.size(); ++word) {
    const size_t first = word * 32;
    const size_t count = first >= size ? 0 : std::min<size_t>(32, size - first);
    mask[word] = count == 32 ? ~0u : (1u << count) - 1;
  }
}

void AllowOnly(std::span<const TokenId> tokens, std::span<uint32_t> mask) {
  std::fill(mask.begin(), mask.end(), 0u);
  for (const TokenId token : tokens) {
    const uint32_t index = base::Index(token);
    if (index / 32 < mask.size()) mask[index / 32] |= 1u << (index % 32);
  }
}

}  // namespace plumb::text
