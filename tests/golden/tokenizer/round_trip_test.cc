// tests/golden/tokenizer/round_trip_test.cc
// decode(encode(text)) == text for random Unicode texts, through TokenBytes and through
// Detokenizer, in every vocabulary that loses nothing; and ids by TokenCache are those without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "base/random.h"
#include "golden_files.h"
#include "text/detokenizer.h"
#include "text/token_cache.h"

namespace plumb::golden {
namespace {

using text::ControlTokens;
using text::TokenId;

constexpr uint64_t kSeed = 0x706c756d62;
constexpr int kTexts = 10000;
constexpr uint64_t kCharactersMax = 40;

void AppendUtf8(uint32_t c, std::string& text) {
  if (c < 0x80) {
    text += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  const uint32_t lead[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(lead[more] | (c >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F));
}

uint32_t AnyScalar(base::Rng& rng) {
  const uint32_t c = static_cast<uint32_t>(rng.Below(0x110000 - 0x800));
  return c < 0xD800 ? c : c + 0x800;
}

// Ranges that exercise the pre-tokenizers: letters, digits, spaces, marks, scripts, emoji,
// anything.
uint32_t RandomCharacter(base::Rng& rng) {
  const struct {
    uint32_t first, count;
  } ranges[] = {{0x20, 95},       {'a', 26},      {'0', 10},      {' ', 1},         {'\n', 1},
                {0, 32},          {0xA0, 0x160},  {0x300, 0x70},  {0x370, 0x190},   {0x5D0, 27},
                {0x900, 0x80},    {0x2000, 0x70}, {0x3040, 0xC0}, {0x4E00, 0x5200}, {0xAC00, 11172},
                {0x1F300, 0x300}, {0xFE00, 16},   {0xFF00, 0xF0}};
  const uint64_t pick = rng.Below(std::size(ranges) + 1);
  if (pick == std::size(ranges)) return AnyScalar(rng);
  return ranges[pick].first + static_cast<uint32_t>(rng.Below(ranges[pick].count));
}

std::string RandomText(base::Rng& rng) {
  std::string text;
  for (uint64_t n = rng.Below(kCharactersMax + 1); n > 0; --n) {
    const uint32_t c = RandomCharacter(rng);
    // Runs, since spaces, digits and newlines behave differently in them.
    for (uint64_t run = rng.Below(6) == 0 ? 1 + rng.Below(5) : 1; run > 0; --run) {
      AppendUtf8(c, text);
    }
  }
  return text;
}

// Spaces are written U+2581 there, so that this character itself comes back as a space.
std::string WithoutSpaceSymbol(std::string text) {
  const std::string symbol = "\u2581";
  for (size_t at; (at = text.find(symbol)) != std::string::npos;) text.erase(at, symbol.size());
  return text;
}

void ExpectRoundTrip(const text::Tokenizer& tokenizer, const std::string& text,
                     const std::string& expected) {
  auto tokens = tokenizer.Encode(text, ControlTokens::kAsText, false);
  ASSERT_TRUE(tokens.ok()) << tokens.status().ToString();
  std::string bytes, characters;
  text::Detokenizer detokenizer(tokenizer);
  for (const TokenId token : *tokens) {
    bytes += tokenizer.TokenBytes(token);
    characters += detokenizer.Push(token);
  }
  characters += detokenizer.Finish();
  ASSERT_EQ(bytes, expected) << testing::PrintToString(text);
  ASSERT_EQ(characters, expected) << testing::PrintToString(text);
}

// Bytes that occur in UTF-8 and that no entry stands for: the model cannot be told of them.
std::string MissingBytes(const text::Tokenizer& tokenizer) {
  bool found[256] = {};
  for (uint32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string_view bytes = tokenizer.TokenBytes(TokenId{id});
    if (bytes.size() == 1) found[static_cast<uint8_t>(bytes[0])] = true;
  }
  std::string missing;
  for (int byte = 0; byte < 0xF5; ++byte) {
    const bool occurs = byte != 0xC0 && byte != 0xC1;
    if (occurs && !found[byte]) missing += static_cast<char>(byte);
  }
  return missing;
}

class RoundTrip : public testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, LosesNothing) {
  const std::string name = GetParam();
  auto tokenizer = LoadTokenizer(name == "smollm2" ? smollm2_file : VocabularyFile(name));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  const bool spaces_written = name == "llama-spm" || name == "phi-3" || name == "gemma-4";
  const bool space_added = name == "llama-spm" || name == "phi-3";
  std::cout << kTexts << " texts, seed " << kSeed << "\n";
  const std::string missing = MissingBytes(**tokenizer);
  base::Rng rng(kSeed);
  for (int done = 0; done < kTexts;) {
    std::string text = RandomText(rng);
    if (text.find_first_of(missing) != std::string::npos) continue;
    ++done;
    if (spaces_written) text = WithoutSpaceSymbol(std::move(text));
    const bool prefixed = space_added && !text.empty();
    ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(**tokenizer, text, prefixed ? " " + text : text));
  }
}

// Conversations that grow: texts between control tokens, most of them sent before.
TEST_P(RoundTrip, GivesTheSameIdsWhateverIsRemembered) {
  const std::string name = GetParam();
  auto tokenizer = LoadTokenizer(name == "smollm2" ? smollm2_file : VocabularyFile(name));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  std::vector<std::string> controls = {"", "<"};
  for (uint32_t id = 0; id < (*tokenizer)->size() && controls.size() < 12; ++id)
    if ((*tokenizer)->IsControl(TokenId{id}))
      controls.emplace_back((*tokenizer)->TokenName(TokenId{id}));
  text::TokenCache cache(**tokenizer, 16 << 10);
  base::Rng rng(kSeed);
  std::string prompt;
  for (int done = 0; done < kTexts / 10; ++done) {
    if (rng.Below(20) == 0) prompt.clear();
    prompt += controls[rng.Below(controls.size())] + RandomText(rng);
    for (const ControlTokens control :
         {ControlTokens::kParse, ControlTokens::kAsText, ControlTokens::kNone}) {
      const auto expected = (*tokenizer)->Encode(prompt, control, false);
      const auto got = cache.Encode(prompt, control, base::Hash256{});
      ASSERT_TRUE(expected.ok() && got.ok());
      ASSERT_EQ(*got, *expected) << testing::PrintToString(prompt);
    }
  }
  EXPECT_GT(cache.stats().found_bytes, 10'000u);
}

// All but bert-bge, whose normaliser drops case, accents and spaces.
INSTANTIATE_TEST_SUITE_P(Vocabularies, RoundTrip,
                         testing::Values("smollm2", "command-r", "deepseek-coder", "deepseek-llm",
                                         "falcon", "gemma-4", "gpt-2", "llama-bpe", "llama-spm",
                                         "mpt", "phi-3", "qwen2", "qwen35", "refact", "starcoder"),
                         TestName);

TEST(MissingBytes, AreFewAndKnown) {
  // Control characters, and the first byte of planes 4 and up, where no character is assigned.
  const std::pair<const char*, std::string> cases[] = {
      {"smollm2", "\x04\x06\x13\x14\x16\x1D\xF1\xF2"},
      {"falcon", "\x03\x04\x05\x0B\x11\x13\x14\x15\x16\x17\x19\x1C\x1D\x1E\xF2"},
      {"starcoder", "\xF1"},
      {"refact", "\xF1"},
      {"qwen2", ""},
      {"llama-bpe", ""},
      {"llama-spm", ""},
  };
  for (const auto& [name, bytes] : cases) {
    const bool smollm2 = std::string_view(name) == "smollm2";
    auto tokenizer = LoadTokenizer(smollm2 ? smollm2_file : VocabularyFile(name));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    EXPECT_EQ(MissingBytes(**tokenizer), bytes) << name;
  }
}

}  // namespace
}  // namespace plumb::golden
