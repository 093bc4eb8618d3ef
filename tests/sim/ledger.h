// tests/sim/ledger.h
// Every request of a run, what came back for it, and the rules that both must keep: ends exactly
// once, in time, for a reason that there was; tokens, text and log-probabilities of the oracle;
// nothing reused that its isolation key never computed. Read next: tests/sim/engine_sim.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config.h"
#include "engine/generator.h"
#include "engine/hash_model.h"
#include "journal.h"
#include "oracle.h"
#include "text/tokenizer.h"
#include "world.h"

namespace plumb::sim {

// One sample, as its sink saw it.
struct SampleRecord {
  std::vector<engine::TokenId> tokens;
  std::string text;
  std::vector<engine::TokenLogprob> logprobs;
  std::vector<engine::TokenLogprob> prompt_logprobs;
  std::optional<engine::Finish> finish;
};

class Ledger;

// The sink of one request.
class Record final : public engine::EventSink {
 public:
  Record(Ledger& ledger, engine::Request taken)
      : request(std::move(taken)),
        samples(request.samples),
        expected(request.samples),
        ledger_(ledger) {}
  void OnEvent(engine::TokenEvent event) override;

  const engine::Request request;
  std::vector<SampleRecord> samples;
  std::vector<std::optional<ExpectedAnswer>> expected;  // once it was asked for
  uint32_t unfinished = 0;                              // samples; 0 before it was accepted
  // So many forwards, that of a step which has received included.
  uint64_t accepted_after = 0;
  std::optional<uint64_t> cancelled_after;

  uint64_t id() const { return static_cast<uint64_t>(request.id); }

 private:
  Ledger& ledger_;
};

// What a run came to, for the check that runs come to something.
struct LedgerCounts {
  uint64_t accepted = 0, refused = 0;  // requests; each try of one is refused by itself
  uint64_t samples = 0, stopped = 0, by_length = 0, cancelled = 0, overdue = 0, broken = 0,
           over_limit = 0;
  uint64_t tokens = 0, cached_tokens = 0, stored_tokens = 0;  // the last: under hints
};

// Thread: one. Owner of the records, which live as long as the ledger.
class Ledger {
 public:
  // All must outlive the ledger.
  Ledger(const engine::HashModel& model, const text::Tokenizer& tokenizer, const World& world,
         Journal& journal)
      : model_(model), oracle_(model, tokenizer), world_(world), journal_(journal) {}

  // What a sample must answer.
  const ExpectedAnswer& Expected(Record& record, uint32_t sample) const;

  // Before Submit, and what it said.
  Record& Open(engine::Request request);
  void Accepted(Record& record);
  void Refused() { ++counts_.refused; }
  void Cancelled(Record& record);

  // The step has received and now guesses or computes: whoever was cancelled before it, or whose
  // deadline had passed by then, has ended. A step may guess, then computes, once.
  void BeginGuessing();
  void BeginForward();
  // Rows of logits that were spoilt; no more samples may break.
  void SpoiltRow() { ++spoilt_; }
  // From now on requests may be cancelled by the engine itself.
  void Draining(base::Instant deadline) { drain_deadline_ = deadline; }

  // In order of acceptance.
  const std::vector<Record*>& live() const { return live_; }
  uint64_t live_samples() const;
  // Rows that are left to compute if nothing is reused or computed twice.
  uint64_t live_rows() const;
  uint64_t forwards() const { return forwards_; }
  const LedgerCounts& counts() const { return counts_; }

  // Each token that a sample received, for whoever reacts to it; each whole answer.
  std::function<void(Record&)> on_token;
  std::function<void(const Record&, const SampleRecord&)> on_answer;

 private:
  friend class Record;
  void Receive(Record& record, engine::TokenEvent event);
  void CheckFinish(Record& record, uint32_t sample);
  void CheckReason(Record& record, uint32_t sample);
  void CheckAnswer(Record& record, uint32_t sample);
  void CheckCached(const Record& record, const engine::Finish& finish);
  void CheckStored(const Record& record, const engine::Finish& finish);

  const engine::HashModel& model_;
  Oracle oracle_;
  const World& world_;
  Journal& journal_;
  std::vector<std::unique_ptr<Record>> records_;
  std::vector<Record*> live_;
  std::map<base::Hash256, std::vector<const Record*>> by_key_;  // accepted, of each isolation key
  uint64_t forwards_ = 0;
  bool guessing_ = false;     // a step has received, and its forward has not begun
  base::Instant received_{};  // when it had
  uint64_t spoilt_ = 0;
  base::Instant drain_deadline_ = base::kNever;
  LedgerCounts counts_;
};

}  // namespace plumb::sim
