// tests/sim/ledger.cc
// The rules, behind tests/sim/ledger.h.
#include "ledger.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"
#include "engine/oracle_testing.h"

namespace plumb::sim {
namespace {

using engine::Finish;
using engine::FinishReason;
using engine::TokenId;
using engine::TokenLogprob;

constexpr double kLogprobTolerance = 1e-5;  // f32 against f64, as in src/engine/oracle_testing.h

const char* Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "?";
}

size_t Common(const std::vector<TokenId>& tokens, size_t from, const std::vector<TokenId>& other) {
  size_t count = 0;
  while (from + count < tokens.size() && count < other.size() &&
         tokens[from + count] == other[count]) {
    ++count;
  }
  return count;
}

bool SameLogprobs(std::span<const TokenLogprob> a, std::span<const TokenLogprob> b) {
  const auto near = [](float x, float y) { return std::abs(x - y) <= kLogprobTolerance; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const TokenLogprob& x, const TokenLogprob& y) {
                      return x.token == y.token && near(x.logprob, y.logprob) &&
                             std::equal(x.top.begin(), x.top.end(), y.top.begin(), y.top.end(),
                                        [&](const auto& s, const auto& t) {
                                          return s.token == t.token && near(s.logprob, t.logprob);
                                        });
                    });
}

// Tokens that `prompt` has in common with the beginning of anything the record computed.
size_t CommonWith(const Record& record, const std::vector<TokenId>& prompt) {
  size_t most = Common(prompt, 0, record.request.prompt);
  if (most < record.request.prompt.size()) return most;
  for (const SampleRecord& sample : record.samples) {
    most = std::max(most, record.request.prompt.size() +
                              Common(prompt, record.request.prompt.size(), sample.tokens));
  }
  return most;
}

}  // namespace

void Record::OnEvent(engine::TokenEvent event) { ledger_.Receive(*this, std::move(event)); }

Record& Ledger::Open(engine::Request request) {
  return *records_.emplace_back(std::make_unique<Record>(*this, std::move(request)));
}

void Ledger::Accepted(Record& record) {
  CHECK(record.unfinished == 0);
  record.unfinished = record.request.samples;
  record.accepted_after = forwards_ + guessing_;
  live_.push_back(&record);
  by_key_[record.request.isolation].push_back(&record);
  ++counts_.accepted;
  counts_.samples += record.request.samples;
  journal_.Note("request {}: {} + {} tokens, {} samples, priority {}, tenant {}", record.id(),
                record.request.prompt.size(), record.request.sampling.tokens_max,
                record.request.samples, static_cast<int>(record.request.priority),
                record.request.tenant);
}

void Ledger::Cancelled(Record& record) {
  if (record.unfinished == 0 || record.cancelled_after) return;
  record.cancelled_after = forwards_ + guessing_;
  journal_.Note("request {}: cancelled", record.id());
}

void Ledger::BeginGuessing() {
  if (guessing_) return;
  guessing_ = true;
  received_ = world_.now();
}

void Ledger::BeginForward() {
  BeginGuessing();
  guessing_ = false;
  ++forwards_;
  for (const Record* record : live_) {
    if (record->accepted_after >= forwards_) continue;  // not received yet
    if (record->cancelled_after && *record->cancelled_after < forwards_) {
      journal_.Fail("request {} runs on, {} steps after it was cancelled", record->id(),
                    forwards_ - *record->cancelled_after);
    }
    if (record->request.deadline <= received_) {
      journal_.Fail("request {} runs on, {} ms after its deadline", record->id(),
                    (world_.now() - record->request.deadline).ms());
    }
    if (drain_deadline_ <= received_) {
      journal_.Fail("request {} runs on after the deadline of Drain", record->id());
    }
  }
}

uint64_t Ledger::live_samples() const {
  uint64_t samples = 0;
  for (const Record* record : live_) samples += record->unfinished;
  return samples;
}

uint64_t Ledger::live_rows() const {
  uint64_t rows = 0;
  for (const Record* record : live_) {
    rows += record->unfinished *
            (record->request.prompt.size() + uint64_t{record->request.sampling.tokens_max});
  }
  return rows;
}

