// text/tokenizer.cc: the tokenizer is the Rust library's; here are the rules that a vocabulary
// leaves to its reader (text/vocabulary_rules.h) and the limits of a call.
#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"
#include "text/rust.h"
#include "text/tool_syntax.h"
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

size_t Pair(char first, char second) {
  return (size_t{static_cast<unsigned char>(first)} << 8) | static_cast<unsigned char>(second);
}

base::Status CheckSize(std::string_view text) {
  if (text.size() <= Tokenizer::kTextBytesMax) return base::OkStatus();
  return base::InvalidArgument("text", fmt::format("the text has {} bytes, more than {}",
                                                   text.size(), Tokenizer::kTextBytesMax));
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
  std::array<bool, 1 << 8> control_begins{};  // by the first byte of their names
  std::optional<char> control_begin;          // that byte, where all have the same
  std::bitset<1 << 16> control_begins2;       // by the first two bytes
  std::vector<TokenId> shown;                 // control tokens that are text in answers; ascending
  uint32_t token_bytes_max = 1;
  // What Encode adds or takes off around a text, besides what the library does.
  bool put_bos = false, cut_bos = false, put_eos = false, cut_eos = false;

  void DescribeTokens();
  base::Status NameTokens(const JsonSettings& settings);
  base::Status DecideAround(const JsonSettings& settings);
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
    control_begins[static_cast<unsigned char>(name[0])] = true;
    const bool alone = std::ranges::count(control_begins, true) == 1;
    control_begin = alone ? std::optional(name[0]) : std::nullopt;
    for (size_t second = 0; second < 1 << 8; ++second) {
      const bool fits = name.size() == 1 || static_cast<unsigned char>(name[1]) == second;
      if (fits) control_begins2.set(Pair(name[0], static_cast<char>(second)));
    }
    if (IsAnswerMarkup(name)) shown.push_back(TokenId{id});
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

// BOS, EOS and the tokens that end an answer: as the settings say, else known by name.
base::Status Tokenizer::State::NameTokens(const JsonSettings& settings) {
  const uint32_t size = plumb_tokenizer_size(handle.get());
  std::vector<std::string_view> end_names;
  std::set<uint32_t> ends;
  uint32_t bos_rank = 0, eos_rank = 0;
  for (uint32_t id = 0; id < size; ++id) {
    const std::string_view name = Text(plumb_tokenizer_name(handle.get(), id));
    if (settings.bos == name) bos = TokenId{id};
    if (settings.eos == name) eos = TokenId{id};
    if (!plumb_tokenizer_is_control(handle.get(), id)) continue;
    if (IsEndName(name)) end_names.push_back(name);
    if (!settings.bos && BosNameRank(name) > bos_rank) {
      bos_rank = BosNameRank(name), bos = TokenId{id};
    }
    if (!settings.eos && EosNameRank(name) > eos_rank) {
      eos_rank = EosNameRank(name), eos = TokenId{id};
    }
  }
  if (settings.bos && !bos) return base::InvalidArgument("bos_token", "bos_token is no token");
  if (settings.eos && !eos) return base::InvalidArgument("eos_token", "eos_token is no token");
  const bool skip_end = EndOnlyEndsAPart(end_names);
  for (uint32_t id = 0; id < size; ++id) {
    const std::string_view name = Text(plumb_tokenizer_name(handle.get(), id));
    if (!plumb_tokenizer_is_control(handle.get(), id) || !IsEndName(name)) continue;
    if (!(skip_end && name == "<|end|>")) ends.insert(id);
  }
  if (settings.eos) ends.insert(base::Index(*eos));
  for (const uint32_t id : settings.end_ids) {
    if (id >= size) {
      return base::InvalidArgument(
          "eos_token_id", fmt::format("eos_token_id {} is no token: there are {}", id, size));
    }
    ends.insert(id);
  }
  for (const uint32_t id : ends) end_tokens.push_back(TokenId{id});
  return base::OkStatus();
}

// transformers lets add_bos_token replace what tokenizer.json puts around a text.
base::Status Tokenizer::State::DecideAround(const JsonSettings& settings) {
  if (!settings.add_bos && !settings.add_eos) return base::OkStatus();
  if (settings.add_bos == true && !bos) {
    return base::InvalidArgument("add_bos_token", "a BOS token is asked for and none is named");
  }
  if (settings.add_eos == true && !eos) {
    return base::InvalidArgument("add_eos_token", "an EOS token is asked for and none is named");
  }
  RustIds encoded;
  RustBuffer error;
  const int32_t code =
      plumb_tokenizer_encode(handle.get(), View(""), true, true, encoded.out(), error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "tokenizer.json");
  const std::span<const uint32_t> ids = encoded.ids();
  const bool has_bos = bos && !ids.empty() && ids.front() == base::Index(*bos);
  const bool has_eos = eos && !ids.empty() && ids.back() == base::Index(*eos) &&
                       !(has_bos && bos == eos && ids.size() == 1);
  const bool add_bos = settings.add_bos.value_or(has_bos);
  const bool add_eos = settings.add_eos.value_or(has_eos);
  put_bos = add_bos && !has_bos;
  cut_bos = !add_bos && has_bos;
  put_eos = add_eos && !has_eos;
  cut_eos = !add_eos && has_eos;
  return base::OkStatus();
}

base::Result<std::unique_ptr<Tokenizer>> Tokenizer::FromJson(std::string_view tokenizer_json,
                                                             const JsonSettings& settings) {
  if (tokenizer_json.size() > kJsonBytesMax) {
    return base::InvalidArgument("tokenizer.json",
                                 fmt::format("tokenizer.json has {} bytes, more than {}",
                                             tokenizer_json.size(), kJsonBytesMax));
  }
  plumb_tokenizer* raw = nullptr;
  RustBuffer error;
  const int32_t code =
      plumb_tokenizer_from_json(View(tokenizer_json), settings.ids_max, &raw, error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "tokenizer.json");
  auto state = std::make_unique<State>();
  state->handle.reset(raw);
  RETURN_IF_ERROR(state->NameTokens(settings));
  RETURN_IF_ERROR(state->DecideAround(settings));
  state->DescribeTokens();
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(state)));
}

