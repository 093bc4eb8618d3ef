// text/grammar_compiler.cc: callers find or enter their spec, compile threads work the entries off,
// everybody who asked for one waits for it.
#include "text/grammar_compiler.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "text/grammar_rust.h"
#include "text/grammar_trigger.h"
#include "text/reasoning_budget.h"

namespace plumb::text {

using base::Result;
using base::Status;

namespace {

constexpr uint32_t kRetryAfterMs = 1000;
constexpr base::Duration kShortWait = base::Milliseconds(250);

Status Busy(std::string message) {
  return Status(base::Code::kOverloaded, std::move(message) + "; send the request again later")
      .WithRetryAfterMs(kRetryAfterMs);
}

Status TooLarge(std::string message) {
  return base::InvalidArgument("grammar", std::move(message)).WithReason("grammar_too_large");
}

size_t SpecBytes(const GrammarSpec& spec) {
  size_t bytes = spec.source.size() + spec.begin.size() + spec.end.size();
  for (const std::string& choice : spec.choices) bytes += choice.size();
  return bytes;
}

Status CheckSpec(const GrammarSpec& spec) {
  const auto wrong = [](std::string message) {
    return base::InvalidArgument("grammar", std::move(message));
  };
  if (SpecBytes(spec) > GrammarCompiler::kSourceBytesMax) {
    return TooLarge(fmt::format("the grammar has {} bytes, more than {}", SpecBytes(spec),
                                GrammarCompiler::kSourceBytesMax));
  }
  const bool choice = spec.kind == GrammarKind::kChoice;
  if (choice && spec.choices.empty()) return wrong("there is nothing to choose from");
  if (!choice && !spec.choices.empty()) return wrong("choices are for a grammar of that kind");
  if (spec.choices.size() > GrammarCompiler::kChoicesMax)
    return TooLarge(fmt::format("there are more than {} choices", GrammarCompiler::kChoicesMax));
  for (const std::string& text : spec.choices)
    if (text.empty()) return wrong("a choice is empty");
  if (!spec.end.empty() && spec.begin.empty()) return wrong("an end needs a begin");
  if (std::max(spec.begin.size(), spec.end.size()) > GrammarCompiler::kTriggerBytesMax) {
    return TooLarge(
        fmt::format("a begin or end has more than {} bytes", GrammarCompiler::kTriggerBytesMax));
  }
  return base::OkStatus();
}

}  // namespace

// One spec: first on its way, then known. Guarded by the compiler's mutex, but for key and spec.
struct GrammarCompiler::Entry {
  Key key;
  GrammarSpec spec;
  std::optional<Result<std::shared_ptr<const Grammar>>> result;
  std::list<Key>::iterator use;
};

GrammarCompiler::GrammarCompiler(const Tokenizer& tokenizer, GrammarCompilerOptions options)
    : tokenizer_(tokenizer),
      options_(options),
      queue_(options.waiting_max),
      vocabulary_(base::Internal("not made yet")) {
  CHECK(options.threads > 0 && options.cached_max > 0);
  for (uint32_t i = 0; i < options.threads; ++i)
    threads_.emplace_back(fmt::format("grammar-{}", i), [this] { RunThread(); });
}

GrammarCompiler::~GrammarCompiler() { Stop(); }

void GrammarCompiler::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
  }
  queue_.Close();
  changed_.NotifyAll();
  for (base::Thread& thread : threads_)
    if (thread.joinable()) thread.Join();
}

uint64_t GrammarCompiler::compiled() const {
  base::MutexLock lock(mutex_);
  return compiled_;
}

// Every field with its length, so that no two specs make one text.
GrammarCompiler::Key GrammarCompiler::KeyOf(const GrammarSpec& spec) {
  std::string all = fmt::format("{}:", static_cast<int>(spec.kind));
  const auto add = [&all](const std::string& field) {
    all += fmt::format("{}:{}", field.size(), field);
  };
  add(spec.source);
  add(spec.begin);
  add(spec.end);
  for (const std::string& choice : spec.choices) add(choice);
  return base::Blake3({std::as_bytes(std::span(all))});
}

