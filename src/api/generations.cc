// api/generations.cc
// See generations.h.
#include "api/generations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/chat_prompt.h"
#include "base/check.h"
#include "base/random.h"
#include "text/prompt_place.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

// Seeds that we draw are exact in every JSON reader, JavaScript's doubles included.
constexpr uint64_t kDrawnSeedMask = (1ull << 53) - 1;
// How long the generator may take to confirm a cancellation; it promises one step.
constexpr base::Duration kStopTimeMax = base::Seconds(60);

Status NoRoom(std::string message, uint32_t retry_after_ms) {
  return Status(base::Code::kOverloaded, std::move(message)).WithRetryAfterMs(retry_after_ms);
}

// Of a text that has more tokens than the context whatever they are.
Status TooLong(const Dialect& dialect) {
  return InvalidArgument(std::string(dialect.prompt_field()),
                         "the prompt is longer than this model's context; shorten it")
      .WithReason("context_length_exceeded");
}

std::string TooLongMessage(const Dialect& dialect, uint64_t prompt_tokens, uint64_t answer_min,
                           uint64_t context_max) {
  std::string message = dialect.TooLongMessage(prompt_tokens, context_max);
  if (!message.empty()) return message;
  return fmt::format(
      "this model's maximum context length is {} tokens, but {} were asked for ({} in the {}, and "
      "{} at least in the answer); shorten the {}",
      context_max, prompt_tokens + answer_min, prompt_tokens, dialect.prompt_field(), answer_min,
      dialect.prompt_field());
}

std::vector<ReadPrompt> Given(const std::vector<text::ChatPrompt>& prompts) {
  std::vector<ReadPrompt> given;
  for (const text::ChatPrompt& prompt : prompts) given.push_back({prompt.tokens});
  return given;
}

uint64_t DrawSeed(const BodyOrigin& origin) {
  if (origin.idempotency_key.empty()) return base::EntropySeed() & kDrawnSeedMask;
  return SeedOf(IdempotencyId(origin.isolation, origin.idempotency_key)) & kDrawnSeedMask;
}

}  // namespace

Generations::Generations(GenerationOptions options, Parts parts)
    : options_(std::move(options)),
      parts_(parts),
      fingerprints_(options_.system_fingerprint),
      token_cache_(parts.tokenizer, options_.token_cache_bytes_max),
      idempotency_(options_.idempotency, parts_.clock),
      live_(parts.generator, options_.live_max),
      feeds_(parts.generator, live_, options_.live_max),
      queue_(options_.queue_max) {
  CHECK(!options_.model_names.empty() && options_.context_max > 0 && options_.workers > 0);
  for (uint32_t i = 0; i < options_.workers; ++i)
    workers_.emplace_back(fmt::format("prompt-{}", i), [this] { RunWorker(); });
}

Generations::~Generations() { Stop(); }

void Generations::Stop() {
  queue_.Close();
  for (base::Thread& worker : workers_)
    if (worker.joinable()) worker.Join();
  live_.CancelAll();
  const bool confirmed = live_.WaitEmpty(kStopTimeMax);
  CHECK(confirmed) << "the generator holds requests after Cancel: " << live_.size();
  feeds_.Stop();
}

void Generations::Handle(const Dialect& dialect, Arrival arrival) {
  const engine::RequestId id = live_.NextId();
  auto done = [this, id](const AnswerSink::Summary& summary) { Ended(id, summary); };
  arrival.origin.id = id;
  auto sink = std::make_unique<AnswerSink>(id, arrival.origin.request_id, dialect,
                                           std::move(arrival.exchange), parts_.generator,
                                           parts_.clock, done);
  AnswerSink& borrowed = *sink;
  if (parts_.limiter != nullptr) {
    // Before anything is spent on the request.
    const Status entered =
        sink->Enter(*parts_.limiter, {.caller = arrival.caller, .batch = arrival.batch});
    if (!entered.ok()) return sink->Fail(entered);
  }
  if (!live_.Add(id, sink)) {
    sink->Fail(NoRoom("too many requests are running; try again", options_.retry_after_ms));
    return;
  }
  borrowed.OnClientLeft([this, id] { live_.ClientLeft(id); });
  ReadJob job{.id = id,
              .dialect = &dialect,
              .origin = std::move(arrival.origin),
              .body = std::move(arrival.body),
              .caller = arrival.caller,
              .batch = arrival.batch};
  if (Enqueue(std::move(job))) return;
  borrowed.Fail(NoRoom("too many requests are waiting; try again", options_.retry_after_ms));
}

