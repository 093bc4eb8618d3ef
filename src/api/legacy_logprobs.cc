// api/legacy_logprobs.cc
// See legacy_logprobs.h.
#include "api/legacy_logprobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/logprob_json.h"
#include "text/utf8.h"

namespace plumb::api {

namespace {

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

std::string_view Spelling(base::TokenId token, const text::Tokenizer& tokenizer) {
  const std::string_view bytes = tokenizer.TokenBytes(token);
  return bytes.empty() ? tokenizer.TokenName(token) : bytes;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const text::Utf8Prefix prefix = text::ReadUtf8(text);
    if (prefix.kind != text::Utf8Prefix::Kind::kCharacter) return false;
    text.remove_prefix(prefix.size);
  }
  return true;
}

}  // namespace

uint64_t CountCharacters(std::string_view text) {
  return static_cast<uint64_t>(std::ranges::count_if(text, BeginsCharacter));
}

std::string SpellTokens(std::span<const base::TokenId> tokens, const text::Tokenizer& tokenizer) {
  std::string out;
  for (const base::TokenId token : tokens) out += Spelling(token, tokenizer);
  return out;
}

std::vector<uint64_t> PromptOffsets(std::span<const base::TokenId> tokens, std::string_view text,
                                    const text::Tokenizer& tokenizer) {
  std::vector<uint64_t> offsets;
  offsets.reserve(tokens.size());
  uint64_t characters = 0;  // begun so far
  for (const base::TokenId token : tokens) {
    const bool within = !text.empty() && !BeginsCharacter(text.front());
    offsets.push_back(within ? characters - 1 : characters);
    std::string_view spelling = Spelling(token, tokenizer);
    // A vocabulary may put a space before a text that has none.
    const bool space = !text.starts_with(spelling) && spelling.starts_with(' ');
    if (space) spelling.remove_prefix(1);
    if (!text.starts_with(spelling)) continue;
    characters += CountCharacters(spelling);
    text.remove_prefix(spelling.size());
  }
  return offsets;
}

uint64_t AnswerOffsets::Next(base::TokenId token) {
  const uint64_t offset = characters_;
  characters_ += CountCharacters(detokenizer_.Push(token));
  return offset;
}

std::string LegacyLogprobs::NameOf(base::TokenId token) const {
  const std::string_view spelling = Spelling(token, tokenizer_);
  if (IsUtf8(spelling)) return std::string(spelling);
  std::string name = "bytes:";
  for (const char byte : spelling)
    name += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return name;
}

void LegacyLogprobs::AddFirst(base::TokenId token, uint64_t offset) {
  tokens_json_.String(NameOf(token));
  logprobs_json_.Null();
  tops_json_.Null();
  offsets_json_.Uint(offset);
}

void LegacyLogprobs::Add(const engine::TokenLogprob& logprob, uint64_t offset) {
  const std::string name = NameOf(logprob.token);
  tokens_json_.String(name);
  logprobs_json_.Float(JsonLogprob(logprob.logprob));
  offsets_json_.Uint(offset);
  // At most kTopLogprobsMax + 1 names.
  std::vector<std::string> names;
  const auto add = [&](const std::string& key, float value) {
    if (std::ranges::find(names, key) != names.end()) return;
    tops_json_.Key(key).Float(JsonLogprob(value));
    names.push_back(key);
  };
  tops_json_.BeginObject();
  for (const engine::TopLogprob& top : logprob.top) add(NameOf(top.token), top.logprob);
  add(name, logprob.logprob);
  tops_json_.EndObject();
}

std::string LegacyLogprobs::Json() const {
  return fmt::format(
      R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})", tokens_,
      logprobs_, tops_, offsets_);
}

}  // namespace plumb::api