Result<std::shared_ptr<const Grammar>> GrammarCompiler::Compile(const GrammarSpec& spec) {
  RETURN_IF_ERROR(CheckSpec(spec));
  ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, FindOrEnqueue(spec));
  base::MutexLock lock(mutex_);
  const auto done = [&]() HOLDS(mutex_) { return entry->result || stopped_; };
  // Nearly all are done by then. Who waits longer holds a thread that others need: one may.
  if (!changed_.WaitFor(lock, kShortWait, done)) {
    if (patient_) return Busy("another grammar takes long to compile");
    patient_ = true;
    changed_.WaitFor(lock, base::Milliseconds(options_.compile_ms_max), done);
    patient_ = false;
  }
  if (!entry->result && !stopped_) return Busy("the grammar still waits to be compiled");
  if (!entry->result) return Status(base::Code::kUnavailable, "the server is stopping");
  return *entry->result;
}

Result<std::shared_ptr<GrammarCompiler::Entry>> GrammarCompiler::FindOrEnqueue(
    const GrammarSpec& spec) {
  const Key key = KeyOf(spec);
  base::MutexLock lock(mutex_);
  if (stopped_) return Status(base::Code::kUnavailable, "the server is stopping");
  if (const auto found = entries_.find(key); found != entries_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second->use);
    return found->second;
  }
  auto entry = std::make_shared<Entry>(Entry{.key = key, .spec = spec, .result = {}, .use = {}});
  if (!queue_.Push(std::shared_ptr(entry))) {
    return Busy("too many grammars are waiting to be compiled");
  }
  by_use_.push_front(key);
  entry->use = by_use_.begin();
  entries_.emplace(key, entry);
  cached_bytes_ += SpecBytes(spec);
  Evict();
  return entry;
}

// The least recently used go first; what is being compiled has waiters and stays.
void GrammarCompiler::Evict() {
  auto at = by_use_.end();
  while (at != by_use_.begin() &&
         (entries_.size() > options_.cached_max || cached_bytes_ > options_.cached_bytes_max)) {
    --at;
    const auto found = entries_.find(*at);
    if (!found->second->result) continue;
    cached_bytes_ -= SpecBytes(found->second->spec);
    entries_.erase(found);
    at = by_use_.erase(at);
  }
}

void GrammarCompiler::RunThread() {
  while (std::optional<std::shared_ptr<Entry>> next = queue_.Pop()) {
    const std::shared_ptr<Entry> entry = *std::move(next);
    {
      base::MutexLock lock(mutex_);
      if (stopped_) continue;
      ++compiled_;
    }
    Result<std::shared_ptr<const Grammar>> result = CompileNow(entry->spec);
    {
      base::MutexLock lock(mutex_);
      const bool ours = !result.ok() && result.status().code() != base::Code::kInvalidArgument;
      entry->result = std::move(result);
      if (ours && entries_.erase(entry->key) > 0) {  // not the spec's fault: the next may try again
        cached_bytes_ -= SpecBytes(entry->spec);
        by_use_.erase(entry->use);
      }
      Evict();
    }
    changed_.NotifyAll();
  }
}

Result<std::shared_ptr<const GrammarVocabulary>> GrammarCompiler::Vocabulary() {
  std::call_once(vocabulary_once_, [this] { vocabulary_ = GrammarVocabulary::Make(tokenizer_); });
  return vocabulary_;
}

Result<std::shared_ptr<const Grammar>> GrammarCompiler::WithBudget(
    uint32_t tokens_max, const std::vector<std::string>& ends,
    std::shared_ptr<const Grammar> inner) {
  CHECK(!ends.empty());
  ASSIGN_OR_RETURN(std::shared_ptr<const GrammarVocabulary> vocabulary, Vocabulary());
  ASSIGN_OR_RETURN(std::vector<TokenId> close,
                   tokenizer_.Encode(ends.front(), ControlTokens::kParse, /*add_special=*/false));
  if (close.empty()) return base::Unsupported("this tokenizer cannot write the end of reasoning");
  return MakeBudgeted(std::move(vocabulary),
                      {.tokens_max = tokens_max, .ends = ends, .close = std::move(close)},
                      std::move(inner));
}

Result<std::shared_ptr<const Grammar>> GrammarCompiler::CompileNow(const GrammarSpec& spec) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const GrammarVocabulary> vocabulary, Vocabulary());
  ASSIGN_OR_RETURN(std::shared_ptr<const Grammar> inner,
                   vocabulary->Compile(spec, options_.compile_ms_max));
  if (spec.begin.empty()) return inner;
  return MakeTriggered(vocabulary, spec, std::move(inner));
}

}  // namespace plumb::text