void Generations::KeepAlive() { live_.KeepAlive(options_.keep_alive); }

void Generations::CopyMetrics() {
  const text::TokenCache::Stats tokens = token_cache_.stats();
  parts_.metrics.token_cache_hit_bytes.SetTotal(tokens.found_bytes);
  parts_.metrics.token_cache_miss_bytes.SetTotal(tokens.encoded_bytes);
  parts_.metrics.token_cache_bytes.Set(static_cast<int64_t>(tokens.held_bytes));
  parts_.metrics.token_cache_entries.Set(static_cast<int64_t>(tokens.entries));
}

bool Generations::Enqueue(ReadJob job) {
  const uint64_t bytes = job.body.size();
  const bool fits = queue_bytes_.fetch_add(bytes) + bytes <= options_.queue_bytes_max;
  if (fits && queue_.Push(Job(std::move(job)))) return true;
  queue_bytes_.fetch_sub(bytes);
  return false;
}

void Generations::RunWorker() {
  while (std::optional<Job> job = queue_.Pop()) {
    if (const auto* log = std::get_if<LogJob>(&*job)) {
      Log(log->summary);
    } else {
      Read(std::get<ReadJob>(*job));
    }
  }
}

void Generations::Read(const ReadJob& job) {
  queue_bytes_.fetch_sub(job.body.size());
  AnswerSink* sink = live_.Find(job.id);
  CHECK(sink != nullptr) << "only its own end removes a request";
  if (live_.client_left(job.id)) {
    sink->Fail(Status(base::Code::kCancelled, "the client left"));
  } else if (queue_.closed()) {
    sink->Fail(Status(base::Code::kUnavailable, "the server is stopping"));
  } else {
    Serve(job, *sink);
  }
}

// `sink` is gone as soon as Fail or AnswerNow has returned or the last prompt has been submitted.
void Generations::Serve(const ReadJob& job, AnswerSink& sink) {
  const Result<bool> is_new = IsNew(job, sink);
  if (!is_new.ok()) return sink.Fail(is_new.status());
  if (!*is_new) return;
  Result<ReadBody> read = job.dialect->Read(job.body, job.origin);
  if (!read.ok()) return sink.Fail(read.status());
  const auto reword = std::move(read->reword);
  const Status status = Answer(job, *std::move(read), sink);
  if (!status.ok()) sink.Fail(reword ? reword(status) : status);
}

Result<bool> Generations::IsNew(const ReadJob& job, AnswerSink& sink) {
  if (job.origin.idempotency_key.empty()) return true;
  const base::Hash256& caller = job.origin.isolation;
  ASSIGN_OR_RETURN(IdempotencyStore::Claim claim,
                   idempotency_.Ask({.caller = caller,
                                     .id = IdempotencyId(caller, job.origin.idempotency_key),
                                     .question = HashOfQuestion(job.dialect->route(), job.body),
                                     .number = static_cast<uint64_t>(job.origin.id)}));
  if (claim.answer) {
    sink.AnswerNow(*std::move(claim.answer));
    return false;
  }
  sink.CopyTo(std::move(claim.copy));
  return true;
}

