// api/completion_writer.cc
// See completion_writer.h.
#include "api/completion_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "api/chat_writer.h"
#include "api/json_writer.h"
#include "base/check.h"
#include "net/sse.h"

namespace plumb::api {

using engine::TokenLogprob;
using text::AnswerDelta;

namespace {

std::string TextOf(const SampleAnswer& answer) {
  std::string text;
  for (const AnswerDelta& part : answer.parts) {
    CHECK(part.kind == AnswerDelta::Kind::kContent) << "a completion is plain text";
    text += part.text;
  }
  return text;
}

// So that short answers have no advantage; of no tokens the best there is.
double MeanLogprob(const SampleAnswer& answer) {
  double sum = 0;
  for (const TokenLogprob& logprob : answer.logprobs) sum += logprob.logprob;
  return answer.logprobs.empty() ? 0 : sum / static_cast<double>(answer.logprobs.size());
}

}  // namespace

CompletionWriter::CompletionWriter(AnswerHead head, CompletionShape shape,
                                   std::vector<EchoedPrompt> prompts,
                                   const text::Tokenizer& tokenizer)
    : head_(std::move(head)),
      shape_(shape),
      prompts_(std::move(prompts)),
      tokenizer_(tokenizer),
      id_(fmt::format("cmpl-{:016x}", head_.number)),
      prompt_logprobs_(prompts_.size()) {
  CHECK(shape_.choices >= 1 && shape_.choices <= shape_.samples) << shape_.choices;
}

void CompletionWriter::Begin(std::string_view system_fingerprint) {
  fingerprint_ = system_fingerprint;
}

void CompletionWriter::PromptLogprobs(uint32_t prompt, std::span<const TokenLogprob> logprobs) {
  if (!ShowsPrompt()) return;
  auto& all = prompt_logprobs_.at(prompt);
  all.insert(all.end(), logprobs.begin(), logprobs.end());
}

AnswerOffsets CompletionWriter::OffsetsOf(uint32_t prompt) const {
  return {tokenizer_, shape_.echo ? CountCharacters(prompts_[prompt].text) : 0};
}

void CompletionWriter::AddPromptLogprobs(uint32_t prompt, LegacyLogprobs& columns) const {
  const EchoedPrompt& echoed = prompts_[prompt];
  const std::vector<TokenLogprob>& logprobs = prompt_logprobs_[prompt];
  CHECK(logprobs.size() + 1 == echoed.tokens.size())
      << logprobs.size() << " of " << echoed.tokens.size() << " tokens";
  const auto offsets = PromptOffsets(echoed.tokens, echoed.text, tokenizer_);
  columns.AddFirst(echoed.tokens.front(), offsets.front());
  for (size_t i = 0; i < logprobs.size(); ++i) columns.Add(logprobs[i], offsets[i + 1]);
}

std::string CompletionWriter::LogprobsJson(std::span<const TokenLogprob> logprobs,
                                           AnswerOffsets& offsets) const {
  LegacyLogprobs columns(tokenizer_);
  for (const TokenLogprob& logprob : logprobs) columns.Add(logprob, offsets.Next(logprob.token));
  return columns.Json();
}

// The one token of an empty answer was cut off, whatever it was.
std::string_view CompletionWriter::ReasonOf(const SampleEnd& end) const {
  return FinishReasonName(shape_.empty ? engine::FinishReason::kLength : end.reason);
}

AnswerUsage CompletionWriter::Shown(AnswerUsage usage) const {
  if (shape_.empty) usage.completion_tokens = 0;
  return usage;
}

void CompletionWriter::WriteHead(JsonWriter& json) const {
  json.BeginObject().Key("id").String(id_).Key("object").String("text_completion");
  json.Key("created").Int(head_.created).Key("model").String(head_.model);
  json.Key("system_fingerprint").String(fingerprint_);
}

std::vector<uint32_t> CompletionWriter::Choose(std::span<const SampleAnswer> samples) const {
  std::vector<uint32_t> order(samples.size());
  std::iota(order.begin(), order.end(), 0u);
  if (shape_.choices == shape_.samples) return order;
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    const auto mean_a = MeanLogprob(samples[a]);
    const auto mean_b = MeanLogprob(samples[b]);
    return mean_a != mean_b ? mean_a > mean_b : a < b;
  });
  order.resize(shape_.choices);
  return order;
}

