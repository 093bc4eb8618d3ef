// api/chat_sink.cc
// See chat_sink.h.
#include "api/chat_sink.h"

#include <algorithm>
#include <iterator>

#include "api/chat_prompt.h"
#include "base/check.h"
#include "net/sse.h"

namespace plumb::api {

using base::Status;
using engine::FinishReason;
using engine::TokenEvent;
using text::AnswerDelta;

ChatSink::ChatSink(engine::RequestId id, std::string request_id,
                   std::unique_ptr<net::HttpExchange> exchange, engine::Generator& generator,
                   const text::Tokenizer& tokenizer, const base::Clock& clock, Done done)
    : id_(id),
      exchange_(std::move(exchange)),
      generator_(generator),
      tokenizer_(tokenizer),
      clock_(clock),
      done_(std::move(done)),
      start_(clock.Now()) {
  summary_.request_id = std::move(request_id);
}

void ChatSink::OnClientLeft(std::function<void()> callback) {
  exchange_->OnClose(std::move(callback));
}

void ChatSink::Fail(const Status& status) {
  CHECK(samples_.empty() || samples_finished_ == 0) << "Fail is for before Submit";
  const ApiError error = ErrorFromStatus(status);
  summary_.http_status = error.http_status;
  summary_.failure = status;
  Answer(ErrorResponse(error));
  TellDone();
}

void ChatSink::Begin(ChatAnswer answer) {
  CHECK(samples_.empty() && answer.samples > 0) << "samples " << answer.samples;
  CHECK(answer.fingerprints != nullptr && answer.parsers.size() == answer.samples);
  answer_ = std::move(answer);
  samples_.resize(answer_.samples);
  for (size_t i = 0; i < samples_.size(); ++i) samples_[i].parser = std::move(answer_.parsers[i]);
}

void ChatSink::OnEvent(TokenEvent event) {
  CHECK(event.sample_index < samples_.size()) << "sample " << event.sample_index;
  CHECK(!samples_[event.sample_index].finished) << "an event after the sample's end";
  if (event.weights_version != 0) weights_version_ = event.weights_version;
  if (!event.tokens.empty() && summary_.to_first_token.ns == 0)
    summary_.to_first_token = clock_.Now() - start_;
  if (!ended_) OnText(event);
  if (event.finish) OnFinish(event.sample_index, *event.finish);
}

void ChatSink::OnText(const TokenEvent& event) {
  std::vector<AnswerDelta> deltas;
  samples_[event.sample_index].parser->Push(event.text, deltas);
  const bool logprobs = answer_.head.logprobs && !event.logprobs.empty();
  Publish(event.sample_index, deltas,
          logprobs ? std::span(event.logprobs) : std::span<const engine::TokenLogprob>());
}

void ChatSink::Publish(uint32_t sample_index, std::span<const AnswerDelta> deltas,
                       std::span<const engine::TokenLogprob> logprobs) {
  if (deltas.empty() && logprobs.empty()) return;
  Sample& sample = samples_[sample_index];
  if (answer_.stream) {
    StartStream();
    if (deltas.empty()) Send(chunks_->Content(sample_index, "", logprobs));
  }
  for (const AnswerDelta& delta : deltas) {
    if (delta.kind == AnswerDelta::Kind::kCallBegin) ++sample.calls;
    if (answer_.stream) {
      Send(chunks_->Delta(sample_index, delta, sample.calls, logprobs));
      logprobs = {};
    } else {
      sample.choice.Add(delta);
    }
  }
  if (answer_.stream) return;
  sample.choice.logprobs.insert(sample.choice.logprobs.end(), logprobs.begin(), logprobs.end());
}

std::string_view ChatSink::EndSample(uint32_t sample_index, const engine::Finish& finish) {
  Sample& sample = samples_[sample_index];
  const bool by_model = EndedByModel(finish, answer_.prompt_stops);
  std::vector<AnswerDelta> deltas;
  sample.parser->Finish(by_model, deltas);
  Publish(sample_index, deltas, {});
  return by_model && sample.calls > 0 ? "tool_calls" : FinishReasonName(finish.reason);
}

void ChatSink::OnFinish(uint32_t sample_index, const engine::Finish& finish) {
  Sample& sample = samples_[sample_index];
  sample.finished = true;
  ++samples_finished_;
  summary_.usage.prompt_tokens = finish.prompt_tokens;
  summary_.usage.completion_tokens += finish.completion_tokens;
  if (sample_index == 0) summary_.usage.cached_tokens = finish.cached_tokens;

  if (finish.reason == FinishReason::kError) {
    Abort(finish.status.ok() ? base::Internal("the generator gave no reason") : finish.status);
  } else if (finish.reason == FinishReason::kCancelled) {
    Abort(Status(base::Code::kUnavailable, "the answer was cut off: the server is stopping")
              .WithReason("server_stopping"));
  } else if (!ended_) {
    sample.choice.finish_reason = EndSample(sample_index, finish);
    if (answer_.stream) {
      StartStream();
      Send(chunks_->Finish(sample_index, sample.choice.finish_reason));
    }
  }
  if (samples_finished_ < samples_.size()) return;
  if (!ended_) Complete();
  TellDone();  // may destroy this object
}

void ChatSink::StartStream() {
  if (stream_started_) return;
  stream_started_ = true;
  answer_.head.system_fingerprint = answer_.fingerprints->Of(weights_version_);
  chunks_.emplace(answer_.head, tokenizer_);
  exchange_->StartStream(200, {{"Content-Type", "text/event-stream; charset=utf-8"},
                               {"Cache-Control", "no-cache"},
                               {"X-Accel-Buffering", "no"},
                               {"X-Request-Id", summary_.request_id}});
  for (uint32_t i = 0; i < samples_.size(); ++i) Send(chunks_->Role(i));
}

// One server-sent event. The client being gone is no news here: OnClientLeft has told the owner.
void ChatSink::Send(std::string_view json) {
  std::string frame;
  net::AppendSse(frame, /*event=*/"", json);
  if (!exchange_->Write(frame)) client_left_ = true;
}

void ChatSink::Abort(const Status& status) {
  if (ended_) return;
  const ApiError error = ErrorFromStatus(status);
  summary_.http_status = error.http_status;
  summary_.failure = status;
  if (stream_started_) {
    Send(ErrorJson(error));
    exchange_->EndStream();
    ended_ = true;
  } else {
    Answer(ErrorResponse(error));
  }
  if (samples_finished_ < samples_.size()) generator_.Cancel(id_);
}

void ChatSink::Complete() {
  if (answer_.stream) {
    if (answer_.head.usage_in_chunks) Send(chunks_->Usage(summary_.usage));
    Send("[DONE]");
    exchange_->EndStream();
    ended_ = true;
    return;
  }
  answer_.head.system_fingerprint = answer_.fingerprints->Of(weights_version_);
  std::vector<ChatChoice> choices;
  choices.reserve(samples_.size());
  for (Sample& sample : samples_) choices.push_back(std::move(sample.choice));
  Answer(JsonResponse(ChatJson(answer_.head, choices, summary_.usage, tokenizer_)));
}

void ChatSink::Answer(net::HttpResponse response) {
  CHECK(!ended_ && !stream_started_) << "answered twice";
  ended_ = true;
  client_left_ = client_left_ || exchange_->closed();
  response.headers.Add("X-Request-Id", summary_.request_id);
  exchange_->Respond(std::move(response));
}

void ChatSink::TellDone() {
  summary_.total = clock_.Now() - start_;
  if (client_left_) {
    summary_.failure = Status(base::Code::kCancelled, "the client left");
    summary_.http_status = 499;
  }
  const Done done = done_;  // both outlive this object
  const Summary summary = std::move(summary_);
  done(summary);
}

}  // namespace plumb::api