void Ledger::Receive(Record& record, engine::TokenEvent event) {
  if (event.request != record.request.id || event.sample_index >= record.samples.size()) {
    return journal_.Fail("request {}: got an event of request {}, sample {}", record.id(),
                         static_cast<uint64_t>(event.request), event.sample_index);
  }
  SampleRecord& sample = record.samples[event.sample_index];
  if (record.unfinished == 0 || sample.finish) {
    return journal_.Fail("request {} sample {}: an event after the end", record.id(),
                         event.sample_index);
  }
  if (!event.prompt_logprobs.empty() && (event.sample_index > 0 || !sample.tokens.empty())) {
    journal_.Fail("request {} sample {}: prompt log-probabilities out of place", record.id(),
                  event.sample_index);
  }
  const size_t logprobs = record.request.sampling.logprobs ? event.tokens.size() : 0;
  if (event.logprobs.size() != logprobs) {
    journal_.Fail("request {} sample {}: {} tokens with {} log-probabilities", record.id(),
                  event.sample_index, event.tokens.size(), event.logprobs.size());
  }
  counts_.tokens += event.tokens.size();
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(sample.tokens, event.tokens);
  append(sample.logprobs, event.logprobs);
  append(sample.prompt_logprobs, event.prompt_logprobs);
  sample.text += event.text;
  if (!event.finish) {
    if (on_token && !event.tokens.empty()) on_token(record);
    return;
  }
  sample.finish = std::move(event.finish);
  journal_.Note("request {} sample {}: {} after {} tokens, {} of the prompt cached", record.id(),
                event.sample_index, Name(sample.finish->reason), sample.tokens.size(),
                sample.finish->cached_tokens);
  if (--record.unfinished == 0) std::erase(live_, &record);
  CheckFinish(record, event.sample_index);
  if (on_answer) on_answer(record, sample);
}

void Ledger::CheckFinish(Record& record, uint32_t index) {
  const SampleRecord& sample = record.samples[index];
  const Finish& finish = *sample.finish;
  CheckReason(record, index);
  CheckCached(record, finish);
  CheckAnswer(record, index);
  if (finish.prompt_tokens != record.request.prompt.size() ||
      finish.completion_tokens != sample.tokens.size()) {
    journal_.Fail("request {} sample {}: counts {} and {} tokens, but has {} and {}", record.id(),
                  index, finish.prompt_tokens, finish.completion_tokens,
                  record.request.prompt.size(), sample.tokens.size());
  }
  counts_.cached_tokens += finish.cached_tokens;
}

void Ledger::CheckReason(Record& record, uint32_t index) {
  const Finish& finish = *record.samples[index].finish;
  if (finish.status.ok() == (finish.reason == FinishReason::kError)) {
    journal_.Fail("request {}: {} with status {}", record.id(), Name(finish.reason),
                  finish.status.ToString());
  }
  switch (finish.reason) {
    case FinishReason::kStop:
      ++counts_.stopped;
      return;
    case FinishReason::kLength:
      ++counts_.by_length;
      return;
    case FinishReason::kCancelled:
      ++counts_.cancelled;
      if (record.cancelled_after || drain_deadline_ <= world_.now()) return;
      return journal_.Fail("request {}: nobody cancelled it", record.id());
    case FinishReason::kError:
      break;
  }
  if (finish.status.code() == base::Code::kDeadline) {
    ++counts_.overdue;
    if (record.request.deadline <= world_.now()) return;
    return journal_.Fail("request {}: its deadline had not passed", record.id());
  }
  if (finish.status.code() == base::Code::kUnsupported && record.request.grammar != nullptr) {
    ++counts_.over_limit;
    if (Expected(record, index).reason == FinishReason::kError) return;
    return journal_.Fail("request {}: its grammar has no limit here", record.id());
  }
  if (finish.status.code() == base::Code::kInternal && ++counts_.broken <= spoilt_) return;
  journal_.Fail("request {}: broke, {} after {} spoilt rows: {}", record.id(), counts_.broken,
                spoilt_, finish.status.ToString());
}