std::string CompletionWriter::Whole(std::span<const SampleAnswer> samples,
                                    const AnswerUsage& usage) {
  CHECK(samples.size() == prompts_.size() * shape_.samples) << samples.size();
  std::string out;
  JsonWriter json(out);
  WriteHead(json);
  json.Key("choices").BeginArray();
  uint32_t index = 0;
  for (uint32_t prompt = 0; prompt < prompts_.size(); ++prompt) {
    const auto own = samples.subspan(size_t{prompt} * shape_.samples, shape_.samples);
    for (const uint32_t chosen : Choose(own)) {
      const SampleAnswer& answer = own[chosen];
      const std::string prefix = shape_.echo ? prompts_[prompt].text : "";
      json.BeginObject().Key("text").String(prefix + (shape_.empty ? "" : TextOf(answer)));
      json.Key("index").Uint(index++).Key("logprobs");
      if (shape_.logprobs) {
        LegacyLogprobs columns(tokenizer_);
        if (shape_.echo) AddPromptLogprobs(prompt, columns);
        AnswerOffsets offsets = OffsetsOf(prompt);
        for (const TokenLogprob& logprob : answer.logprobs)
          if (!shape_.empty) columns.Add(logprob, offsets.Next(logprob.token));
        json.Raw(columns.Json());
      } else {
        json.Null();
      }
      json.Key("finish_reason").String(ReasonOf(answer.end)).EndObject();
    }
  }
  json.EndArray().Key("usage");
  WriteTokenUsage(json, Shown(usage));
  WriteSeed(json, head_);
  json.EndObject();
  return out;
}

void CompletionWriter::StartStream(std::string&) {
  for (uint32_t prompt = 0; prompt < prompts_.size(); ++prompt) {
    for (uint32_t i = 0; i < shape_.samples; ++i) {
      streamed_.push_back(
          {.offsets = OffsetsOf(prompt), .begun = false, .text = {}, .logprobs = {}, .end = {}});
    }
  }
}

void CompletionWriter::Chunk(uint32_t sample, std::string_view text, std::string_view logprobs,
                             std::string_view finish_reason, std::string& out) {
  std::string chunk;
  JsonWriter json(chunk);
  WriteHead(json);
  json.Key("choices").BeginArray().BeginObject().Key("text").String(text);
  json.Key("index").Uint(sample).Key("logprobs").Raw(logprobs);
  json.Key("finish_reason").Raw(finish_reason).EndObject().EndArray();
  if (shape_.usage_in_chunks) json.Key("usage").Null();
  if (!std::exchange(streamed_[sample].begun, true)) WriteSeed(json, head_);
  json.EndObject();
  net::AppendSse(out, /*event=*/"", chunk);
}

void CompletionWriter::Release(uint32_t sample, std::string& out) {
  Streamed& streamed = streamed_[sample];
  const uint32_t prompt = sample / shape_.samples;
  const EchoedPrompt& echoed = prompts_[prompt];
  if (ShowsPrompt() && prompt_logprobs_[prompt].size() + 1 < echoed.tokens.size()) return;
  if (shape_.echo && !streamed.begun) {
    LegacyLogprobs columns(tokenizer_);
    if (shape_.logprobs) AddPromptLogprobs(prompt, columns);
    Chunk(sample, echoed.text, shape_.logprobs ? columns.Json() : "null", "null", out);
  }
  if (!streamed.text.empty() || !streamed.logprobs.empty()) {
    const bool with = shape_.logprobs && !streamed.logprobs.empty();
    Chunk(sample, streamed.text, with ? LogprobsJson(streamed.logprobs, streamed.offsets) : "null",
          "null", out);
    streamed.text.clear();
    streamed.logprobs.clear();
  }
  if (!streamed.end) return;
  Chunk(sample, "", "null", fmt::format("\"{}\"", ReasonOf(*streamed.end)), out);
  streamed.end.reset();
}

void CompletionWriter::Part(uint32_t sample, const AnswerDelta& part,
                            std::span<const TokenLogprob> logprobs, std::string& out) {
  CHECK(part.kind == AnswerDelta::Kind::kContent) << "a completion is plain text";
  if (shape_.empty) return;
  Streamed& streamed = streamed_[sample];
  streamed.text += part.text;
  if (shape_.logprobs)
    streamed.logprobs.insert(streamed.logprobs.end(), logprobs.begin(), logprobs.end());
  Release(sample, out);
}

void CompletionWriter::EndSample(uint32_t sample, const SampleEnd& end, std::string& out) {
  streamed_[sample].end = end;
  Release(sample, out);
}

void CompletionWriter::EndStream(const AnswerUsage& usage, std::string& out) {
  for (uint32_t i = 0; i < streamed_.size(); ++i) Release(i, out);
  if (shape_.usage_in_chunks) {
    std::string last;
    JsonWriter json(last);
    WriteHead(json);
    json.Key("choices").BeginArray().EndArray().Key("usage");
    WriteTokenUsage(json, Shown(usage));
    json.EndObject();
    net::AppendSse(out, /*event=*/"", last);
  }
  net::AppendSse(out, /*event=*/"", "[DONE]");
}

void CompletionWriter::Fail(const ApiError& error, std::string& out) {
  net::AppendSse(out, /*event=*/"", ErrorJson(error));
}

}  // namespace plumb::api
