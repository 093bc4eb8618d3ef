// api/chat_completions.cc
// See chat_completions.h.
#include "api/chat_completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/chat_prompt.h"
#include "base/check.h"
#include "base/random.h"

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

}  // namespace

ChatCompletions::ChatCompletions(ChatOptions options, Parts parts)
    : options_(std::move(options)),
      parts_(parts),
      fingerprints_(options_.system_fingerprint),
      live_(parts.generator, options_.live_max),
      queue_(options_.queue_max) {
  CHECK(!options_.model_names.empty() && options_.context_max > 0 && options_.workers > 0);
  for (uint32_t i = 0; i < options_.workers; ++i)
    workers_.emplace_back(fmt::format("prompt-{}", i), [this] { RunWorker(); });
}

ChatCompletions::~ChatCompletions() { Stop(); }

void ChatCompletions::Stop() {
  queue_.Close();
  for (base::Thread& worker : workers_)
    if (worker.joinable()) worker.Join();
  live_.CancelAll();
  const bool confirmed = live_.WaitEmpty(kStopTimeMax);
  CHECK(confirmed) << "the generator holds requests after Cancel: " << live_.size();
}

void ChatCompletions::Handle(net::HttpRequest request, std::string request_id,
                             const base::Hash256& isolation,
                             std::unique_ptr<net::HttpExchange> exchange) {
  const engine::RequestId id = live_.NextId();
  auto done = [this, id](const ChatSink::Summary& summary) { Ended(id, summary); };
  auto sink = std::make_unique<ChatSink>(id, std::move(request_id), std::move(exchange),
                                         parts_.generator, parts_.tokenizer, parts_.clock, done);
  ChatSink& borrowed = *sink;
  if (!live_.Add(id, sink)) {
    sink->Fail(NoRoom("too many requests are running; try again", options_.retry_after_ms));
    return;
  }
  borrowed.OnClientLeft([this, id] { live_.ClientLeft(id); });
  if (Enqueue(ReadJob{.id = id, .isolation = isolation, .body = std::move(request.body)})) return;
  borrowed.Fail(NoRoom("too many requests are waiting; try again", options_.retry_after_ms));
}

bool ChatCompletions::Enqueue(ReadJob job) {
  const uint64_t bytes = job.body.size();
  const bool fits = queue_bytes_.fetch_add(bytes) + bytes <= options_.queue_bytes_max;
  if (fits && queue_.Push(Job(std::move(job)))) return true;
  queue_bytes_.fetch_sub(bytes);
  return false;
}

void ChatCompletions::RunWorker() {
  while (std::optional<Job> job = queue_.Pop()) {
    if (const auto* log = std::get_if<LogJob>(&*job)) {
      Log(log->summary);
    } else {
      Read(std::get<ReadJob>(*job));
    }
  }
}

void ChatCompletions::Read(const ReadJob& job) {
  queue_bytes_.fetch_sub(job.body.size());
  ChatSink* sink = live_.Find(job.id);
  CHECK(sink != nullptr) << "only its own end removes a request";
  if (live_.client_left(job.id)) {
    sink->Fail(Status(base::Code::kCancelled, "the client left"));
  } else if (queue_.closed()) {
    sink->Fail(Status(base::Code::kUnavailable, "the server is stopping"));
  } else {
    Serve(job, *sink);
  }
}

// `sink` is gone as soon as Fail or Submit has returned.
void ChatCompletions::Serve(const ReadJob& job, ChatSink& sink) {
  Result<ChatRequest> parsed = ParseChatRequest(job.body, options_.limits);
  if (!parsed.ok()) return sink.Fail(parsed.status());
  ChatRequest& request = *parsed;
  if (Status status = CheckModel(request.model); !status.ok()) return sink.Fail(status);
  auto prompt = parts_.chat_format.Encode(request.input, options_.context_max);
  if (!prompt.ok()) return sink.Fail(prompt.status());
  if (Status status = CheckSize(request, prompt->tokens.size()); !status.ok())
    return sink.Fail(status);
  if (!request.seed_given) request.sampling.seed = base::EntropySeed() & kDrawnSeedMask;
  ChatAnswer answer = AnswerFor(request, *prompt);
  Result<engine::Request> built = Build(job, request, *std::move(prompt));
  if (!built.ok()) return sink.Fail(built.status());
  sink.Begin(std::move(answer));

  if (Status status = parts_.generator.Submit(*std::move(built), sink); !status.ok())
    return sink.Fail(status);
  live_.Submitted(job.id);
}

