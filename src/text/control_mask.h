// text/control_mask.h
// Keeps the text of a message text: where it spells a control token ("<|im_end|>"), the rendered
// prompt must not contain that token, or a message could forge the turns of a conversation. The
// spelling is replaced by a mark before the template sees it, and encoded as characters afterwards.
// One per prompt. Read next: text/chat_template.h, text/tokenizer.h.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/token_cache.h"
#include "text/tokenizer.h"

namespace plumb::text {

// A resource type; borrows the tokenizer. Thread: one at a time.
class ControlMask {
 public:
  explicit ControlMask(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  ControlMask(const ControlMask&) = delete;
  ControlMask& operator=(const ControlMask&) = delete;

  // `text` with every spelling of a control token replaced by a mark; `text` itself, the usual
  // case, when there is none. Valid as long as both `text` and this object live.
  std::string_view Mask(std::string_view text);

  // The ids of a prompt made of masked texts: control tokens outside of marks are control tokens,
  // what a mark stands for is characters. Errors: as Tokenizer::Encode.
  base::Result<std::vector<TokenId>> Encode(std::string_view prompt,
                                            const TokenScope& scope = {}) const;
  // The prompt for people: every mark replaced by what it stands for.
  std::string Unmask(std::string prompt) const;

 private:
  // A private-use character around the index of a spelling. Where a text holds that character
  // itself, it is masked too, so a mark cannot be forged.
  static constexpr std::string_view kMark = "\xEF\xA3\xBF";  // U+F8FF

  // Cuts `prompt` at its first mark: the text before it, and the spelling it stands for. What
  // follows stays in `prompt`. Without a mark all of it is `before`, and false is returned.
  struct Cut {
    std::string_view before;
    std::string_view spelling;  // empty: a mark that a template has cut
  };
  bool Next(std::string_view& prompt, Cut& cut) const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> spellings_;
  std::deque<std::string> masked_;  // texts that had any
};

}  // namespace plumb::text
