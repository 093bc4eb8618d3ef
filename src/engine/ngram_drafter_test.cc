// engine/ngram_drafter_test.cc: the index against a search of the whole text, its bounds, and what
// it learns.
#include "engine/ngram_drafter.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"

namespace plumb::engine {
namespace {

struct Copy {
  size_t place;
  uint32_t length;
};

// The latest of the longest matches of the newest tokens of `text` with a follower below `known`.
std::optional<Copy> SearchAll(std::span<const TokenId> text, size_t known) {
  std::optional<Copy> best;
  for (size_t place = kMatchTokensMin; place < known; ++place) {
    uint32_t length = 0;
    while (length < kMatchTokensMax && length < place &&
           text[place - 1 - length] == text[text.size() - 1 - length]) {
      ++length;
    }
    if (length < kMatchTokensMin) continue;
    if (!best || length >= best->length) best = Copy{place, length};
  }
  return best;
}

std::vector<TokenId> Ids(std::initializer_list<uint32_t> ids) {
  std::vector<TokenId> tokens;
  for (const uint32_t id : ids) tokens.push_back(TokenId{id});
  return tokens;
}

class Text {
 public:
  explicit Text(NgramDrafter& drafter, uint32_t length_max)
      : drafter_(drafter), state_(drafter.Begin({}, 0, length_max)) {}

  std::vector<TokenId> tokens;
  Draft draft;

  void Guess(uint32_t max = kDraftsMax, std::span<const TokenId> ready = {}) {
    draft = {.state = state_.get(), .tokens = tokens, .max = max};
    for (const TokenId token : ready) draft.Append(token, 1, 0);
    Draft* batch[] = {&draft};
    drafter_.DraftFor(batch);
  }
  std::vector<TokenId> guesses() const {
    return {draft.guesses.begin(), draft.guesses.begin() + draft.count};
  }
  DraftState& state() { return *state_; }

 private:
  NgramDrafter& drafter_;
  std::unique_ptr<DraftState> state_;
};

TEST(NgramDrafter, GuessesWhatFollowedTheLatestOfTheLongestMatches) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    base::Rng rng(seed);
    const uint64_t vocabulary = 2 + rng.Below(30);
    const auto random_token = [&] { return TokenId{static_cast<uint32_t>(rng.Below(vocabulary))}; };
    NgramDrafter drafter;
    Text text(drafter, 240);
    while (text.tokens.size() < 200) {
      for (uint64_t grow = 1 + rng.Below(5); grow > 0; --grow) {
        text.tokens.push_back(random_token());
      }
      std::vector<TokenId> ready;
      for (uint64_t i = rng.Below(4); i > 1; --i) ready.push_back(random_token());
      const uint32_t max = static_cast<uint32_t>(ready.size() + rng.Below(8));
      text.Guess(max, ready);

      std::vector<TokenId> all = text.tokens;
      all.insert(all.end(), ready.begin(), ready.end());
      const auto copy = SearchAll(all, text.tokens.size());
      const size_t asked = max - ready.size();
      EXPECT_EQ(text.draft.count > ready.size(), copy.has_value() && asked > 0) << "seed " << seed;
      ASSERT_LE(text.draft.count, max);
      for (size_t i = 0; copy && i < text.draft.count - ready.size(); ++i) {
        const size_t place = ready.size() + i;
        ASSERT_EQ(text.draft.guesses[place], all[copy->place + i])
            << "seed " << seed << ", " << all.size() << " tokens, guess " << i;
        EXPECT_EQ(text.draft.kind[place],
                  NgramDrafter::KindOf(copy->length + static_cast<uint32_t>(i)));
        all.push_back(text.draft.guesses[place]);
      }
    }
  }
}

TEST(NgramDrafter, ACopyGoesOnIntoItself) {
  NgramDrafter drafter;
  Text text(drafter, 64);
  text.tokens = Ids({1, 2, 3, 1, 2, 3, 1, 2});
  text.Guess(7);
  EXPECT_EQ(text.guesses(), Ids({3, 1, 2, 3, 1, 2, 3}));
}

TEST(NgramDrafter, GoesOnCopyingWhatLiesBehindAllPlacesItLooksAt) {
  // A long text with a line that recurs so often that the beginning of the copy is out of sight.
  NgramDrafter drafter;
  Text text(drafter, 4096);
  const auto append = [&](const std::vector<TokenId>& tokens) {
    text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
  };
  const auto line = Ids({7, 8, 9});
  const auto original = Ids({100, 101, 102, 103, 7, 8, 9, 110, 111, 112});
  append(original);
  for (uint32_t i = 0; i < 2 * kMatchPlacesMax; ++i) {
    append(line);
    append({TokenId{1000 + i}});
  }
  append({original.begin(), original.begin() + 6});
  text.Guess();
  text.tokens.push_back(original[6]);
  text.Guess(3);
  EXPECT_EQ(text.guesses(), Ids({110, 111, 112}));
}

