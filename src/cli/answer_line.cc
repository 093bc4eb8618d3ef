// cli/answer_line.cc
// The three kinds of line, behind cli/answer_line.h.
#include "cli/answer_line.h"

#include <fmt/format.h>

#include <span>

#include "api/chat_prompt.h"
#include "api/chat_writer.h"
#include "api/json_writer.h"
#include "api/logprob_json.h"

namespace plumb::cli {
namespace {

using api::JsonWriter;

void WriteHead(JsonWriter& json, const LineHead& head) {
  json.BeginObject().Key("index").Uint(head.index);
  if (!head.id_json.empty()) json.Key("id").Raw(head.id_json);
}

void WriteUsage(JsonWriter& json, const LineAnswer& answer) {
  const uint64_t prompt = answer.prompt.size();
  json.Key("usage").BeginObject().Key("prompt_tokens").Uint(prompt);
  json.Key("completion_tokens").Uint(answer.completion_tokens);
  json.Key("total_tokens").Uint(prompt + answer.completion_tokens).EndObject();
}

// The first token has none.
void WritePromptLogprobs(JsonWriter& json, const LineAnswer& answer,
                         const text::Tokenizer& tokenizer) {
  std::string list;
  JsonWriter writer(list);
  api::WriteLogprobList(writer, answer.prompt_logprobs, tokenizer, api::kLineLogprobs);
  list.insert(1, answer.prompt_logprobs.empty() ? "null" : "null,");
  json.Key("prompt_logprobs").Raw(list);
}

void WriteIds(JsonWriter& json, std::span<const base::TokenId> tokens) {
  json.BeginArray();
  for (const base::TokenId token : tokens) json.Uint(base::Index(token));
  json.EndArray();
}

std::string PromptText(const LineRequest& line, const text::Tokenizer& tokenizer) {
  if (const auto* text = std::get_if<std::string>(&line.prompt)) return *text;
  std::string text;
  for (const base::TokenId token : std::get<std::vector<base::TokenId>>(line.prompt)) {
    const std::string_view bytes = tokenizer.TokenBytes(token);
    text += bytes.empty() ? tokenizer.TokenName(token) : bytes;
  }
  return text;
}

// As in the chat API, with ids that depend on the line's place alone.
void WriteCalls(JsonWriter& json, const LineHead& head, size_t sample_index,
                std::span<const text::ToolCall> calls) {
  json.Key("tool_calls").BeginArray();
  for (size_t i = 0; i < calls.size(); ++i) {
    json.BeginObject().Key("id").String(fmt::format("call_{}_{}_{}", head.index, sample_index, i));
    json.Key("type").String("function").Key("function").BeginObject();
    json.Key("name").String(calls[i].name).Key("arguments").String(calls[i].arguments);
    json.EndObject().EndObject();
  }
  json.EndArray();
}

// Into the object that is open: the sample with that index.
void WriteSample(JsonWriter& json, const LineHead& head, const LineRequest& line,
                 const LineAnswer& answer, size_t index, const text::Tokenizer& tokenizer) {
  const SampleAnswer& sample = answer.samples[index];
  if (line.has_prompt()) {
    json.Key("text").String(line.echo ? PromptText(line, tokenizer) + sample.text : sample.text);
  } else {
    json.Key("text").String(sample.parts.content);
    if (!sample.parts.reasoning.empty()) {
      json.Key("reasoning_content").String(sample.parts.reasoning);
    }
    if (!sample.parts.calls.empty()) WriteCalls(json, head, index, sample.parts.calls);
  }
  json.Key("finish_reason");
  json.String(sample.called ? "tool_calls" : api::FinishReasonName(sample.finish.reason));
}
void WriteLogprobs(JsonWriter& json, const LineRequest& line, const SampleAnswer& sample,
                   const text::Tokenizer& tokenizer) {
  if (!line.chat.sampling.logprobs) return;
  api::WriteLogprobList(json.Key("logprobs"), sample.logprobs, tokenizer, api::kLineLogprobs);
}

void WriteTop(JsonWriter& json, std::span<const engine::TokenLogprob> logprobs) {
  json.Key("top_logprobs").BeginArray();
  for (const engine::TokenLogprob& entry : logprobs) {
    json.BeginArray();
    for (const engine::TopLogprob& top : entry.top) {
      json.BeginObject().Key("token_id").Uint(base::Index(top.token));
      json.Key("logprob").Float(api::JsonLogprob(top.logprob)).EndObject();
    }
    json.EndArray();
  }
  json.EndArray();
}

void WriteRolloutSample(JsonWriter& json, const LineAnswer& answer, uint32_t index) {
  const SampleAnswer& sample = answer.samples[index];
  json.BeginObject().Key("sample").Uint(index);
  json.Key("seed").Int(static_cast<int64_t>(answer.seeds[index / engine::kSamplesMax]));
  json.Key("seed_index").Uint(index % engine::kSamplesMax);
  WriteIds(json.Key("token_ids"), sample.tokens);
  json.Key("logprobs").BeginArray();
  for (const engine::TokenLogprob& entry : sample.logprobs) {
    json.Float(api::JsonLogprob(entry.logprob));
  }
  json.EndArray();
  const bool with_top = !sample.logprobs.empty() && !sample.logprobs.front().top.empty();
  if (with_top) WriteTop(json, sample.logprobs);
  json.Key("text").String(sample.text);
  json.Key("finish_reason").String(api::FinishReasonName(sample.finish.reason)).EndObject();
}

}  // namespace

void ReadParts(const text::ChatFormat& format, const text::ChatPrompt& shape,
               SampleAnswer& sample) {
  const auto parser = format.NewParser(shape);
  const bool by_model = api::EndedByModel(sample.finish, shape.stops);
  std::vector<text::AnswerDelta> deltas;
  parser->Push(sample.text, deltas);
  parser->Finish(by_model, deltas);
  for (const text::AnswerDelta& delta : deltas) sample.parts.Add(delta);
  sample.called = by_model && !sample.parts.calls.empty();
}

std::string AnswerLine(const LineHead& head, const LineRequest& line, const LineAnswer& answer,
                       const text::Tokenizer& tokenizer) {
  std::string out;
  JsonWriter json(out);
  WriteHead(json, head);
  if (line.samples == 1) {
    WriteSample(json, head, line, answer, 0, tokenizer);
  } else {
    json.Key("choices").BeginArray();
    for (size_t i = 0; i < answer.samples.size(); ++i) {
      json.BeginObject().Key("index").Uint(i);
      WriteSample(json, head, line, answer, i, tokenizer);
      WriteLogprobs(json, line, answer.samples[i], tokenizer);
      json.EndObject();
    }
    json.EndArray();
  }
  WriteUsage(json, answer);
  json.Key("seed").Int(static_cast<int64_t>(answer.seeds.front()));
  if (line.samples == 1) WriteLogprobs(json, line, answer.samples.front(), tokenizer);
  if (line.prompt_logprobs) WritePromptLogprobs(json, answer, tokenizer);
  json.Key("key").String(head.key).EndObject();
  return out + "\n";
}

std::string RolloutLine(const LineHead& head, const LineAnswer& answer, const WeightsName& weights,
                        const text::Tokenizer& tokenizer) {
  std::string out;
  JsonWriter json(out);
  WriteHead(json, head);
  WriteIds(json.Key("prompt_token_ids"), answer.prompt);
  if (!answer.prompt_logprobs.empty()) WritePromptLogprobs(json, answer, tokenizer);
  json.Key("samples").BeginArray();
  for (uint32_t i = 0; i < answer.samples.size(); ++i) WriteRolloutSample(json, answer, i);
  json.EndArray();
  json.Key("weights").BeginObject().Key("content_sha256").String(weights.content_sha256);
  json.Key("numerics_id").String(weights.numerics_id);
  json.Key("system_fingerprint").String(weights.fingerprint).EndObject();
  WriteUsage(json, answer);
  json.Key("key").String(head.key).EndObject();
  return out + "\n";
}

std::string ErrorLine(const LineHead& head, const base::Status& status) {
  std::string out;
  JsonWriter json(out);
  WriteHead(json, head);
  json.Key("error").BeginObject();
  json.Key("message").String(fmt::format("line {}: {}", head.index + 1, status.message()));
  json.Key("param").StringOrNull(status.field()).Key("code").StringOrNull(status.reason());
  json.EndObject().Key("key").String(head.key).EndObject();
  return out + "\n";
}

}  // namespace plumb::cli
