// engine/request.h
// What the engine is asked for and what it answers, free of any API dialect: token ids, sampling
// parameters and events. Whoever builds a Request has checked the ranges given here; Submit checks
// them again and refuses, since every input is hostile. Read next: engine/generator.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/token_id.h"

namespace plumb::text {
class Grammar;  // text/grammar.h
}

namespace plumb::engine {

using base::TokenId;

constexpr uint32_t kSamplesMax = 16;
constexpr uint32_t kTopLogprobsMax = 20;
constexpr uint32_t kStopStringsMax = 16;
constexpr uint32_t kStopStringBytesMax = 1024;
constexpr uint32_t kStopTokensMax = 64;
constexpr uint32_t kLogitBiasMax = 1024;
constexpr uint32_t kHintsMax = 2;  // of one request
constexpr base::Duration kHintTimeMax = base::Seconds(7 * 24 * 3600);

enum class RequestId : uint64_t {};

struct LogitBias {
  TokenId token;
  float bias;  // added to the logit; [-100, 100]
};

// Applied in this order: repetition, presence, frequency penalties; bias; temperature; top_k;
// top_p; min_p; then Gumbel-max with noise f(seed, sample index, position, token). Candidates are
// ordered by logit, then by lower id.
struct SamplingParams {
  float temperature = 1.0f;         // [0, 2]; 0 = greedy
  float top_p = 1.0f;               // (0, 1]
  uint32_t top_k = 0;               // 0 = all
  float min_p = 0.0f;               // [0, 1]
  float presence_penalty = 0.0f;    // [-2, 2], on generated tokens
  float frequency_penalty = 0.0f;   // [-2, 2], on generated tokens
  float repetition_penalty = 1.0f;  // (0, 2], on prompt and generated tokens
  std::vector<LogitBias> logit_bias;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_tokens;  // besides the model's own end tokens
  bool ignore_end = false;           // the model's end tokens do not end it; not with a grammar
  uint64_t seed = 0;                 // always set: drawn by the server when the caller gave none
  uint32_t tokens_max = 16;          // >= 1 (but see pooling); prompt + tokens_max <= context
  bool logprobs = false;
  uint32_t top_logprobs = 0;  // [0, kTopLogprobsMax], only with logprobs, or the prompt's
};

// Who is served first. Each goes before all that follow it, and may take their pages.
enum class Priority : uint8_t { kInteractive, kDefault, kBatch };

// Where a request's draft tokens come from. It changes when tokens come, never which.
enum class Speculation : uint8_t {
  kServer,  // as the server is set up
  kOff,
  kNgram,  // what followed the latest tokens when they stood in the sequence before
  kDraft,  // the server's draft model; refused when it has none
  kAuto,   // whichever of them pays
};

// What is asked of a prompt's final hidden states, one a token, instead of an answer: their mean or
// the last of them, divided by its length (the root of the sum of squares).
enum class Pooling : uint8_t { kNone, kMean, kLast };

// A wish: that the pages of the prompt's first `tokens` tokens be kept for `time` after they were
// used last (docs/prefix_cache.md, Hints). It changes time, never an answer.
struct RetentionHint {
  uint32_t tokens = 0;     // <= the prompt's; only whole pages of them are kept
  base::Duration time{0};  // (0, kHintTimeMax]
};

struct Request {
  RequestId id;                 // unique among the live requests of this generator
  std::vector<TokenId> prompt;  // not empty
  SamplingParams sampling;
  uint32_t samples = 1;  // [1, kSamplesMax]
  Priority priority = Priority::kDefault;
  // Tenants of one priority share the machine evenly. Derived by the server, like `isolation`.
  uint64_t tenant = 0;
  Speculation speculation = Speculation::kServer;
  // Restricts each sample to what it accepts; null = free. Compiled for this generator's tokenizer.
  std::shared_ptr<const text::Grammar> grammar;
  // Log-probabilities of the prompt's tokens too, as many alternatives as sampling.top_logprobs.
  // Such a request computes its whole prompt.
  bool prompt_logprobs = false;
  // Not kNone: the prompt's embedding is wanted, which is all that the answer has. Then one sample,
  // no log-probabilities, no grammar and sampling.tokens_max = 0; nothing else of `sampling`
  // counts. With kMean such a request computes its whole prompt, and every row in all layers (even
  // of a model with bounded replay); with kLast its state is the one that a next token would come
  // from.
  Pooling pooling = Pooling::kNone;
  // Only requests with an equal one share computed pages. The server derives it from whose request
  // it is, never from what a caller says; zeros where everybody is one tenant.
  base::Hash256 isolation{};
  // At most kHintsMax. Of several that a page is under, the longest holds for it.
  std::vector<RetentionHint> hints = {};
  base::Instant deadline = base::kNever;
};

struct TopLogprob {
  TokenId token;
  float logprob;
};

// Natural logarithms of softmax(logits) before penalties, bias and temperature.
struct TokenLogprob {
  TokenId token;
  float logprob;
  std::vector<TopLogprob> top;  // by logit, then lower id
};

enum class FinishReason : uint8_t {
  kStop,       // an end token, stop token or stop string; an embedding that is whole
  kLength,     // tokens_max or the context's end
  kCancelled,  // Cancel, or the generator shut down at once
  kError,      // status says what
};

struct Finish {
  FinishReason reason;
  base::Status status;              // not ok only with kError (kDeadline, kInternal, ...)
  std::optional<std::string> stop;  // the stop string that was met
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;  // of this sample, the end token included
  uint32_t cached_tokens = 0;      // prompt tokens not computed again
  // Prompt tokens that it computed into newly stored pages, by the hint of Request::hints that
  // holds for the page; those of pages without a hint are not counted.
  std::array<uint32_t, kHintsMax> stored_tokens{};
  uint32_t weights_version = 0;  // of the weights that answered (Engine::SwapModel); 0: none did
};

// A piece of one sample's answer: one token or several, or none. `text` is whole characters, never
// taken back. A token's text may come in a later event than the token (held back for a stop string
// or an unfinished character).
struct TokenEvent {
  RequestId request;
  uint32_t sample_index = 0;
  uint32_t weights_version = 0;  // as Finish has it; the same in every event of a request
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<TokenLogprob> logprobs;  // one for each of `tokens` when asked for
  // Of prompt tokens 1, 2, ... (the first has none), in order, before the sample's first token; of
  // sample 0 alone.
  std::vector<TokenLogprob> prompt_logprobs;
  std::vector<float> embedding;  // with the last event, of a request for one that ends well
  std::optional<Finish> finish;  // set exactly once a sample, on its last event
};

}  // namespace plumb::engine