TEST(NgramDrafter, LooksAtTheNewestTokensOnly) {
  NgramDrafter drafter;
  const uint32_t length_max = 3 * kMatchWindow;
  Text text(drafter, length_max);
  const auto phrase = Ids({1, 2, 3, 4, 5});
  const auto append_phrase = [&](size_t tokens) {
    text.tokens.insert(text.tokens.end(), phrase.begin(), phrase.begin() + tokens);
  };
  uint32_t next = 10;
  const auto append_others = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) text.tokens.push_back(TokenId{next++});
  };
  append_phrase(5);
  append_others(kMatchWindow);
  append_phrase(3);
  text.Guess(2);
  EXPECT_EQ(text.draft.count, 0u) << "out of the window";
  append_others(kMatchWindow - 100);
  append_phrase(2);
  text.Guess(1);
  EXPECT_EQ(text.guesses(), Ids({3})) << "in the window";
  // One call for a text that is longer than the window.
  Text whole(drafter, length_max);
  whole.tokens = text.tokens;
  whole.Guess(1);
  EXPECT_EQ(whole.guesses(), Ids({3}));
}

TEST(NgramDrafter, ATextOfOneTokenGoesOn) {
  NgramDrafter drafter;
  Text text(drafter, 2 * kMatchWindow);
  text.tokens.assign(kMatchWindow + 17, TokenId{5});
  for (int step = 0; step < 1000; ++step) {
    text.Guess();
    ASSERT_EQ(text.draft.count, kDraftsMax);
    text.tokens.push_back(TokenId{5});
  }
}

TEST(NgramDrafter, LearnsByTheLengthOfMatches) {
  NgramDrafter drafter;
  Text text(drafter, 64);
  text.tokens = Ids({1, 2, 3, 4, 9, 1, 2});
  text.Guess(1);
  ASSERT_EQ(text.draft.kind[0], NgramDrafter::KindOf(2));
  const float before = text.draft.confidence[0];
  for (int i = 0; i < 40; ++i) drafter.Learn(text.state(), NgramDrafter::KindOf(2), false);
  text.Guess(1);
  EXPECT_LT(text.draft.count == 0 ? 0.0f : text.draft.confidence[0], before / 4);
  for (int i = 0; i < 40; ++i) drafter.Learn(text.state(), NgramDrafter::KindOf(2), true);
  text.Guess(1);
  ASSERT_EQ(text.draft.count, 1u);
  EXPECT_GT(text.draft.confidence[0], 0.7f);
  // A longer match is another kind, about which nothing was learned.
  text.tokens.push_back(TokenId{3});
  text.Guess(1);
  Text other(drafter, 64);
  other.tokens = text.tokens;
  other.Guess(1);
  EXPECT_EQ(text.draft.confidence[0], other.draft.confidence[0]);
}

TEST(NgramDrafter, SequencesBeginFromWhatOthersLearned) {
  NgramDrafter drafter;
  Text one(drafter, 64), fresh(drafter, 64);
  one.tokens = fresh.tokens = Ids({1, 2, 3, 4, 9, 1, 2});
  fresh.Guess(1);
  const float before = fresh.draft.confidence[0];
  for (int i = 0; i < 400; ++i) drafter.Learn(one.state(), NgramDrafter::KindOf(2), true);
  fresh.Guess(1);
  EXPECT_GT(fresh.draft.confidence[0], before + 0.3f);
}

TEST(NgramDrafter, KindsOfMatchesGrowWithThem) {
  uint8_t last = NgramDrafter::KindOf(kMatchTokensMin);
  EXPECT_EQ(last, 0);
  for (uint32_t length = kMatchTokensMin; length <= kMatchTokensMax; ++length) {
    const uint8_t kind = NgramDrafter::KindOf(length);
    EXPECT_TRUE(kind == last || kind == last + 1);
    last = kind;
  }
  EXPECT_EQ(last, NgramDrafter::kKinds - 1);
  EXPECT_EQ(NgramDrafter::KindOf(kMatchTokensMax + kDraftsMax), last);
}

}  // namespace
}  // namespace plumb::engine
