// engine/ngram_drafter.cc
// The index of a sequence is that of LZ77 compressors (RFC 1951, section 4): by hash the latest
// place after a trigram, and from each place a link to the one before with that hash; for bigrams
// the same. Links are followed up to a bound, so that a text made to collide costs no more than
// others.
#include "engine/ngram_drafter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace plumb::engine {
namespace {

// No place: nothing can follow fewer than kMatchTokensMin tokens.
constexpr uint32_t kNowhere = 0;

// Guesses that are less likely than this, all before them included, are not made.
constexpr float kProbabilityMin = 0.02f;

// How often a copy is taken to be right that goes on after so long a match, before any was seen:
// below what answers gave that edit code and JSON (docs/speculation.md), since others repeat less.
constexpr std::array<float, NgramDrafter::kKinds> kPriors = {0.30f, 0.45f, 0.55f, 0.70f, 0.78f,
                                                             0.88f, 0.92f, 0.96f, 0.98f};
constexpr float kSharedWeight = 32, kSharedMemory = 4096;
constexpr float kOwnWeight = 4, kOwnMemory = 24;

template <size_t... kIndex>
constexpr std::array<DraftRate, NgramDrafter::kKinds> RatesFrom(float weight, float memory,
                                                                std::index_sequence<kIndex...>) {
  return {DraftRate(kPriors[kIndex], weight, memory)...};
}
constexpr std::array<DraftRate, NgramDrafter::kKinds> Rates(float weight, float memory) {
  return RatesFrom(weight, memory, std::make_index_sequence<NgramDrafter::kKinds>());
}

uint32_t Hash(std::span<const TokenId> tokens) {
  uint64_t hash = 0;
  for (const TokenId token : tokens) {
    hash = (hash ^ base::Index(token)) * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
    hash ^= hash >> 29;
  }
  return static_cast<uint32_t>(hash >> 20);
}

// The sequence's tokens and then what is guessed to follow.
class Text {
 public:
  explicit Text(const Draft& draft)
      : tokens_(draft.tokens),
        guesses_(draft.guesses),
        size_(static_cast<uint32_t>(draft.tokens.size()) + draft.count) {}

  uint32_t size() const { return size_; }
  TokenId operator[](uint32_t place) const {
    return place < tokens_.size() ? tokens_[place] : guesses_[place - tokens_.size()];
  }
  // Tokens before `place` that equal the newest ones, counted up to kMatchTokensMax.
  uint32_t MatchBefore(uint32_t place) const {
    const uint32_t most = std::min(place, kMatchTokensMax);
    uint32_t length = 0;
    while (length < most && (*this)[place - 1 - length] == (*this)[size_ - 1 - length]) ++length;
    return length;
  }

 private:
  const std::span<const TokenId> tokens_;
  const std::array<TokenId, kDraftsMax>& guesses_;
  const uint32_t size_;
};

struct Match {
  uint32_t place = kNowhere;  // of the token that followed
  uint32_t length = 0;
};

// Of every place in the window the one before it that follows the same kTokens tokens, or others of
// their hash.
template <uint32_t kTokens>
class Chain {
 public:
  explicit Chain(uint32_t window)
      : latest_(2 * size_t{window}, kNowhere), before_(window, kNowhere) {}

  // Places come in order.
  void Add(std::span<const TokenId> tokens, uint32_t place) {
    if (place < kTokens) return;
    uint32_t& latest = latest_[Slot(tokens.subspan(place - kTokens, kTokens))];
    before_[place & (before_.size() - 1)] = latest;
    latest = place;
  }
  uint32_t Latest(std::span<const TokenId> newest) const {
    return latest_[Slot(newest.last(kTokens))];
  }
  // kNowhere when the ring has gone over it: places before are smaller.
  uint32_t Before(uint32_t place) const {
    const uint32_t before = before_[place & (before_.size() - 1)];
    return before < place ? before : kNowhere;
  }

 private:
  size_t Slot(std::span<const TokenId> tokens) const { return Hash(tokens) & (latest_.size() - 1); }

  std::vector<uint32_t> latest_;  // [2 window] by hash
  std::vector<uint32_t> before_;  // [window] by place
};

}  // namespace

struct NgramDrafter::State final : DraftState {
  explicit State(uint32_t length_max)
      : window(std::bit_ceil(std::clamp(length_max, 16u, kMatchWindow))),
        threes(window),
        twos(window),
        rates(Rates(kOwnWeight, kOwnMemory)) {}

