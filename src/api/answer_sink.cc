// api/answer_sink.cc
// See answer_sink.h.
#include "api/answer_sink.h"

#include <algorithm>
#include <utility>

#include "api/chat_prompt.h"
#include "base/check.h"
#include "net/sse.h"

namespace plumb::api {

using base::Status;
using engine::FinishReason;
using engine::TokenEvent;
using text::AnswerDelta;

namespace {
constexpr std::string_view kEventStream = "text/event-stream; charset=utf-8";
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kKeepAlive = "keep-alive";  // DeepSeek's word for it
}  // namespace

// The sink as the generator sees it: one for each prompt.
struct AnswerSink::Prompt final : engine::EventSink {
  Prompt(AnswerSink& owner, uint32_t prompt) : sink(owner), number(prompt) {}
  void OnEvent(TokenEvent event) override {
    sink.Take(number, event);  // may destroy this object
  }

  AnswerSink& sink;
  const uint32_t number;
};

AnswerSink::AnswerSink(engine::RequestId id, std::string request_id, const Dialect& dialect,
                       std::unique_ptr<net::HttpExchange> exchange, engine::Generator& generator,
                       const base::Clock& clock, Done done)
    : id_(id),
      dialect_(dialect),
      exchange_(std::move(exchange)),
      generator_(generator),
      clock_(clock),
      done_(std::move(done)),
      start_(clock_.Now()),
      last_sent_ns_(start_.ns) {
  summary_.request_id = std::move(request_id);
  summary_.route = dialect.route();
}

AnswerSink::~AnswerSink() = default;

void AnswerSink::OnClientLeft(std::function<void()> callback) {
  exchange_->OnClose(std::move(callback));
}

// The generator is called with the lock let go, since it may wait for an event to be taken.
template <typename Work>
void AnswerSink::Locked(Work work) {
  engine::Generator& generator = generator_;
  const auto id = static_cast<uint64_t>(id_);
  std::optional<Summary> summary;
  uint32_t cancels = 0;
  std::function<void()> prompt_ended;
  {
    base::TryMutexLock lock(mutex_);
    work();
    if (samples_finished_ == samples_.size()) {
      summary = Conclude();
    } else {
      cancels = std::exchange(cancels_, 0);
      if (std::exchange(sample_ended_, false)) prompt_ended = plan_.prompt_ended;
    }
  }
  if (summary) {
    // Nobody else calls by now: every sample has ended, or none was begun.
    const Done done = done_;  // outlives this object
    return done(*summary);
  }
  for (uint32_t i = 0; i < cancels; ++i) generator.Cancel(engine::RequestId{id + i});
  if (prompt_ended) prompt_ended();
}

void AnswerSink::Take(uint32_t prompt, const TokenEvent& event) {
  Locked([&]() HOLDS(mutex_) { OnEvent(prompt, event); });
}

Status AnswerSink::Enter(tenancy::Limiter& limiter, tenancy::Reservation held) {
  base::TryMutexLock lock(mutex_);
  CHECK(limiter_ == nullptr && samples_.empty()) << "Enter is for before everything else";
  limiter_ = &limiter;
  tenancy::Limiter::Decision decision = limiter.Enter(held);
  if (decision.status.ok()) held_ = held;
  limit_headers_ = dialect_.LimitHeaders(decision.report, clock_.UnixSeconds());
  return std::move(decision.status);
}

Status AnswerSink::Reserve(uint64_t tokens) {
  base::TryMutexLock lock(mutex_);
  CHECK(held_ && samples_.empty()) << "Reserve is for between Enter and Begin";
  tenancy::Limiter::Decision decision = limiter_->Reserve(*held_, tokens);
  limit_headers_ = dialect_.LimitHeaders(decision.report, clock_.UnixSeconds());
  return std::move(decision.status);
}

void AnswerSink::CopyTo(std::unique_ptr<AnswerCopy> copy) {
  base::TryMutexLock lock(mutex_);
  CHECK(copy_ == nullptr && samples_.empty()) << "CopyTo is for before Begin";
  copy_ = std::move(copy);
}

void AnswerSink::Settle() {
  if (!held_) return;
  const base::Code code = summary_.failure.code();
  const bool no_room = code == base::Code::kOverloaded || code == base::Code::kUnavailable;
  const uint64_t tokens = summary_.usage.prompt_tokens + summary_.usage.completion_tokens;
  limiter_->Settle(*held_, {.request = tokens > 0 || !no_room, .tokens = tokens});
  held_.reset();
}

void AnswerSink::Fail(const Status& status) {
  Locked([&]() HOLDS(mutex_) {
    CHECK(samples_finished_ == 0 && !writing_) << "Fail is for before Submit";
    samples_.clear();
    Abort(status);
  });
}

void AnswerSink::AnswerNow(net::HttpResponse response) {
  Locked([&]() HOLDS(mutex_) {
    CHECK(samples_.empty() && !writing_) << "AnswerNow is instead of Begin";
    Settle();
    copy_.reset();
    Answer(std::move(response));
  });
}

void AnswerSink::NotSubmitted(uint32_t first, const Status& status) {
  if (first == 0) return Fail(status);
  Locked([&]() HOLDS(mutex_) {
    for (size_t i = size_t{first} * plan_.samples; i < samples_.size(); ++i) {
      samples_[i].finished = true;
      ++samples_finished_;
    }
    Abort(status);
  });
}

bool AnswerSink::given_up() {
  base::TryMutexLock lock(mutex_);
  return ended_;
}

void AnswerSink::Begin(AnswerPlan plan) {
  base::TryMutexLock lock(mutex_);
  const size_t count = size_t{plan.prompts} * plan.samples;
  CHECK(samples_.empty() && count > 0 && plan.prompts <= kPromptsMax) << "samples " << count;
  CHECK(plan.fingerprints != nullptr && plan.writer != nullptr && plan.parsers.size() == count);
  plan_ = std::move(plan);
  samples_.resize(count);
  for (size_t i = 0; i < count; ++i) samples_[i].parser = std::move(plan_.parsers[i]);
  for (uint32_t i = 0; i < plan_.prompts; ++i)
    prompts_.push_back(std::make_unique<Prompt>(*this, i));
  if (plan_.detached) Respond(Kept(plan_.writer->Accepted()));
}

engine::EventSink& AnswerSink::prompt(uint32_t number) {
  base::TryMutexLock lock(mutex_);
  CHECK(number < prompts_.size()) << "prompt " << number;
  return *prompts_[number];
}

void AnswerSink::OnEvent(uint32_t prompt, const TokenEvent& event) {
  CHECK(event.sample_index < plan_.samples) << "sample " << event.sample_index;
  const uint32_t sample_index = prompt * plan_.samples + event.sample_index;
  Sample& sample = samples_[sample_index];
  CHECK(!sample.finished) << "an event after the sample's end";
  if (event.weights_version != 0) weights_version_ = event.weights_version;
  if (!event.tokens.empty() && summary_.to_first_token.ns == 0)
    summary_.to_first_token = clock_.Now() - start_;
  CountReasoning(sample_index, event);
  if (!ended_) {
    BeginWriting();
    if (!event.prompt_logprobs.empty()) plan_.writer->PromptLogprobs(prompt, event.prompt_logprobs);
    if (!event.embedding.empty()) plan_.writer->Embedding(prompt, event.embedding);
    std::vector<AnswerDelta> parts;
    sample.parser->Push(event.text, parts);
    const bool logprobs = plan_.logprobs && !event.logprobs.empty();
    Publish(sample_index, parts,
            logprobs ? std::span(event.logprobs) : std::span<const engine::TokenLogprob>());
  }
  if (event.finish) OnFinish(prompt, sample_index, *event.finish);
}

// Token by token, since an event may bring several.
void AnswerSink::CountReasoning(uint32_t sample_index, const TokenEvent& event) {
  if (plan_.meters.empty()) return;
  text::ReasoningMeter& meter = plan_.meters[sample_index];
  const uint32_t before = meter.tokens();
  const auto ends = plan_.tokenizer->end_tokens();
  for (const base::TokenId token : event.tokens) {
    if (!std::ranges::binary_search(ends, token)) meter.Push(plan_.tokenizer->TokenBytes(token));
  }
  // Tokens that turn out to be of its end are taken off again.
  summary_.usage.reasoning_tokens += uint64_t{meter.tokens()} - before;
}

void AnswerSink::Publish(uint32_t sample_index, std::span<const AnswerDelta> parts,
                         std::span<const engine::TokenLogprob> logprobs) {
  if (parts.empty() && logprobs.empty()) return;
  if (plan_.stream) {
    StartStream();
    const AnswerDelta nothing{AnswerDelta::Kind::kContent, ""};
    if (parts.empty()) parts = std::span(&nothing, 1);
    for (const AnswerDelta& part : parts) {
      plan_.writer->Part(sample_index, part, logprobs, frames_);
      logprobs = {};
    }
    return Send();
  }
  SampleAnswer& answer = samples_[sample_index].answer;
  for (const AnswerDelta& part : parts) text::AppendDelta(answer.parts, part.kind, part.text);
  answer.logprobs.insert(answer.logprobs.end(), logprobs.begin(), logprobs.end());
}

void AnswerSink::EndSample(uint32_t sample_index, const engine::Finish& finish) {
  Sample& sample = samples_[sample_index];
  SampleEnd& end = sample.answer.end;
  end = {.reason = finish.reason,
         .by_model = EndedByModel(finish, plan_.prompt_stops),
         .stop = finish.stop,
         .completion_tokens = finish.completion_tokens};
  if (end.by_model) end.stop.reset();
  std::vector<AnswerDelta> parts;
  sample.parser->Finish(end.by_model, parts);
  Publish(sample_index, parts, {});
  if (!plan_.stream) return;
  StartStream();
  plan_.writer->EndSample(sample_index, end, frames_);
  Send();
}

void AnswerSink::OnFinish(uint32_t prompt, uint32_t sample_index, const engine::Finish& finish) {
  samples_[sample_index].finished = true;
  ++samples_finished_;
  sample_ended_ = true;
  // Of a prompt that was given up before its turn nothing was computed.
  const bool good = finish.reason == FinishReason::kStop || finish.reason == FinishReason::kLength;
  const bool begun = good || finish.weights_version != 0;
  const bool first = sample_index == prompt * plan_.samples;
  if (first && begun) summary_.usage.prompt_tokens += finish.prompt_tokens;
  if (first) {
    summary_.usage.cached_tokens += finish.cached_tokens;
    for (size_t i = 0; i < finish.stored_tokens.size(); ++i)
      summary_.usage.stored_tokens[i] += finish.stored_tokens[i];
  }
  summary_.usage.completion_tokens += finish.completion_tokens;

  if (finish.reason == FinishReason::kError) {
    Abort(finish.status.ok() ? base::Internal("the generator gave no reason") : finish.status);
  } else if (finish.reason == FinishReason::kCancelled && withdrawn_.load()) {
    Abort(Status(base::Code::kCancelled, "the answer was cancelled by who asked for it"));
  } else if (finish.reason == FinishReason::kCancelled) {
    Abort(Status(base::Code::kUnavailable, "the answer was cut off: the server is stopping")
              .WithReason("server_stopping"));
  } else if (!ended_) {
    EndSample(sample_index, finish);
  }
  if (samples_finished_ == samples_.size() && !ended_) Complete();
}

void AnswerSink::BeginWriting() {
  if (writing_) return;
  writing_ = true;
  plan_.writer->Begin(plan_.fingerprints->Of(weights_version_));
}

void AnswerSink::OpenStream() {
  if (stream_open_) return;
  stream_open_ = true;
  net::HttpHeaders headers{{"Content-Type", std::string(plan_.stream ? kEventStream : kJson)},
                           {"Cache-Control", "no-cache"},
                           {"X-Accel-Buffering", "no"}};
  AddRequestId(headers, summary_.request_id);
  for (const auto& [name, value] : limit_headers_.fields()) headers.Add(name, value);
  exchange_->StartStream(200, std::move(headers));
}

void AnswerSink::StartStream() {
  if (stream_started_) return;
  stream_started_ = true;
  OpenStream();
  plan_.writer->StartStream(frames_);
}

void AnswerSink::KeepAlive(const SilenceLimits& silence) {
  const base::Duration silent = clock_.Now() - base::Instant{last_sent_ns_.load()};
  const auto is_due = [&](base::Duration limit) { return limit.ns > 0 && silent >= limit; };
  if (!is_due(silence.stream) && !is_due(silence.whole)) return;
  if (!mutex_.TryLock()) return;  // whoever has it is about to send
  base::TryMutexLock lock(mutex_, base::kLocked);
  if (ended_ || samples_.empty() || plan_.detached) return;
  if (!is_due(plan_.stream ? silence.stream : silence.whole)) return;
  if (!plan_.stream && !plan_.may_begin_early) return;
  OpenStream();
  std::string line = "\n";
  if (plan_.stream) {
    line.clear();
    net::AppendSseComment(line, kKeepAlive);
  }
  Write(line);
}

// The client being gone is no news here: OnClientLeft has told the owner.
void AnswerSink::Write(std::string_view bytes) {
  last_sent_ns_.store(clock_.Now().ns);
  if (!exchange_->Write(bytes)) client_left_ = true;
}

void AnswerSink::Send() {
  if (!frames_.empty()) Write(frames_);
  if (copy_ != nullptr) copy_->Append(frames_);
  frames_.clear();
}

void AnswerSink::Abort(const Status& status) {
  if (ended_) return;
  ApiError error = ErrorFromStatus(status);
  error.request_id = summary_.request_id;
  summary_.http_status = error.http_status;
  summary_.failure = status;
  if (samples_finished_ == samples_.size()) Settle();
  copy_.reset();
  if (stream_open_ && plan_.stream) {
    BeginWriting();
    StartStream();
    plan_.writer->Fail(error, frames_);
    Send();
    exchange_->EndStream();
    ended_ = true;
  } else {
    if (plan_.detached) plan_.writer->Fail(error, frames_);
    net::HttpResponse answer = dialect_.ErrorAnswer(error);
    summary_.http_status = answer.status;  // a dialect may have one of its own
    Answer(std::move(answer));
  }
  cancels_ = plan_.prompts;
}

void AnswerSink::Complete() {
  Settle();
  if (plan_.stream) {
    plan_.writer->EndStream(summary_.usage, frames_);
    Send();
    Keep(kEventStream);
    exchange_->EndStream();
    ended_ = true;
    return;
  }
  std::vector<SampleAnswer> answers;
  answers.reserve(samples_.size());
  for (Sample& sample : samples_) answers.push_back(std::move(sample.answer));
  Answer(Kept(plan_.writer->Whole(answers, summary_.usage)));
}

net::HttpResponse AnswerSink::Kept(std::string body) {
  if (copy_ != nullptr) copy_->Append(body);
  Keep(kJson);
  return JsonResponse(std::move(body));
}

void AnswerSink::Keep(std::string_view content_type) {
  if (copy_ != nullptr) copy_->Keep(content_type);
  copy_.reset();
}

void AnswerSink::Answer(net::HttpResponse response) {
  CHECK(!ended_ && !(stream_open_ && plan_.stream)) << "answered twice";
  ended_ = true;
  if (plan_.detached) return;  // its client has long been answered
  client_left_ = client_left_ || exchange_->closed();
  if (stream_open_) return exchange_->EndStreamWith(response.body);
  Respond(std::move(response));
}

void AnswerSink::Respond(net::HttpResponse response) {
  AddRequestId(response.headers, summary_.request_id);
  for (const auto& [name, value] : limit_headers_.fields()) response.headers.Add(name, value);
  exchange_->Respond(std::move(response));
}

AnswerSink::Summary AnswerSink::Conclude() {
  Settle();
  summary_.total = clock_.Now() - start_;
  if (client_left_) {
    summary_.failure = Status(base::Code::kCancelled, "the client left");
    summary_.http_status = 499;
  }
  return std::move(summary_);
}

}  // namespace plumb::api
