// tests/golden/v41/chat/chat_golden_test.cc
// Every recorded conversation gives the recorded prompt, special tokens where the reference has
// them and nowhere else, and the ids and classes of PyPI tokenizers. Arguments: TOKENIZER_JSON
// FOLDER IDS_JSON; beside the tokenizer may stand what its checkpoint says of the classes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/disk.h"
#include "base/random.h"
#include "golden_input.h"
#include "text/deepseek_token_classes.h"
#include "text/deepseek_v41_format.h"
#include "text/deepseek_v41_prompt.h"
#include "text/tokenizer.h"

namespace plumb::golden {

std::string tokenizer_path;
std::string folder;
std::string ids_path;

namespace {

using text::PromptSegment;
using text::Tokenizer;

constexpr uint64_t kFileBytesMax = 64u << 20;
constexpr std::string_view kCalledAfterReasoning = "tool_choice required, thinking";
constexpr const char* kMapName = "engram_token_map.json";

std::string Read(const std::string& path) {
  auto content = base::ReadFile(path, kFileBytesMax);
  CHECK(content.ok()) << content.status().ToString();
  return std::move(content).value();
}

const Tokenizer& GoldenTokenizer() {
  static const auto tokenizer = Tokenizer::FromJson(Read(tokenizer_path)).value();
  return *tokenizer;
}

std::string Joined(const std::vector<PromptSegment>& segments) {
  std::string prompt;
  for (const PromptSegment& segment : segments) prompt += segment.text;
  return prompt;
}

size_t CodePoints(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// Where the special tokens of our segments stand, in code points.
std::vector<std::pair<size_t, size_t>> SpecialRanges(const std::vector<PromptSegment>& segments) {
  std::vector<std::pair<size_t, size_t>> ranges;
  size_t place = 0;
  for (const PromptSegment& segment : segments) {
    std::string_view rest = segment.text;
    while (segment.kind == PromptSegment::Kind::kTemplate && !rest.empty()) {
      std::string_view name;
      for (const std::string_view special : text::kDeepseekV41Specials)
        if (rest.starts_with(special)) name = special;
      const size_t size = name.empty() ? 1 : name.size();
      const size_t end = place + CodePoints(rest.substr(0, size));
      if (!name.empty()) ranges.emplace_back(place, end);
      place = end;
      rest.remove_prefix(size);
    }
    place += CodePoints(rest);
  }
  return ranges;
}

TEST(ChatGolden, EveryConversationGivesItsPrompt) {
  size_t prompts = 0, refused = 0;
  for (const ChatGolden& golden : ReadChatGoldens(folder)) {
    const auto rendered = text::RenderDeepseekV41(golden.input);
    if (golden.name == kCalledAfterReasoning) continue;
    if (!golden.prompt) {
      ++refused;
      EXPECT_FALSE(rendered.ok()) << golden.name;
      EXPECT_FALSE(rendered.status().field().empty()) << golden.name;
      continue;
    }
    ++prompts;
    ASSERT_TRUE(rendered.ok()) << golden.name << ": " << rendered.status().ToString();
    EXPECT_EQ(Joined(rendered->segments), *golden.prompt) << golden.name;
    if (golden.specials.empty()) continue;
    EXPECT_EQ(SpecialRanges(rendered->segments), golden.specials) << golden.name;
  }
  EXPECT_EQ(prompts, 84u);
  EXPECT_EQ(refused, 8u);
}

// The reference refuses it; here reasoning comes first, and then the grammar has a call follow, so
// that the prompt is the one of a choice left to the model.
TEST(ChatGolden, ARequiredCallAfterReasoningHasThePromptOfAFreeOne) {
  const std::vector<ChatGolden> goldens = ReadChatGoldens(folder);
  const auto golden = std::ranges::find(goldens, kCalledAfterReasoning, &ChatGolden::name);
  ASSERT_NE(golden, goldens.end());
  EXPECT_FALSE(golden->prompt) << "the reference has come to take it";
  text::ChatInput free = golden->input;
  free.tool_choice = text::ToolChoice::kAuto;
  const auto rendered = text::RenderDeepseekV41(golden->input);
  const auto expected = text::RenderDeepseekV41(free);
  ASSERT_TRUE(rendered.ok() && expected.ok()) << rendered.status().ToString();
  EXPECT_EQ(Joined(rendered->segments), Joined(expected->segments));
}

// FNV-1a over numbers, each as four bytes, the lowest first; as make_ids.py has it.
std::string HashOf(std::span<const uint32_t> numbers) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint32_t number : numbers) {
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ ((number >> shift) & 0xFF)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

// Prompts that need a token which this vocabulary lacks stand there as null.
TEST(ChatGolden, IdsAreThoseOfTheReference) {
  const Json expected = Json::parse(Read(ids_path)).at("prompts");
  const text::SpecialTokens specials(GoldenTokenizer(), text::kDeepseekV41Specials);
  size_t compared = 0;
  for (const ChatGolden& golden : ReadChatGoldens(folder)) {
    if (!golden.prompt || golden.specials.empty()) continue;
    const Json& ids = expected.at(golden.name);
    const auto rendered = text::RenderDeepseekV41(golden.input).value();
    const auto tokens = specials.Encode(GoldenTokenizer(), rendered.segments);
    if (ids.is_null()) {
      EXPECT_EQ(tokens.status().code(), base::Code::kUnsupported) << golden.name;
      continue;
    }
    ASSERT_TRUE(tokens.ok()) << golden.name << ": " << tokens.status().ToString();
    EXPECT_EQ(tokens->size(), ids.at("count").get<size_t>()) << golden.name;
    std::vector<uint32_t> numbers;
    for (const base::TokenId token : *tokens) numbers.push_back(base::Index(token));
    EXPECT_EQ(HashOf(numbers), ids.at("fnv1a").get<std::string>()) << golden.name;
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

// Those that the checkpoint's own answers begin with; of the folder's tokenizer alone.
TEST(ChatGolden, PromptsOfTheTrainedCheckpointAreItsOwn) {
  const std::string path = tokenizer_path.substr(0, tokenizer_path.rfind('/')) + "/../goldens.json";
  if (!base::ReadFile(path, kFileBytesMax).ok()) return;
  const auto format = text::DeepseekV41Format::Create(GoldenTokenizer()).value();
  const std::vector<TrainedGolden> goldens = ReadTrainedGoldens(path);
  EXPECT_EQ(goldens.size(), 9u);
  for (const TrainedGolden& golden : goldens) {
    const auto prompt = format->Encode(golden.input, UINT32_MAX);
    ASSERT_TRUE(prompt.ok()) << golden.name << ": " << prompt.status().ToString();
    EXPECT_EQ(prompt->text, golden.prompt) << golden.name;
    std::vector<uint32_t> ids;
    for (const base::TokenId token : prompt->tokens) ids.push_back(base::Index(token));
    EXPECT_EQ(ids, golden.ids) << golden.name;
  }
}

TEST(ChatGolden, ClassesAreThoseOfTheReference) {
  const auto classes = text::DeepseekTokenClasses(GoldenTokenizer());
  ASSERT_TRUE(classes.ok()) << classes.status().ToString();
  const Json expected = Json::parse(Read(ids_path));
  EXPECT_EQ(classes->size(), GoldenTokenizer().size());
  EXPECT_EQ(1 + *std::ranges::max_element(*classes), expected.at("classes").get<uint32_t>());
  EXPECT_EQ(HashOf(*classes), expected.at("classes fnv1a").get<std::string>());
  // What the checkpoint says of itself.
  const std::string map = tokenizer_path.substr(0, tokenizer_path.rfind('/') + 1) + kMapName;
  const auto content = base::ReadFile(map, kFileBytesMax);
  if (!content.ok()) return;
  EXPECT_EQ(*classes, Json::parse(*content).get<std::vector<uint32_t>>());
}

// A call that is left open, or whose end is spelled otherwise, meets no stop string.
TEST(ChatGolden, OneCallIsAllThereIsWithoutParallelCalls) {
  const auto format = text::DeepseekV41Format::Create(GoldenTokenizer()).value();
  const std::string answer =
      "</think><｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ invoke name=\"f\">\n";
  for (const bool parallel : {true, false}) {
    text::ChatInput input{.messages = {{.role = "user", .content = "Hello"}},
                          .tools = {{.name = "f"}},
                          .parallel_tool_calls = parallel};
    const auto prompt = format->Encode(input, UINT32_MAX);
    // DeepSeek-V4's own tokenizer lacks a token that tools need.
    if (prompt.status().code() == base::Code::kUnsupported) GTEST_SKIP();
    ASSERT_TRUE(prompt.ok()) << prompt.status().ToString();
    EXPECT_EQ(prompt->stops.size(), parallel ? 0u : 1u);
    const auto parser = format->NewParser(*prompt);
    std::vector<text::AnswerDelta> deltas;
    parser->Push(answer, deltas);
    parser->Finish(/*stopped=*/true, deltas);
    EXPECT_EQ(
        std::ranges::count(deltas, text::AnswerDelta::Kind::kCallBegin, &text::AnswerDelta::kind),
        parallel ? 2 : 1);
  }
}

struct AddedToken {
  uint32_t id;
  std::string name;
};
std::vector<AddedToken> AddedTokens() {
  std::vector<AddedToken> added;
  const Json whole = Json::parse(Read(tokenizer_path));
  for (const Json& token : whole.at("added_tokens"))
    added.push_back({token.at("id").get<uint32_t>(), token.at("content").get<std::string>()});
  return added;
}

// Whatever a text says, it makes no token that was added to the vocabulary, of this format or not.
TEST(ChatGolden, TextsNeverMakeSpecialTokens) {
  const Tokenizer& tokenizer = GoldenTokenizer();
  const text::SpecialTokens specials(tokenizer, text::kDeepseekV41Specials);
  std::vector<std::string> pieces = {"a",  " ",           "\n",    "<",    "｜",   ">",
                                     "</", "▁",           "think", "DSML", "User", "\xE4\xB8\xAD",
                                     "12", "tool_result>"};
  const std::vector<AddedToken> added = AddedTokens();
  ASSERT_FALSE(added.empty());
  std::set<uint32_t> added_ids;
  for (const AddedToken& token : added) {
    added_ids.insert(token.id);
    pieces.push_back(token.name);
  }
  for (const std::string_view name : text::kDeepseekV41Specials) {
    pieces.emplace_back(name);
    if (name.starts_with('<')) pieces.emplace_back(name.substr(1));
  }
  base::Rng random(1000);
  const auto sentence = [&] {
    std::string text;
    for (size_t count = random.Below(20); count > 0; --count)
      text += pieces[random.Below(pieces.size())];
    return text;
  };
  for (int round = 0; round < 1000; ++round) {
    const PromptSegment segments[] = {{PromptSegment::Kind::kTemplate, "<｜User｜>"},
                                      {PromptSegment::Kind::kText, sentence()},
                                      {PromptSegment::Kind::kTemplate, "\n\n"},
                                      {PromptSegment::Kind::kText, sentence()},
                                      {PromptSegment::Kind::kTemplate, "<｜Assistant｜>"}};
    const auto tokens = specials.Encode(tokenizer, segments);
    ASSERT_TRUE(tokens.ok()) << tokens.status().ToString();
    std::string text;
    for (const base::TokenId token : std::span(*tokens).subspan(1, tokens->size() - 2)) {
      text += tokenizer.TokenBytes(token);
      ASSERT_FALSE(added_ids.contains(base::Index(token)))
          << tokenizer.TokenName(token) << " in " << segments[1].text << segments[3].text;
    }
    ASSERT_EQ(text, segments[1].text + "\n\n" + segments[3].text) << "no byte is lost";
  }
}

}  // namespace
}  // namespace plumb::golden

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  CHECK(argc == 4) << "arguments: TOKENIZER_JSON FOLDER IDS_JSON";
  plumb::golden::tokenizer_path = argv[1];
  plumb::golden::folder = argv[2];
  plumb::golden::ids_path = argv[3];
  return RUN_ALL_TESTS();
}