  // Every place before the end is in the index from here on.
  void Index(std::span<const TokenId> tokens) {
    const uint32_t end = static_cast<uint32_t>(tokens.size());
    // What would leave the window at once is left out.
    if (end > window) indexed = std::max(indexed, end - window);
    for (uint32_t place = std::max(indexed, kMatchTokensMin); place < end; ++place) {
      threes.Add(tokens, place);
      twos.Add(tokens, place);
    }
    indexed = end;
  }

  // `continued`: where what was copied last goes on, else kNowhere.
  Match Find(const Text& text, uint32_t continued) const {
    Match best;
    if (text.size() < kMatchTokensMin) return best;
    const std::array newest{text.size() > 2 ? text[text.size() - 3] : TokenId{},
                            text[text.size() - 2], text[text.size() - 1]};
    if (text.size() > 2) {
      uint32_t place = threes.Latest(newest);
      for (uint32_t i = 0; i < kMatchPlacesMax && InWindow(place); ++i) {
        Consider(text, place, 3, best);
        if (best.length == kMatchTokensMax) return best;
        place = threes.Before(place);
      }
      // It may lie further back than that.
      if (continued < indexed && InWindow(continued)) Consider(text, continued, 3, best);
    }
    uint32_t place = twos.Latest(newest);
    for (uint32_t i = 0; i < kMatchPlacesMax && best.length == 0 && InWindow(place); ++i) {
      Consider(text, place, 2, best);
      place = twos.Before(place);
    }
    return best;
  }

  const uint32_t window;  // tokens; a power of two
  Chain<3> threes;
  Chain<2> twos;
  uint32_t indexed = 0;        // places below are in the index
  uint32_t source = kNowhere;  // that the token at `indexed` would be a copy of
  std::array<DraftRate, kKinds> rates;

 private:
  bool InWindow(uint32_t place) const { return place != kNowhere && place + window > indexed; }
  // `least`: fewer tokens that match are those of another hash's chain.
  static void Consider(const Text& text, uint32_t place, uint32_t least, Match& best) {
    const uint32_t length = text.MatchBefore(place);
    if (length >= least && length > best.length) best = {place, length};
  }
};

NgramDrafter::NgramDrafter() : rates_(Rates(kSharedWeight, kSharedMemory)) {}

std::unique_ptr<DraftState> NgramDrafter::Begin(const SamplingParams&, uint32_t,
                                                uint32_t length_max) {
  return std::make_unique<State>(length_max);
}

void NgramDrafter::DraftFor(std::span<Draft* const> batch) {
  for (Draft* draft : batch) DraftOne(*draft);
}

void NgramDrafter::DraftOne(Draft& draft) {
  CHECK(draft.max <= kDraftsMax && draft.count <= kDraftsMax) << draft.max;
  State& state = static_cast<State&>(*draft.state);
  const uint32_t known = static_cast<uint32_t>(draft.tokens.size());
  CHECK(known >= state.indexed) << "sequences only grow";
  const uint32_t ahead = known - state.indexed + draft.count;
  const uint32_t continued = state.source == kNowhere ? kNowhere : state.source + ahead;
  state.Index(draft.tokens);
  const Match match = state.Find(Text(draft), continued);
  state.source = match.place > draft.count ? match.place - draft.count : kNowhere;
  if (match.length == 0) return;
  float probability = 1;
  for (uint32_t i = 0; draft.count < draft.max; ++i) {
    const uint8_t kind = KindOf(match.length + i);
    const float confidence = state.rates[kind].ValueOver(rates_[kind].value());
    probability *= confidence;
    if (probability < kProbabilityMin) return;
    // A copy may run into what it makes: a text that repeats one line goes on doing so.
    const uint32_t place = match.place + i;
    draft.Append(place < known ? draft.tokens[place] : draft.guesses[place - known], confidence,
                 kind);
  }
}

void NgramDrafter::Learn(DraftState& state, uint8_t kind, bool right) {
  CHECK(kind < kKinds) << kind;
  static_cast<State&>(state).rates[kind].Add(right);
  rates_[kind].Add(right);
}

uint8_t NgramDrafter::KindOf(uint32_t match_tokens) {
  constexpr std::array<uint32_t, kKinds - 1> kLast = {2, 3, 4, 6, 8, 12, 16, 31};
  uint8_t kind = 0;
  while (kind < kLast.size() && match_tokens > kLast[kind]) ++kind;
  return kind;
}

}  // namespace plumb::engine
