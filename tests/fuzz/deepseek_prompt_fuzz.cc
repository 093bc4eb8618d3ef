// tests/fuzz/deepseek_prompt_fuzz.cc
// Any bytes as the texts of a conversation with DeepSeek-V4.1. Besides not crashing: the prompt
// holds exactly the special tokens that the encoding itself writes, and no byte of a text is lost.
// Lines of the input are the texts: system, user, reasoning, content, arguments, result,
// description, parameters, schema.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/testing/deepseek_vocabulary.h"
#include "base/check.h"
#include "text/deepseek_v41_prompt.h"

namespace {

using plumb::text::ChatInput;
using plumb::text::PromptSegment;

ChatInput Conversation(std::string_view bytes) {
  std::vector<std::string> lines(9);
  for (std::string& line : lines) {
    const size_t end = bytes.find('\n');
    line = bytes.substr(0, end);
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
  }
  ChatInput input;
  input.messages = {{.role = "system", .content = lines[0]},
                    {.role = "user", .content = lines[1]},
                    {.role = "assistant", .content = lines[3]},
                    {.role = "tool", .content = lines[5]},
                    {.role = "latest_reminder", .content = lines[1]}};
  input.messages[2].reasoning = lines[2];
  input.messages[2].tool_calls = {{"c", "f", lines[4]}};
  input.messages[3].tool_call_id = "c";
  input.tools = {{"f", lines[6], "{}", lines[6].size() % 2 == 1}};
  if (!lines[7].empty()) input.tools[0].parameters = lines[7];
  input.response_schema = lines[8];
  return input;
}

// Special tokens among the segments' template parts.
size_t CountSpecials(const std::vector<PromptSegment>& segments,
                     const plumb::text::SpecialTokens& specials) {
  size_t count = 0;
  for (const PromptSegment& segment : segments) {
    if (segment.kind != PromptSegment::Kind::kTemplate) continue;
    std::string_view rest = segment.text;
    for (auto found = specials.Find(rest); found.place != rest.npos; found = specials.Find(rest)) {
      rest.remove_prefix(found.place + found.name.size());
      ++count;
    }
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokenizer = plumb::api::testing::MakeDeepseekTokenizer();
  static const plumb::text::SpecialTokens specials(*tokenizer, plumb::text::kDeepseekV41Specials);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto rendered = plumb::text::RenderDeepseekV41(Conversation(bytes));
  if (!rendered.ok()) {
    CHECK(!rendered.status().field().empty()) << rendered.status().ToString();
    return 0;
  }
  const auto tokens = specials.Encode(*tokenizer, rendered->segments);
  if (!tokens.ok()) {
    CHECK(tokens.status().field() == "messages") << tokens.status().ToString();
    return 0;
  }
  size_t count = 0;
  std::string text;
  for (const auto token : *tokens) {
    const bool special = plumb::base::Index(token) >= 256;
    count += special ? 1 : 0;
    text += special ? tokenizer->TokenName(token) : tokenizer->TokenBytes(token);
  }
  CHECK(count == CountSpecials(rendered->segments, specials)) << text;
  std::string expected;
  for (const PromptSegment& segment : rendered->segments) expected += segment.text;
  CHECK(text == expected);
  return 0;
}
