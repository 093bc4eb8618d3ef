// text/tokenizer.cc: the tokenizer is the Rust library's; here are the rules that a vocabulary
// leaves to its reader (text/vocabulary_rules.h) and the limits of a call.
#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "text/rust.h"
#include "text/vocabulary_rules.h"

namespace plumb::text {
namespace {

constexpr uint64_t kJsonBytesMax = 128u << 20;

struct HandleFree {
  void operator()(plumb_tokenizer* handle) const { plumb_tokenizer_free(handle); }
};
using Handle = std::unique_ptr<plumb_tokenizer, HandleFree>;

std::vector<plumb_view> Views(const std::vector<std::string>& texts) {
  std::vector<plumb_view> views;
  views.reserve(texts.size());
  for (const std::string& text : texts) views.push_back(View(text));
  return views;
}

std::optional<TokenId> AsToken(std::optional<uint32_t> id) {
  return id ? std::optional(TokenId{*id}) : std::nullopt;
}

base::Result<Handle> Build(const VocabularySpec& spec, const VocabularyRules& rules) {
  const std::vector<plumb_view> tokens = Views(spec.tokens);
  const std::vector<plumb_view> merges = Views(spec.merges);
  std::vector<uint8_t> kinds;
  kinds.reserve(rules.kinds.size());
  for (const TokenKind kind : rules.kinds) kinds.push_back(static_cast<uint8_t>(kind));
  const plumb_vocabulary vocabulary = {
      .model = View(spec.model),
      .pre = View(spec.pre),
      .tokens = tokens.data(),
      .scores = spec.scores.empty() ? nullptr : spec.scores.data(),
      .kinds = kinds.data(),
      .count = tokens.size(),
      .merges = merges.data(),
      .merge_count = merges.size(),
      .unknown = rules.unknown.value_or(std::numeric_limits<uint32_t>::max()),
      .add_space_prefix = rules.add_space_prefix,
      .before = rules.before.data(),
      .before_count = rules.before.size(),
      .after = rules.after.data(),
      .after_count = rules.after.size(),
  };
  plumb_tokenizer* handle = nullptr;
  RustBuffer error;
  const int32_t code = plumb_tokenizer_from_vocabulary(&vocabulary, &handle, error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "vocabulary");
  return Handle(handle);
}

}  // namespace

struct Tokenizer::State {
  Handle handle;
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> end_tokens;           // ascending
  std::set<std::string_view> control_names;  // borrowed from `handle`
  std::set<size_t, std::greater<>> control_lengths;
  uint32_t token_bytes_max = 1;

  void DescribeTokens();
};

// What later calls ask of all tokens at once.
void Tokenizer::State::DescribeTokens() {
  const uint32_t size = plumb_tokenizer_size(handle.get());
  for (uint32_t id = 0; id < size; ++id) {
    const std::string_view name = Text(plumb_tokenizer_name(handle.get(), id));
    const size_t bytes = Text(plumb_tokenizer_bytes(handle.get(), id)).size();
    token_bytes_max = std::max(
        {token_bytes_max, static_cast<uint32_t>(bytes), static_cast<uint32_t>(name.size())});
    if (!plumb_tokenizer_is_control(handle.get(), id) || name.empty()) continue;
    control_names.insert(name);
    control_lengths.insert(name.size());
  }
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

base::Result<std::unique_ptr<Tokenizer>> Tokenizer::FromVocabulary(const VocabularySpec& spec) {
  ASSIGN_OR_RETURN(VocabularyRules rules, DecideVocabulary(spec));
  ASSIGN_OR_RETURN(Handle handle, Build(spec, rules));
  auto state = std::make_unique<State>();
  state->handle = std::move(handle);
  state->bos = AsToken(rules.bos);
  state->eos = AsToken(rules.eos);
  state->end_tokens = std::move(rules.end_tokens);
  state->DescribeTokens();
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(state)));
}