void Ledger::CheckStored(const Record& record, const Finish& finish) {
  const auto& request = record.request;
  uint64_t counted = finish.cached_tokens;
  for (size_t i = 0; i < finish.stored_tokens.size(); ++i) {
    const uint32_t stored = finish.stored_tokens[i];
    const uint32_t asked = i < request.hints.size() ? request.hints[i].tokens : 0;
    counted += stored;
    counts_.stored_tokens += stored;
    if (stored <= asked / model::kPageTokens * model::kPageTokens) continue;
    journal_.Fail("request {}: {} tokens stored under a hint for {}", record.id(), stored, asked);
  }
  if (counted <= request.prompt.size()) return;
  journal_.Fail("request {}: {} prompt tokens cached or stored, of {}", record.id(), counted,
                request.prompt.size());
}

void Ledger::CheckCached(const Record& record, const Finish& finish) {
  const auto& prompt = record.request.prompt;
  if (finish.cached_tokens >= prompt.size()) {
    return journal_.Fail("request {}: {} of {} prompt tokens cached, none computed", record.id(),
                         finish.cached_tokens, prompt.size());
  }
  CheckStored(record, finish);
  if (finish.cached_tokens == 0) return;
  // With states, whole pages at most (it may have begun one itself) of what is not replayed.
  const bool replays = model_.info().replay_rows > 0;
  const size_t resume_max = replays ? model_.ReplayFrom(prompt.size()) : prompt.size() - 1;
  if (model_.info().state_bytes > 0 &&
      finish.cached_tokens > resume_max / model::kPageTokens * model::kPageTokens) {
    journal_.Fail("request {}: {} prompt tokens cached, but it may go on from {} at most",
                  record.id(), finish.cached_tokens, resume_max);
  }
  size_t most = 0;
  for (const Record* other : by_key_[record.request.isolation]) {
    if (other == &record && record.request.samples == 1) continue;
    most = std::max(most, CommonWith(*other, prompt));
  }
  if (finish.cached_tokens > most) {
    journal_.Fail(
        "request {}: {} prompt tokens cached, but its isolation key has computed {} of "
        "them at most",
        record.id(), finish.cached_tokens, most);
  }
}

const ExpectedAnswer& Ledger::Expected(Record& record, uint32_t sample) const {
  std::optional<ExpectedAnswer>& expected = record.expected[sample];
  if (!expected) expected = oracle_.Run(record.request, sample);
  return *expected;
}

void Ledger::CheckAnswer(Record& record, uint32_t index) {
  const SampleRecord& sample = record.samples[index];
  const Finish& finish = *sample.finish;
  const ExpectedAnswer& expected = Expected(record, index);
  // Ended from within, so as it ends alone; else cut short.
  const bool whole = finish.reason == FinishReason::kStop ||
                     finish.reason == FinishReason::kLength ||
                     finish.status.code() == base::Code::kUnsupported;
  const size_t same = Common(sample.tokens, 0, expected.tokens);
  if (same < sample.tokens.size() || (whole && same < expected.tokens.size())) {
    return journal_.Fail(
        "request {} sample {}: {} tokens, of which the first {} are those of the "
        "{} it has alone",
        record.id(), index, sample.tokens.size(), same, expected.tokens.size());
  }
  const std::string text = whole ? expected.text : oracle_.TextOf(sample.tokens);
  if (sample.text != text) {
    return journal_.Fail("request {} sample {}: text \"{}\", alone \"{}\"", record.id(), index,
                         sample.text, text);
  }
  if (whole && (finish.reason != expected.reason || finish.stop != expected.stop)) {
    return journal_.Fail("request {} sample {}: ends by {} \"{}\", alone by {} \"{}\"", record.id(),
                         index, Name(finish.reason), finish.stop.value_or(""),
                         Name(expected.reason), expected.stop.value_or(""));
  }
  const auto& logprobs = expected.logprobs;
  if (!SameLogprobs(sample.logprobs, std::span(logprobs).first(std::min(logprobs.size(), same)))) {
    journal_.Fail("request {} sample {}: other log-probabilities than alone", record.id(), index);
  }
  const bool described = record.request.prompt_logprobs && index == 0;
  if (described && !sample.tokens.empty() &&
      !SameLogprobs(sample.prompt_logprobs, oracle_.PromptLogprobs(record.request))) {
    journal_.Fail("request {}: other log-probabilities of the prompt than alone", record.id());
  }
}

}  // namespace plumb::sim
