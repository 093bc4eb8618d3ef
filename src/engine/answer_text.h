// engine/answer_text.h
// The text of one sample as it grows: tokens to whole characters (text/detokenizer.h), then up to
// the first stop string (text/stop_matcher.h). Without a stop string met, what comes out is the
// whole detokenised text; with one, everything before it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/detokenizer.h"
#include "text/stop_matcher.h"

namespace plumb::engine {

// A value type that borrows the tokenizer. Thread: one at a time.
class AnswerText {
 public:
  AnswerText(const text::Tokenizer& tokenizer, const std::vector<std::string>& stops)
      : detokenizer_(tokenizer), matcher_(stops) {}

  struct Piece {
    std::string text;
    std::optional<size_t> stop_index;  // which stop string ended the answer
  };

  // The text that `token` releases.
  Piece Push(base::TokenId token) { return ToPiece(matcher_.Push(detokenizer_.Push(token))); }

  // The end for another reason: what was held back, which may itself complete a stop string (an
  // unfinished character comes out as U+FFFD). Nothing after a stop.
  Piece Finish() {
    Piece piece = ToPiece(matcher_.Push(detokenizer_.Finish()));
    if (!piece.stop_index) piece.text += matcher_.Finish();
    return piece;
  }

 private:
  static Piece ToPiece(text::StopMatcher::Output output) {
    return {std::move(output.text), output.stop_index};
  }

  text::Detokenizer detokenizer_;
  text::StopMatcher matcher_;
};

}  // namespace plumb::engine