base::Result<std::unique_ptr<Tokenizer>> Tokenizer::FromJson(std::string_view tokenizer_json) {
  if (tokenizer_json.size() > kJsonBytesMax) {
    return base::InvalidArgument("tokenizer.json",
                                 fmt::format("tokenizer.json has {} bytes, more than {}",
                                             tokenizer_json.size(), kJsonBytesMax));
  }
  plumb_tokenizer* raw = nullptr;
  RustBuffer error;
  const int32_t code = plumb_tokenizer_from_json(View(tokenizer_json), &raw, error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "tokenizer.json");
  auto state = std::make_unique<State>();
  state->handle.reset(raw);

  // The file names no BOS or EOS: they are known by name.
  std::vector<std::string_view> end_names;
  uint32_t bos_rank = 0, eos_rank = 0;
  const uint32_t size = plumb_tokenizer_size(raw);
  for (uint32_t id = 0; id < size; ++id) {
    if (!plumb_tokenizer_is_control(raw, id)) continue;
    const std::string_view name = Text(plumb_tokenizer_name(raw, id));
    if (IsEndName(name)) end_names.push_back(name);
    if (BosNameRank(name) > bos_rank) bos_rank = BosNameRank(name), state->bos = TokenId{id};
    if (EosNameRank(name) > eos_rank) eos_rank = EosNameRank(name), state->eos = TokenId{id};
  }
  const bool skip_end = EndOnlyEndsAPart(end_names);
  for (uint32_t id = 0; id < size; ++id) {
    const std::string_view name = Text(plumb_tokenizer_name(raw, id));
    if (!plumb_tokenizer_is_control(raw, id) || !IsEndName(name)) continue;
    if (!(skip_end && name == "<|end|>")) state->end_tokens.push_back(TokenId{id});
  }
  state->DescribeTokens();
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(state)));
}

base::Result<std::vector<TokenId>> Tokenizer::Encode(std::string_view text, ControlTokens control,
                                                     bool add_special) const {
  if (text.size() > kTextBytesMax) {
    return base::InvalidArgument(
        "text", fmt::format("the text has {} bytes, more than {}", text.size(), kTextBytesMax));
  }
  plumb_ids ids = {nullptr, 0, 0};
  RustBuffer error;
  const int32_t code =
      plumb_tokenizer_encode(state_->handle.get(), View(text), control == ControlTokens::kParse,
                             add_special, &ids, error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "text");
  std::vector<TokenId> tokens;
  tokens.reserve(ids.size);
  for (size_t i = 0; i < ids.size; ++i) tokens.push_back(TokenId{ids.data[i]});
  plumb_ids_free(ids);
  return tokens;
}

size_t Tokenizer::ControlSpelling(std::string_view text) const {
  for (const size_t length : state_->control_lengths) {
    if (length <= text.size() && state_->control_names.contains(text.substr(0, length))) {
      return length;
    }
  }
  return 0;
}

uint32_t Tokenizer::token_bytes_max() const { return state_->token_bytes_max; }

std::string_view Tokenizer::TokenBytes(TokenId id) const {
  return Text(plumb_tokenizer_bytes(state_->handle.get(), base::Index(id)));
}

std::string_view Tokenizer::TokenName(TokenId id) const {
  return Text(plumb_tokenizer_name(state_->handle.get(), base::Index(id)));
}

bool Tokenizer::IsControl(TokenId id) const {
  return plumb_tokenizer_is_control(state_->handle.get(), base::Index(id)) != 0;
}

uint32_t Tokenizer::size() const { return plumb_tokenizer_size(state_->handle.get()); }
std::optional<TokenId> Tokenizer::bos() const { return state_->bos; }
std::optional<TokenId> Tokenizer::eos() const { return state_->eos; }
std::span<const TokenId> Tokenizer::end_tokens() const { return state_->end_tokens; }

}  // namespace plumb::text
