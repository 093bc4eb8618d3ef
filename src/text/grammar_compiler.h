// text/grammar_compiler.h
// GrammarSpec to Grammar, once for all who ask for the same: a bounded cache (least recently used
// goes first) before threads of its own, so that neither the engine nor an I/O thread ever
// compiles. What a source may cost is bounded by its size, its depth and llguidance's own step
// counts, which are the same on every machine; a wall-clock limit stands behind them. Read next:
// text/grammar_rust.h, rust/src/grammar.rs.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bounded_queue.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace plumb::text {

class GrammarVocabulary;

struct GrammarCompilerOptions {
  uint32_t threads = 1;
  uint32_t waiting_max = 64;             // specs that wait for a thread
  uint32_t cached_max = 64;              // grammars and refusals; one takes some megabytes
  uint64_t cached_bytes_max = 8u << 20;  // of their specs
  uint32_t compile_ms_max = 5000;        // of one grammar
};

// A resource type. Borrows the tokenizer. Thread: any; Stop: the owner.
class GrammarCompiler {
 public:
  explicit GrammarCompiler(const Tokenizer& tokenizer, GrammarCompilerOptions options = {});
  ~GrammarCompiler();  // Stop()
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  static constexpr size_t kSourceBytesMax = 256u << 10;
  static constexpr size_t kChoicesMax = 4096;
  static constexpr size_t kTriggerBytesMax = 64;

  // Waits for a thread of this object: 250 ms, one caller at a time compile_ms_max more.
  // kInvalidArgument, field "grammar": the spec is malformed, too large or not done in
  // compile_ms_max (reason "grammar_too_large"), or asks for what cannot be enforced (reason
  // "grammar_unsupported"; the message names the keyword and where it stands); kOverloaded: too
  // many are waiting, or others take long; kUnavailable: stopped.
  base::Result<std::shared_ptr<const Grammar>> Compile(const GrammarSpec& spec);

  // `inner` (null: nothing) for an answer that begins with reasoning, which is closed when it has
  // `tokens_max` tokens; `ends`: ChatPrompt::reasoning_ends, not empty. Errors: as a tokenizer's
  // that no grammar can be made for.
  base::Result<std::shared_ptr<const Grammar>> WithBudget(uint32_t tokens_max,
                                                          const std::vector<std::string>& ends,
                                                          std::shared_ptr<const Grammar> inner);

  // Refuses what waits and returns when no compilation runs but those that were given up.
  // Idempotent.
  void Stop();

  // Compilations begun since the start; for metrics and tests.
  uint64_t compiled() const;

 private:
  struct Entry;
  using Key = base::Hash256;

  static Key KeyOf(const GrammarSpec& spec);
  base::Result<std::shared_ptr<Entry>> FindOrEnqueue(const GrammarSpec& spec);
  void RunThread();
  base::Result<std::shared_ptr<const Grammar>> CompileNow(const GrammarSpec& spec);
  void Evict() HOLDS(mutex_);
  base::Result<std::shared_ptr<const GrammarVocabulary>> Vocabulary();

  const Tokenizer& tokenizer_;
  const GrammarCompilerOptions options_;
  base::BoundedQueue<std::shared_ptr<Entry>> queue_;
  std::vector<base::Thread> threads_;

  std::once_flag vocabulary_once_;
  base::Result<std::shared_ptr<const GrammarVocabulary>> vocabulary_;

  mutable base::Mutex mutex_;
  base::Condition changed_;  // an entry is done, or stopped_
  std::map<Key, std::shared_ptr<Entry>> entries_ GUARDED_BY(mutex_);
  std::list<Key> by_use_ GUARDED_BY(mutex_);  // the latest first
  uint64_t cached_bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t compiled_ GUARDED_BY(mutex_) = 0;
  bool stopped_ GUARDED_BY(mutex_) = false;
  bool patient_ GUARDED_BY(mutex_) = false;  // a caller waits longer than others may
};

}  // namespace plumb::text
