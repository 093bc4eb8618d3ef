// text/chat_format.h
// How one model wants to be talked to: a conversation into its prompt, and its answer back into
// reasoning, content and calls. Two kinds: text/jinja_chat_format.h, by the template that a model
// carries, and text/deepseek_v41_format.h, an encoding that is code. Whoever serves a model sees
// only this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "text/answer_parser.h"
#include "text/chat_input.h"
#include "text/grammar.h"
#include "text/token_cache.h"

namespace plumb::text {

// What of a ChatInput a format honours; the rest must be absent, and is not looked at.
struct ChatAbilities {
  bool tools = false;      // tools, calls and results in messages, tool_choice
  bool reasoning = false;  // thinking, effort, reasoning in messages
  bool guides = false;     // `prefix` and `task` in messages, and the role latest_reminder
};

// Where an answer begins, for its parser.
enum class AnswerStart : uint8_t {
  kContent,
  kReasoning,
  kCalls,  // the prompt has opened a block of calls already
};

struct ChatPrompt {
  std::string text;  // for people: special tokens as they are spelled
  std::vector<base::TokenId> tokens;
  AnswerStart start = AnswerStart::kContent;
  bool may_think = false;  // with kContent: the answer may begin with <think> all the same
  bool continues = false;  // the prompt ends in the middle of what the answer goes on with
  bool calls = false;      // calls of tools in the answer are markup, not text
  bool one_call = false;   // and whatever follows the first is left out
  bool must_call = false;  // behind the reasoning there is nothing but calls
  std::vector<std::string> reasoning_ends =
      {};  // what ends reasoning; the first is how to close it
  // A grammar for the content begins to hold after this; empty: at once.
  std::string content_after = {};
  // What tool_choice makes of the answer; null when it is free.
  std::optional<GrammarSpec> grammar = {};
  std::vector<std::string> stops = {};       // besides those the caller has
  std::vector<std::string> tool_names = {};  // of the tools that are declared
};

// Immutable. Thread: any. Borrows its tokenizer.
class ChatFormat {
 public:
  virtual ~ChatFormat() = default;

  // Equal ids make equal prompts of equal conversations.
  virtual std::string_view id() const = 0;
  virtual ChatAbilities abilities() const = 0;

  // The prompt, up to where the model answers. Only what the format itself writes becomes special
  // tokens, never what a message says. kInvalidArgument, field the path of what is at fault: the
  // model cannot be told this; or the prompt is so long that no tokenisation of it fits
  // `tokens_max` (reason context_length_exceeded; found before the work of encoding). kInternal: a
  // template hit its limits. Takes time in proportion to the text, less where the scope's cache
  // knows parts of it: not for an I/O thread.
  virtual base::Result<ChatPrompt> Encode(const ChatInput& input, uint32_t tokens_max,
                                          const TokenScope& scope) const = 0;
  // Without a cache.
  base::Result<ChatPrompt> Encode(const ChatInput& input, uint32_t tokens_max) const {
    return Encode(input, tokens_max, TokenScope{});
  }

  // For one answer to that prompt.
  virtual std::unique_ptr<AnswerParser> NewParser(const ChatPrompt& prompt) const = 0;
};

}  // namespace plumb::text