ChatAnswer ChatCompletions::AnswerFor(const ChatRequest& request,
                                      const text::ChatPrompt& prompt) const {
  ChatAnswer answer;
  answer.samples = request.samples;
  answer.stream = request.stream;
  answer.fingerprints = &fingerprints_;
  answer.head = {.id = fmt::format("chatcmpl-{:016x}", base::EntropySeed()),
                 .model = request.model,
                 .system_fingerprint = "",
                 .created = parts_.clock.UnixSeconds(),
                 .seed = request.sampling.seed,
                 .logprobs = request.sampling.logprobs,
                 .usage_in_chunks = request.include_usage};
  for (uint32_t i = 0; i < request.samples; ++i)
    answer.parsers.push_back(parts_.chat_format.NewParser(prompt));
  answer.prompt_stops = prompt.stops;
  return answer;
}

Result<engine::Request> ChatCompletions::Build(const ReadJob& job, const ChatRequest& request,
                                               text::ChatPrompt prompt) const {
  engine::Request built{};
  RETURN_IF_ERROR(ApplyPrompt(request, std::move(prompt), parts_.grammars, built));
  built.id = job.id;
  built.sampling.tokens_max = *request.tokens_max;
  built.samples = request.samples;
  built.priority = request.priority.value_or(engine::Priority::kDefault);
  built.tenant = job.isolation.prefix();  // who shares computed pages is one tenant
  built.speculation = request.speculation;
  built.isolation = job.isolation;
  const uint32_t deadline_ms = request.deadline_ms.value_or(options_.limits.deadline_ms_max);
  built.deadline = parts_.clock.Now() + base::Milliseconds(deadline_ms);
  return built;
}

// Thread: the generator's, a worker's or an I/O thread's. A line that finds no room is dropped.
void ChatCompletions::Ended(engine::RequestId id, const ChatSink::Summary& summary) {
  parts_.metrics.CountRequest(kRoute, summary.http_status);
  parts_.metrics.request_seconds.Observe(summary.total);
  if (parts_.logger.enabled(telemetry::LogLevel::kInfo)) queue_.Push(Job(LogJob{summary}));
  live_.Remove(id);
}

void ChatCompletions::Log(const ChatSink::Summary& summary) {
  const bool ours = summary.http_status >= 500;
  const auto level = ours ? telemetry::LogLevel::kWarn : telemetry::LogLevel::kInfo;
  const std::string error = summary.failure.ok() ? "" : summary.failure.ToString();
  parts_.logger.Log(level, "chat",
                    {{"request_id", std::string_view(summary.request_id)},
                     {"status", int64_t{summary.http_status}},
                     {"prompt_tokens", summary.usage.prompt_tokens},
                     {"cached_tokens", summary.usage.cached_tokens},
                     {"completion_tokens", summary.usage.completion_tokens},
                     {"first_token_ms", summary.to_first_token.ms()},
                     {"total_ms", summary.total.ms()},
                     {"error", std::string_view(error)}});
}

Status ChatCompletions::CheckModel(const std::string& name) const {
  const auto& names = options_.model_names;
  if (std::find(names.begin(), names.end(), name) != names.end()) return base::OkStatus();
  return Status(base::Code::kNotFound,
                "this model is not served here; GET /v1/models lists those that are")
      .WithField("model")
      .WithReason("model_not_found");
}

Status ChatCompletions::CheckSize(ChatRequest& request, size_t prompt_tokens) const {
  const uint64_t context = options_.context_max;
  const uint64_t answer_min = request.tokens_max.value_or(1);
  if (prompt_tokens + answer_min > context) {
    return InvalidArgument(
               "messages",
               fmt::format("this model's maximum context length is {} tokens, but {} were asked "
                           "for ({} in the messages, {} in the answer); shorten the messages or "
                           "lower max_tokens",
                           context, prompt_tokens + answer_min, prompt_tokens, answer_min))
        .WithReason("context_length_exceeded");
  }
  if (!request.tokens_max) request.tokens_max = static_cast<uint32_t>(context - prompt_tokens);
  const uint64_t logprobs =
      uint64_t{request.samples} * *request.tokens_max * (1 + request.sampling.top_logprobs);
  if (request.sampling.logprobs && !request.stream && logprobs > options_.whole_logprobs_max) {
    return InvalidArgument("logprobs",
                           fmt::format("the answer could hold {} log-probabilities; at most {} are "
                                       "given at once: stream it, or lower max_tokens, n or "
                                       "top_logprobs",
                                       logprobs, options_.whole_logprobs_max));
  }
  return base::OkStatus();
}

}  // namespace plumb::api