base::Result<std::vector<TokenId>> Tokenizer::Encode(std::string_view text, ControlTokens control,
                                                     bool add_special) const {
  RETURN_IF_ERROR(CheckSize(text));
  RustIds encoded;
  RustBuffer error;
  const int32_t code =
      plumb_tokenizer_encode(state_->handle.get(), View(text), static_cast<uint8_t>(control),
                             add_special, encoded.out(), error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "text");
  if (!add_special) return encoded.tokens();
  const std::span<const uint32_t> ids = encoded.ids();
  std::vector<TokenId> tokens;
  const size_t begin = state_->cut_bos && !ids.empty() ? 1 : 0;
  const size_t end = ids.size() - (state_->cut_eos && ids.size() > begin ? 1 : 0);
  tokens.reserve(ids.size() + 2);
  if (state_->put_bos) tokens.push_back(*state_->bos);
  for (size_t i = begin; i < end; ++i) tokens.push_back(TokenId{ids[i]});
  if (state_->put_eos) tokens.push_back(*state_->eos);
  return tokens;
}

base::Result<std::vector<Tokenizer::Stretch>> Tokenizer::Cut(std::string_view text,
                                                             ControlTokens control) const {
  RETURN_IF_ERROR(CheckSize(text));
  RustIds pairs;
  RustBuffer error;
  const int32_t code = plumb_tokenizer_cut(state_->handle.get(), View(text),
                                           static_cast<uint8_t>(control), pairs.out(), error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "text");
  std::vector<Stretch> stretches;
  stretches.reserve(pairs.ids().size() / 2);
  for (size_t i = 0; i < pairs.ids().size(); i += 2) {
    const uint32_t size = pairs.ids()[i], id = pairs.ids()[i + 1];
    CHECK(size <= text.size()) << size;
    const bool is_text = id == PLUMB_TEXT_OPENS || id == PLUMB_TEXT_FOLLOWS;
    stretches.push_back({.text = text.substr(0, size),
                         .token = is_text ? std::nullopt : std::optional(TokenId{id}),
                         .opens = id == PLUMB_TEXT_OPENS});
    text.remove_prefix(size);
  }
  CHECK(text.empty()) << text.size() << " bytes are in no part";
  return stretches;
}

base::Result<std::vector<TokenId>> Tokenizer::EncodeStretch(const Stretch& stretch,
                                                            ControlTokens control) const {
  if (stretch.token) return std::vector{*stretch.token};
  RustIds ids;
  RustBuffer error;
  const int32_t code = plumb_tokenizer_encode_stretch(state_->handle.get(), View(stretch.text),
                                                      static_cast<uint8_t>(control), stretch.opens,
                                                      ids.out(), error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "text");
  return ids.tokens();
}

Tokenizer::Spelling Tokenizer::FindControl(std::string_view text, size_t from) const {
  for (size_t place = from; place < text.size(); ++place) {
    if (state_->control_begin) {
      place = text.find(*state_->control_begin, place);
      if (place == text.npos) break;
    }
    if (!state_->control_begins[static_cast<unsigned char>(text[place])]) continue;
    const size_t size = ControlSpelling(text.substr(place));
    if (size > 0) return {.place = place, .size = size};
  }
  return {};
}

size_t Tokenizer::ControlSpelling(std::string_view text) const {
  if (text.size() > 1 && !state_->control_begins2[Pair(text[0], text[1])]) return 0;
  for (const size_t length : state_->control_lengths) {
    if (length <= text.size() && state_->control_names.contains(text.substr(0, length))) {
      return length;
    }
  }
  return 0;
}

uint32_t Tokenizer::token_bytes_max() const { return state_->token_bytes_max; }

std::string_view Tokenizer::TokenBytes(TokenId id) const {
  if (std::ranges::binary_search(state_->shown, id)) return TokenName(id);
  return Text(plumb_tokenizer_bytes(state_->handle.get(), base::Index(id)));
}

std::string_view Tokenizer::TokenName(TokenId id) const {
  return Text(plumb_tokenizer_name(state_->handle.get(), base::Index(id)));
}

bool Tokenizer::IsControl(TokenId id) const {
  return plumb_tokenizer_is_control(state_->handle.get(), base::Index(id)) != 0;
}

const plumb_tokenizer* Tokenizer::rust() const { return state_->handle.get(); }
uint32_t Tokenizer::size() const { return plumb_tokenizer_size(state_->handle.get()); }
std::optional<TokenId> Tokenizer::bos() const { return state_->bos; }
std::optional<TokenId> Tokenizer::eos() const { return state_->eos; }
std::span<const TokenId> Tokenizer::end_tokens() const { return state_->end_tokens; }

}  // namespace plumb::text
