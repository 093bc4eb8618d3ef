// engine/draft_rate.h
// How often guesses of one kind prove right: a mean of what was seen that fades, begun from a prior
// that counts as so many guesses seen. Read next: engine/ngram_drafter.h, which has one of each
// kind of match.
#pragma once

namespace plumb::engine {

// A value type.
class DraftRate {
 public:
  // Of `weight` guesses, the share `prior` was right. `memory`: guesses until what was seen counts
  // for 1/e.
  constexpr DraftRate(float prior, float weight, float memory)
      : prior_(prior), weight_(weight), keep_(1.0f - 1.0f / memory) {}

  void Add(bool right) {
    Fade();
    seen_ += 1.0f;
    right_ += right ? 1.0f : 0.0f;
  }
  // What was seen counts less, as it would after one guess more.
  void Fade() {
    seen_ *= keep_;
    right_ *= keep_;
  }

  float value() const { return ValueOver(prior_); }
  // With another prior, such as a mean over many sequences.
  float ValueOver(float prior) const { return (right_ + weight_ * prior) / (seen_ + weight_); }

 private:
  float prior_;
  float weight_;
  float keep_;
  float seen_ = 0;
  float right_ = 0;
};

}  // namespace plumb::engine
