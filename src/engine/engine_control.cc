// engine/engine_control.cc
// What other threads call: Submit, Cancel, Drain, Stop, health. They share with the loop the
// arrivals queue, the registry of live requests and a few atomics, nothing else.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/request_check.h"
#include "kvcache/page_chain.h"

namespace plumb::engine {
namespace {

EngineOptions Clamped(EngineOptions options, const model::Model& model) {
  options.rows_max = std::min(options.rows_max, model.rows_max());
  options.prefill_rows_max = std::min(options.prefill_rows_max, options.rows_max);
  options.sequences_max =
      std::min({options.sequences_max, model.logits_rows_max(), options.rows_max});
  return options;
}

base::Status CheckOption(const char* field, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return base::OkStatus();
  return base::InvalidArgument(
      field, fmt::format("{} is {}; it must be in [{}, {}]", field, value, low, high));
}

base::Status CheckOptions(const EngineOptions& options) {
  constexpr uint32_t kMax = 1u << 20;
  RETURN_IF_ERROR(CheckOption("sequences_max", options.sequences_max, 1, kMax));
  RETURN_IF_ERROR(CheckOption("waiting_max", options.waiting_max, kSamplesMax, kMax));
  RETURN_IF_ERROR(CheckOption("rows_max", options.rows_max, 1, kMax));
  return CheckOption("prefill_rows_max", options.prefill_rows_max, 1, kMax);
}

}  // namespace

base::Result<std::unique_ptr<Engine>> Engine::Create(model::Model& model,
                                                     const text::Tokenizer& tokenizer,
                                                     const base::Clock& clock,
                                                     const EngineOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  const model::ModelInfo& info = model.info();
  CHECK(info.vocabulary_size > 0 && info.context_max > 0);
  if (info.vocabulary_size > kVocabularySizeMax) {
    return base::Unsupported(fmt::format("a vocabulary of {} tokens; up to {} are supported",
                                         info.vocabulary_size, kVocabularySizeMax));
  }
  if (tokenizer.size() == 0) return base::InvalidArgument("model", "its tokenizer has no tokens");
  ASSIGN_OR_RETURN(auto pool, kvcache::PagePool::Create({.page_tokens = model::kPageTokens,
                                                         .page_bytes = info.page_bytes},
                                                        options.kv_budget_bytes));
  return std::unique_ptr<Engine>(
      new Engine(model, tokenizer, clock, Clamped(options, model), std::move(pool)));
}

Engine::Engine(model::Model& model, const text::Tokenizer& tokenizer, const base::Clock& clock,
               const EngineOptions& options, std::unique_ptr<kvcache::PagePool> pool)
    : model_(model),
      tokenizer_(tokenizer),
      clock_(clock),
      options_(options),
      pool_(std::move(pool)),
      tree_(options.prefix_cache ? std::make_unique<kvcache::PrefixTree>(*pool_) : nullptr),
      identity_(kvcache::ModelIdentity(options.model_content, model.info().numerics_id)),
      context_max_(
          static_cast<uint32_t>(std::min(uint64_t{model.info().context_max},
                                         uint64_t{pool_->total()} * pool_->layout().page_tokens))),
      scheduler_({.sequences_max = options.sequences_max,
                  .rows_max = options.rows_max,
                  .prefill_rows_max = options.prefill_rows_max,
                  .waiting_max = options.waiting_max,
                  .step_target = options.step_target},
                 *pool_, tree_.get()),
      sampler_(model.info().vocabulary_size,
               std::min(model.info().vocabulary_size, tokenizer.size())),
      publisher_(tokenizer),
      arrivals_(options.waiting_max) {
  live_.reserve(size_t{options.waiting_max} + options.sequences_max);
  rows_.reserve(options.sequences_max);
  logits_.resize(size_t{options.sequences_max} * model.info().vocabulary_size);
  results_.resize(options.sequences_max);
}

Engine::~Engine() { Stop(); }

void Engine::Start() {
  std::lock_guard lock(thread_mutex_);
  CHECK(!thread_.joinable()) << "the engine runs already";
  thread_ = base::Thread("engine", [this] { Run(); });
}

base::Status Engine::Submit(Request request, EventSink& sink) {
  RETURN_IF_ERROR(CheckRequest(
      request, {.vocabulary_size = model_.info().vocabulary_size, .context_max = context_max_}));
  auto live = std::make_unique<LiveRequest>(std::move(request), sink);
  const Request& taken = live->request;
  const std::vector<base::Hash256> chain = PromptChain(taken);
  for (uint32_t index = 0; index < taken.samples; ++index) {
    auto& sample = live->samples.emplace_back(
        std::make_unique<engine::Sample>(*live, index, tokenizer_, taken.sampling.stop));
    sample->sequence.length = live->prompt_tokens();
    sample->sequence.length_max = live->prompt_tokens() + taken.sampling.tokens_max;
    sample->sequence.tokens = taken.prompt.data();
    sample->sequence.chain = chain;
  }
  live->unfinished = taken.samples;
  live->arrival = clock_.Now();
  return Enqueue(std::move(live));
}

std::vector<base::Hash256> Engine::PromptChain(const Request& request) const {
  if (tree_ == nullptr) return {};
  const std::span<const TokenId> prompt(request.prompt);
  const uint32_t page_tokens = pool_->layout().page_tokens;
  std::vector<base::Hash256> chain;
  chain.reserve(prompt.size() / page_tokens + 1);
  chain.push_back(kvcache::ChainRoot(request.isolation, identity_, pool_->layout()));
  while (chain.size() <= prompt.size() / page_tokens) {
    const size_t page = chain.size() - 1;
    chain.push_back(
        kvcache::ChainNext(chain.back(), prompt.subspan(page * page_tokens, page_tokens)));
  }
  return chain;
}

base::Status Engine::Enqueue(std::unique_ptr<LiveRequest> live) {
  const uint64_t id = static_cast<uint64_t>(live->request.id);
  const uint32_t samples = live->request.samples;
  const base::Instant arrival = live->arrival;
  std::lock_guard lock(registry_mutex_);
  if (draining_) return Refuse(base::Code::kUnavailable, "the server is stopping; try another one");
  if (registry_.contains(id)) {
    return base::InvalidArgument("id", fmt::format("request id {} is in use", id));
  }
  if (waiting_ + samples > options_.waiting_max) {
    return Refuse(base::Code::kOverloaded,
                  fmt::format("{} answers wait already, of {} that may; try again later", waiting_,
                              options_.waiting_max));
  }
  if (registry_.empty()) last_progress_ns_.store(arrival.ns, std::memory_order_relaxed);
  registry_.emplace(id, live.get());
  waiting_ += samples;
  counters_.requests.fetch_add(1, std::memory_order_relaxed);
  CHECK(arrivals_.Push(std::move(live))) << "as many requests as waiting samples fit the queue";
  return base::OkStatus();
}

base::Status Engine::Refuse(base::Code code, std::string message) {
  counters_.requests_refused.fetch_add(1, std::memory_order_relaxed);
  return base::Status(code, std::move(message)).WithRetryAfterMs(options_.retry_after_ms);
}

void Engine::Cancel(RequestId id) {
  std::lock_guard lock(registry_mutex_);
  const auto place = registry_.find(static_cast<uint64_t>(id));
  if (place == registry_.end()) return;
  place->second->cancelled.store(true, std::memory_order_relaxed);
  cancel_pending_.store(true, std::memory_order_release);
}

void Engine::Drain(base::Instant deadline) {
  {
    std::lock_guard lock(registry_mutex_);
    draining_ = true;
    const int64_t earlier = std::min(drain_deadline_ns_.load(), deadline.ns);
    drain_deadline_ns_.store(earlier, std::memory_order_release);
  }
  arrivals_.Close();
  std::lock_guard lock(thread_mutex_);
  if (thread_.joinable()) {
    thread_.Join();
  } else {
    while (Step()) {
    }
  }
}

void Engine::Stop() { Drain(base::Instant{INT64_MIN}); }

EngineStats Engine::stats() const { return counters_.Read(pool_->total()); }

void Engine::CheckPages() const {
  std::vector<uint32_t> references(pool_->total(), 0);
  for (const Sequence* sequence : scheduler_.running()) {
    CHECK(sequence->pages.size() >= pool_->layout().PagesFor(sequence->computed));
    for (size_t place = 0; place < sequence->pages.size(); ++place) {
      const kvcache::PageId page = sequence->pages[place];
      ++references[kvcache::Index(page)];
      CHECK(sequence->page_data[place] == pool_->Data(page).data());
      CHECK(tree_ == nullptr || tree_->IsStored(page) == (place < sequence->sealed));
    }
  }
  for (const Sequence* sequence : scheduler_.waiting()) CHECK(sequence->pages.empty());
  uint32_t free = 0;
  for (uint32_t page = 0; page < pool_->total(); ++page) {
    const bool stored = tree_ != nullptr && tree_->IsStored(kvcache::PageId{page});
    CHECK(pool_->references(kvcache::PageId{page}) == references[page] + stored) << "page " << page;
    free += references[page] + stored == 0;
  }
  CHECK(free == pool_->free());
  if (tree_ != nullptr) tree_->CheckInvariants();
}

base::Instant Engine::LastProgress() const {
  return {last_progress_ns_.load(std::memory_order_relaxed)};
}

bool Engine::Healthy() const {
  std::lock_guard lock(registry_mutex_);
  if (draining_) return false;
  return registry_.empty() || clock_.Now() - LastProgress() <= options_.watchdog;
}

}  // namespace plumb::engine
