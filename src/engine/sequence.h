// engine/sequence.h
// What the scheduler counts of one sample of a request on its way: numbers and pages, and tokens
// only for reuse. What the engine keeps beside it: engine/live_request.h. Read next:
// engine/scheduler.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "engine/request.h"
#include "kvcache/page_pool.h"

namespace plumb::engine {

struct Sample;

constexpr uint32_t kNoPosition = UINT32_MAX;

enum class SequenceState : uint8_t { kNew, kWaiting, kRunning, kEnded };

// What a sequence has beside its pages while it runs, of a model that needs that
// (sequence_states.h); else as here.
struct HeldState {
  static constexpr size_t kKeptMax = 2;
  std::byte* data = nullptr;  // the model's state
  uint32_t seat = 0;          // whose memory it is
  uint32_t end = 0;           // rows that the state has seen, those of drafts included
  // The page boundaries whose checkpoints lie in the sequence's own room, by place; 0: none does.
  std::array<uint32_t, kKeptMax> kept{};
};

// A hint of its request, in pages (request.h), and what came of it.
struct PromptHint {
  uint32_t pages = 0;  // the prompt's first so many; 0: there is no hint
  base::Duration time{0};
  uint32_t stored_tokens = 0;  // Finish
};

// Thread: engine. Owner: the request; the scheduler borrows it from Add to Remove and alone writes
// to state, computed and what follows it, up to `held`.
struct Sequence {
  uint64_t order = 0;       // by arrival, then sample; unique; lower = older
  uint32_t length = 0;      // tokens known: the prompt, and what was sampled so far
  uint32_t length_max = 0;  // prompt + tokens_max: the most it will ever have; of one that embeds
                            // it is `length`
  // Guesses for what follows, at tokens[length, length + drafts), that the next step may verify;
  // length + drafts < length_max. Set by the engine before Plan, only where decoding().
  uint32_t drafts = 0;
  // Rows of prompt tokens from this position on have logits, besides the last known token's, for
  // the prompt's log-probabilities; computed never skips past it by reuse. The engine raises it as
  // they are done. kNoPosition: no such rows are wanted.
  uint32_t logits_from = kNoPosition;
  // Of prompts that are to be embedded: rows from this position on have hidden states that are
  // wanted, and nothing is sampled; as with logits_from, none of them is reused. The engine raises
  // it. kNoPosition: it generates.
  uint32_t hidden_from = kNoPosition;
  // Of a model with bounded replay: model::SequenceRows::replay_from. Goes by the prompt, whatever
  // was generated since.
  uint32_t replay_from = 0;
  // Of a model with states: only tokens before it may be reused. Where rows are replayed it is
  // replay_from, else all of the prompt but its last token.
  uint32_t resume_max = 0;
  // It first computes its prompt, but for the last token, as if replay_from were 0: for the
  // prompt's log-probabilities. The scheduler then begins it anew and takes this down.
  bool full_pass = false;
  Priority priority = Priority::kDefault;
  uint64_t tenant = 0;
  SequenceState state = SequenceState::kNew;
  uint32_t computed = 0;  // tokens whose keys and values are in the pages; < length
  uint32_t sealed = 0;    // pages that the prefix tree holds too: the first so many
  uint32_t cached = 0;    // prompt tokens that were reused instead of computed
  std::array<PromptHint, kHintsMax> hints{};
  // For their counts: pages that it has had sealed, at most; and the tokens of the next one that it
  // was given (`cached`).
  uint32_t sealed_max = 0;
  uint32_t cached_in_page = 0;
  bool preempted = false;  // at least once
  // It or another sample of its request has run: all of a request run on the same weights. Set by
  // the engine.
  bool begun = false;
  bool full_pass_done = false;         // it was begun anew after one
  std::vector<kvcache::PageId> pages;  // in token order
  std::vector<std::byte*> page_data;   // the same pages' memory, for the model
  // For reuse, else unset. chain[i]: the name of page i - 1; chain[0]: the root (page_chain.h). Set
  // up to the prompt's last whole page, then continued as pages fill.
  std::vector<base::Hash256> chain;
  // Of a model with checkpoints: a page boundary where others branch off, so that one is stored in
  // passing (0: nowhere); and how many had been stored when it last looked for one to go on from.
  uint32_t branch = 0;
  uint64_t checkpoints_seen = UINT64_MAX;
  HeldState held;
  const TokenId* tokens = nullptr;  // [length + drafts]
  Sample* sample = nullptr;         // for the engine; the scheduler never looks inside

  // Tokens to compute before the next one can be sampled, or before it is begun anew; >= 1.
  uint32_t remaining() const { return length - (full_pass ? 1 : 0) - computed; }
  // A single row that follows computed ones, as opposed to a part of a prompt.
  bool decoding() const { return !embeds() && !full_pass && computed > 0 && remaining() == 1; }
  bool embeds() const { return hidden_from != kNoPosition; }
  // What becomes known beyond what is: at least the next token.
  bool has_room() const { return embeds() || length + drafts < length_max; }
  std::array<uint32_t, kHintsMax> stored_tokens() const {
    return {hints[0].stored_tokens, hints[1].stored_tokens};
  }
  // For the model.
  uint32_t rows_replay_from() const { return full_pass ? 0 : replay_from; }
};

// Rank: higher priority first, then arrival.
inline bool Outranks(const Sequence* a, const Sequence* b) {
  return a->priority != b->priority ? a->priority < b->priority : a->order < b->order;
}

}  // namespace plumb::engine