Status Generations::Reserve(const ReadJob& job, GenerationRequest& request,
                            const std::vector<text::ChatPrompt>& prompts, AnswerSink& sink) const {
  if (parts_.limiter == nullptr) return base::OkStatus();
  uint64_t prompt_tokens = 0;
  for (const text::ChatPrompt& prompt : prompts) prompt_tokens += prompt.tokens.size();
  const uint64_t answers = uint64_t{request.samples} * prompts.size();
  const uint64_t tokens_max = parts_.limiter->tokens_max(job.caller);
  const uint64_t least = prompt_tokens + answers * std::min(1u, *request.tokens_max);
  if (least > tokens_max) {
    return InvalidArgument(
               std::string(job.dialect->prompt_field()),
               fmt::format("the request takes {} tokens at least, {} of them in the {}, but its "
                           "key has {} a minute; shorten the {}",
                           least, prompt_tokens, job.dialect->prompt_field(), tokens_max,
                           job.dialect->prompt_field()))
        .WithReason("rate_limit_too_small");
  }
  const uint64_t room = (tokens_max - prompt_tokens) / answers;
  if (*request.tokens_max > room) {
    request.tokens_max = static_cast<uint32_t>(room);
    request.context_ends = false;
  }
  return sink.Reserve(prompt_tokens + answers * *request.tokens_max);
}

Status Generations::Answer(const ReadJob& job, ReadBody read, AnswerSink& sink) {
  GenerationRequest& request = read.request;
  RETURN_IF_ERROR(CheckModel(request.model));
  if (read.answer) {
    sink.AnswerNow(JsonResponse(*std::move(read.answer)));
    return base::OkStatus();
  }
  ASSIGN_OR_RETURN(std::vector<text::ChatPrompt> prompts, Encode(request, job));
  if (read.count) {
    sink.AnswerNow(JsonResponse(read.count(Given(prompts))));
    return base::OkStatus();
  }
  RETURN_IF_ERROR(CheckSize(request, prompts, *job.dialect));
  RETURN_IF_ERROR(Reserve(job, request, prompts, sink));
  if (!request.seed_given) request.sampling.seed = DrawSeed(job.origin);
  AnswerPlan plan = PlanFor(job.id, read, prompts);
  plan.may_begin_early = !job.batch;  // a line's status says in which file its answer goes
  const std::vector<engine::RetentionHint> hints = HintsFor(request, prompts, job);
  std::vector<engine::Request> built;
  for (text::ChatPrompt& prompt : prompts) {
    ASSIGN_OR_RETURN(engine::Request one,
                     Build(job, request, std::move(prompt), static_cast<uint32_t>(built.size())));
    one.hints = hints;
    built.push_back(std::move(one));
  }
  sink.Begin(std::move(plan));
  Submit(job.id, sink, std::move(built));
  return base::OkStatus();
}

void Generations::Submit(engine::RequestId id, AnswerSink& sink,
                         std::vector<engine::Request> prompts) {
  const auto count = static_cast<uint32_t>(prompts.size());
  live_.Submitting(id, count);
  if (count > kPromptsAtOnce) return feeds_.Start(id, sink, std::move(prompts));
  std::vector<engine::EventSink*> sinks;
  for (uint32_t i = 0; i < count; ++i) sinks.push_back(&sink.prompt(i));
  for (uint32_t i = 0; i < count; ++i) {
    const Status status = parts_.generator.Submit(std::move(prompts[i]), *sinks[i]);
    if (!status.ok()) return sink.NotSubmitted(i, status);
  }
  live_.Submitted(id);
}

AnswerPlan Generations::PlanFor(engine::RequestId id, const ReadBody& read,
                                const std::vector<text::ChatPrompt>& prompts) {
  const GenerationRequest& request = read.request;
  AnswerPlan plan;
  plan.prompts = static_cast<uint32_t>(prompts.size());
  plan.samples = request.samples;
  plan.stream = request.stream;
  plan.detached = read.detached;
  plan.logprobs = request.sampling.logprobs;
  plan.fingerprints = &fingerprints_;
  if (prompts.size() > kPromptsAtOnce) plan.prompt_ended = [this, id] { feeds_.PromptEnded(id); };
  for (const text::ChatPrompt& prompt : prompts) {
    for (uint32_t i = 0; i < request.samples; ++i) {
      plan.parsers.push_back(request.prompts.empty() ? parts_.chat_format.NewParser(prompt)
                                                     : std::make_unique<text::PlainAnswerParser>());
    }
  }
  plan.prompt_stops = prompts.front().stops;
  const text::ChatPrompt& first = prompts.front();
  if (!first.reasoning_ends.empty()) {
    plan.tokenizer = &parts_.tokenizer;
    plan.reasoning_ends = first.reasoning_ends;
    const text::ReasoningMeter meter(first.start, first.may_think, plan.reasoning_ends);
    plan.meters.assign(plan.parsers.size(), meter);
  }
  plan.writer = read.writer({.number = base::EntropySeed(),
                             .model = request.model,
                             .created = parts_.clock.UnixSeconds(),
                             .seed = request.sampling.seed,
                             .logprobs = request.sampling.logprobs,
                             .context_ends = request.context_ends},
                            Given(prompts));
  return plan;
}

