// text/deepseek_v41_format.h
// The chat format of DeepSeek-V4.1: its encoding (text/deepseek_v41_prompt.h) with a tokenizer, and
// the parser of its answers (text/deepseek_v41_parser.h).
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "text/chat_format.h"
#include "text/prompt_segments.h"
#include "text/tokenizer.h"

namespace plumb::text {

// What the architecture is called (metadata key general.architecture).
constexpr std::string_view kDeepseekV41 = "deepseek_v41";

class DeepseekV41Format final : public ChatFormat {
 public:
  // kUnsupported: the tokenizer lacks a token that every conversation needs, or holds "</think>" or
  // "｜DSML｜" as a control token, whose text answers would not show.
  static base::Result<std::unique_ptr<DeepseekV41Format>> Create(const Tokenizer& tokenizer);

  std::string_view id() const override { return kDeepseekV41; }
  ChatAbilities abilities() const override {
    return {.tools = true, .reasoning = true, .guides = true};
  }
  using ChatFormat::Encode;
  base::Result<ChatPrompt> Encode(const ChatInput& input, uint32_t tokens_max,
                                  const TokenScope& scope) const override;
  std::unique_ptr<AnswerParser> NewParser(const ChatPrompt& prompt) const override;

 private:
  DeepseekV41Format(const Tokenizer& tokenizer, SpecialTokens specials)
      : tokenizer_(tokenizer), specials_(std::move(specials)) {}

  const Tokenizer& tokenizer_;
  const SpecialTokens specials_;
};

}  // namespace plumb::text