Result<std::vector<text::ChatPrompt>> Generations::Encode(const GenerationRequest& request,
                                                          const ReadJob& job) {
  const Dialect& dialect = *job.dialect;
  std::vector<text::ChatPrompt> prompts;
  if (request.prompts.empty()) {
    const text::TokenScope scope{.cache = &token_cache_, .isolation = job.origin.isolation};
    ASSIGN_OR_RETURN(text::ChatPrompt prompt,
                     parts_.chat_format.Encode(request.input, options_.context_max, scope));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  CHECK(request.prompts.size() <= kPromptsMax) << "the dialect let through too many prompts";
  // Documents that are embedded say nothing to the model, whatever they spell.
  const bool embeds = request.pooling != engine::Pooling::kNone;
  const auto control = embeds ? text::ControlTokens::kAsText : text::ControlTokens::kParse;
  for (const RawPrompt& raw : request.prompts) {
    text::ChatPrompt prompt;
    prompt.tokens = raw.tokens;
    if (prompt.tokens.empty()) {
      const uint64_t bytes_max =
          uint64_t{options_.context_max} * std::max(1u, parts_.tokenizer.token_bytes_max());
      if (raw.text.size() > bytes_max) return TooLong(dialect);
      auto tokens = parts_.tokenizer.Encode(raw.text, control, /*add_special=*/true);
      if (!tokens.ok())
        return std::move(tokens).status().WithField(std::string(dialect.prompt_field()));
      prompt.tokens = *std::move(tokens);
    }
    if (prompt.tokens.empty()) {
      return InvalidArgument(std::string(dialect.prompt_field()),
                             "a prompt has at least one token for this model; it has no token "
                             "that begins a text, so an empty prompt cannot be answered");
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

std::vector<engine::RetentionHint> Generations::HintsFor(
    const GenerationRequest& request, const std::vector<text::ChatPrompt>& prompts,
    const ReadJob& job) {
  CHECK(request.cache_marks.empty() || request.prompts.empty()) << "places are of conversations";
  std::vector<engine::RetentionHint> hints;
  for (const CacheMark& mark : request.cache_marks) {
    const text::TokenScope scope{.cache = &token_cache_, .isolation = job.origin.isolation};
    const text::ChatPrompt& prompt = prompts.front();
    const uint32_t tokens = mark.place ? text::TokensBefore(*mark.place, parts_.chat_format,
                                                            request.input, prompt, scope)
                                       : static_cast<uint32_t>(prompt.tokens.size());
    hints.push_back({.tokens = tokens, .time = mark.time});
  }
  return hints;
}

Result<engine::Request> Generations::Build(const ReadJob& job, const GenerationRequest& request,
                                           text::ChatPrompt prompt, uint32_t number) const {
  engine::Request built{};
  RETURN_IF_ERROR(ApplyPrompt(request, std::move(prompt), parts_.grammars, built));
  built.id = engine::RequestId{static_cast<uint64_t>(job.id) + number};
  built.sampling.tokens_max = *request.tokens_max;
  built.samples = request.samples;
  built.prompt_logprobs = request.prompt_logprobs;
  built.pooling = request.pooling;
  built.priority = request.priority.value_or(engine::Priority::kDefault);
  built.tenant = job.origin.isolation.prefix();  // who shares computed pages is one tenant
  built.speculation = request.speculation;
  built.isolation = job.origin.isolation;
  if (job.batch) built.priority = engine::Priority::kBatch;
  const uint32_t deadline_ms = request.deadline_ms.value_or(options_.limits.deadline_ms_max);
  if (!job.batch || request.deadline_ms)  // a batch's own time is its lines' limit
    built.deadline = parts_.clock.Now() + base::Milliseconds(deadline_ms);
  return built;
}

// Thread: the generator's, a worker's or an I/O thread's. A line that finds no room is dropped.
void Generations::Ended(engine::RequestId id, const AnswerSink::Summary& summary) {
  parts_.metrics.CountRequest(summary.route, summary.http_status);
  parts_.metrics.request_seconds.Observe(summary.total);
  if (parts_.logger.enabled(telemetry::LogLevel::kInfo)) queue_.Push(Job(LogJob{summary}));
  live_.Remove(id);
}

void Generations::Log(const AnswerSink::Summary& summary) {
  const bool ours = summary.http_status >= 500;
  const auto level = ours ? telemetry::LogLevel::kWarn : telemetry::LogLevel::kInfo;
  const std::string error = summary.failure.ok() ? "" : summary.failure.ToString();
  parts_.logger.Log(level, "answer",
                    {{"route", summary.route},
                     {"request_id", std::string_view(summary.request_id)},
                     {"status", int64_t{summary.http_status}},
                     {"prompt_tokens", summary.usage.prompt_tokens},
                     {"cached_tokens", summary.usage.cached_tokens},
                     {"completion_tokens", summary.usage.completion_tokens},
                     {"first_token_ms", summary.to_first_token.ms()},
                     {"total_ms", summary.total.ms()},
                     {"error", std::string_view(error)}});
}

// A dialect that must be told a model refuses its absence itself.
Status Generations::CheckModel(const std::string& name) const {
  if (name.empty()) return base::OkStatus();
  const auto& names = options_.model_names;
  if (std::find(names.begin(), names.end(), name) != names.end()) return base::OkStatus();
  return Status(base::Code::kNotFound,
                "this model is not served here; GET /v1/models lists those that are")
      .WithField("model")
      .WithReason("model_not_found");
}

Status Generations::CheckSize(GenerationRequest& request,
                              const std::vector<text::ChatPrompt>& prompts,
                              const Dialect& dialect) const {
  const uint64_t context = options_.context_max;
  uint64_t longest = 0;
  for (const text::ChatPrompt& prompt : prompts)
    longest = std::max<uint64_t>(longest, prompt.tokens.size());
  const uint64_t answer_min = std::min(1u, request.tokens_max.value_or(1));
  if (longest + answer_min > context) {
    return InvalidArgument(std::string(dialect.prompt_field()),
                           TooLongMessage(dialect, longest, answer_min, context))
        .WithReason("context_length_exceeded");
  }
  const auto room = static_cast<uint32_t>(context - longest);
  request.context_ends = request.tokens_max.value_or(UINT32_MAX) > room;
  if (request.context_ends) request.tokens_max = room;
  const uint64_t wide = 1 + request.sampling.top_logprobs;
  uint64_t logprobs = 0;
  if (request.sampling.logprobs && !request.stream)
    logprobs = uint64_t{request.samples} * prompts.size() * *request.tokens_max * wide;
  if (request.prompt_logprobs) {  // kept until they are whole, streamed or not
    for (const text::ChatPrompt& prompt : prompts) logprobs += prompt.tokens.size() * wide;
  }
  if (logprobs > options_.whole_logprobs_max) {
    return InvalidArgument(
        "logprobs", fmt::format("the answer could hold {} log-probabilities; at most {} are "
                                "given at once: stream it, or lower {}, n or "
                                "top_logprobs",
                                logprobs, options_.whole_logprobs_max, dialect.length_field()));
  }
  return base::OkStatus();
}

}  // namespace plumb::api
