// api/chat_response.cc
// See chat_response.h.
#include "api/chat_response.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/json_writer.h"
#include "api/logprob_json.h"
#include "base/check.h"

namespace plumb::api {

using engine::TokenLogprob;
using Kind = text::AnswerDelta::Kind;

namespace {

// {"content":[...],"refusal":null}
void WriteLogprobs(JsonWriter& json, std::span<const TokenLogprob> logprobs,
                   const text::Tokenizer& tokenizer) {
  WriteLogprobList(json.BeginObject().Key("content"), logprobs, tokenizer, kChatLogprobs);
  json.Key("refusal").Null().EndObject();
}

void WriteUsage(JsonWriter& json, const ChatUsage& usage) {
  json.BeginObject().Key("prompt_tokens").Uint(usage.prompt_tokens);
  json.Key("completion_tokens").Uint(usage.completion_tokens);
  json.Key("total_tokens").Uint(usage.prompt_tokens + usage.completion_tokens);
  json.Key("prompt_tokens_details").BeginObject();
  json.Key("cached_tokens").Uint(usage.cached_tokens).EndObject().EndObject();
}

// The members that come before "choices".
void WriteHead(JsonWriter& json, const ChatHead& head, std::string_view object) {
  json.Key("id").String(head.id).Key("object").String(object);
  json.Key("created").Int(head.created).Key("model").String(head.model);
  json.Key("system_fingerprint").String(head.system_fingerprint);
}

// The same however an answer is given. `answer_id`: ChatHead::id.
std::string CallId(std::string_view answer_id, uint64_t sample_index, uint64_t call_index) {
  const std::string_view number = answer_id.substr(answer_id.find('-') + 1);
  return fmt::format("call_{}_{}_{}", number, sample_index, call_index);
}

void WriteCall(JsonWriter& json, const std::string& id, const ChatCall& call) {
  json.Key("id").String(id).Key("type").String("function").Key("function").BeginObject();
  json.Key("name").String(call.name).Key("arguments").String(call.arguments).EndObject();
}

void WriteMessage(JsonWriter& json, const ChatHead& head, const ChatChoice& choice,
                  size_t sample_index) {
  json.BeginObject().Key("role").String("assistant").Key("content");
  if (choice.content.empty() && !choice.calls.empty()) {
    json.Null();
  } else {
    json.String(choice.content);
  }
  if (!choice.reasoning.empty()) json.Key("reasoning_content").String(choice.reasoning);
  if (!choice.calls.empty()) {
    json.Key("tool_calls").BeginArray();
    for (size_t i = 0; i < choice.calls.size(); ++i) {
      json.BeginObject();
      WriteCall(json, CallId(head.id, sample_index, i), choice.calls[i]);
      json.EndObject();
    }
    json.EndArray();
  }
  json.Key("refusal").Null().EndObject();
}

void WriteSeed(JsonWriter& json, const ChatHead& head) {
  json.Key("plumb").BeginObject().Key("seed").Int(static_cast<int64_t>(head.seed)).EndObject();
}

}  // namespace

void ChatChoice::Add(const text::AnswerDelta& delta) {
  switch (delta.kind) {
    case Kind::kReasoning:
      reasoning += delta.text;
      return;
    case Kind::kContent:
      content += delta.text;
      return;
    case Kind::kCallBegin:
      calls.push_back({delta.text, ""});
      return;
    case Kind::kArguments:
      CHECK(!calls.empty()) << "arguments before a call";
      calls.back().arguments += delta.text;
      return;
  }
}

std::string_view FinishReasonName(engine::FinishReason reason) {
  CHECK(reason == engine::FinishReason::kStop || reason == engine::FinishReason::kLength)
      << "not the end of an answer: " << static_cast<int>(reason);
  return reason == engine::FinishReason::kStop ? "stop" : "length";
}

std::string ChatJson(const ChatHead& head, std::span<const ChatChoice> choices,
                     const ChatUsage& usage, const text::Tokenizer& tokenizer) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  WriteHead(json, head, "chat.completion");
  json.Key("choices").BeginArray();
  for (size_t i = 0; i < choices.size(); ++i) {
    json.BeginObject().Key("index").Uint(i).Key("message");
    WriteMessage(json, head, choices[i], i);
    json.Key("logprobs");
    if (head.logprobs) {
      WriteLogprobs(json, choices[i].logprobs, tokenizer);
    } else {
      json.Null();
    }
    json.Key("finish_reason").String(choices[i].finish_reason).EndObject();
  }
  json.EndArray().Key("usage");
  WriteUsage(json, usage);
  WriteSeed(json, head);
  json.EndObject();
  return out;
}

ChatChunks::ChatChunks(const ChatHead& head, const text::Tokenizer& tokenizer)
    : tokenizer_(tokenizer), logprobs_(head.logprobs), id_(head.id) {
  JsonWriter json(prefix_);
  json.BeginObject();
  WriteHead(json, head, "chat.completion.chunk");
  usage_prefix_ = prefix_ + ",\"choices\":[],\"usage\":";
  prefix_ += ",\"choices\":[{\"index\":";
  suffix_ = head.usage_in_chunks ? "}],\"usage\":null" : "}]";
  JsonWriter seed(seed_);
  WriteSeed(seed, head);
}

std::string ChatChunks::Choice(uint32_t sample_index, std::string_view delta,
                               std::string_view logprobs, std::string_view finish_reason) const {
  std::string out;
  out.reserve(prefix_.size() + delta.size() + logprobs.size() + suffix_.size() + 96);
  out += prefix_;
  out += std::to_string(sample_index);
  out += ",\"delta\":";
  out += delta;
  out += ",\"logprobs\":";
  out += logprobs;
  out += ",\"finish_reason\":";
  out += finish_reason;
  out += suffix_;
  return out;
}

std::string ChatChunks::Role(uint32_t sample_index) const {
  std::string out =
      Choice(sample_index, R"({"role":"assistant","content":"","refusal":null})", "null", "null");
  return out + ',' + seed_ + '}';
}

std::string ChatChunks::Content(uint32_t sample_index, std::string_view text,
                                std::span<const TokenLogprob> logprobs) const {
  std::string delta;
  JsonWriter json(delta);
  json.BeginObject().Key("content").String(text).EndObject();
  return WithLogprobs(sample_index, delta, logprobs);
}

std::string ChatChunks::Delta(uint32_t sample_index, const text::AnswerDelta& delta, uint32_t calls,
                              std::span<const TokenLogprob> logprobs) const {
  if (delta.kind == Kind::kContent) return Content(sample_index, delta.text, logprobs);
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  if (delta.kind == Kind::kReasoning) {
    json.Key("reasoning_content").String(delta.text);
  } else {
    CHECK(calls > 0) << "arguments before a call";
    json.Key("tool_calls").BeginArray().BeginObject().Key("index").Uint(calls - 1);
    if (delta.kind == Kind::kCallBegin) {
      WriteCall(json, CallId(id_, sample_index, calls - 1), {delta.text, ""});
    } else {
      json.Key("function").BeginObject().Key("arguments").String(delta.text).EndObject();
    }
    json.EndObject().EndArray();
  }
  json.EndObject();
  return WithLogprobs(sample_index, out, logprobs);
}

std::string ChatChunks::WithLogprobs(uint32_t sample_index, std::string_view delta,
                                     std::span<const TokenLogprob> logprobs) const {
  std::string logprobs_json = "null";
  if (logprobs_ && !logprobs.empty()) {
    logprobs_json.clear();
    JsonWriter logprobs_writer(logprobs_json);
    WriteLogprobs(logprobs_writer, logprobs, tokenizer_);
  }
  return Choice(sample_index, delta, logprobs_json, "null") + '}';
}

std::string ChatChunks::Finish(uint32_t sample_index, std::string_view reason) const {
  return Choice(sample_index, "{}", "null", '"' + std::string(reason) + '"') + '}';
}

std::string ChatChunks::Usage(const ChatUsage& usage) const {
  std::string out = usage_prefix_;
  JsonWriter json(out);
  WriteUsage(json, usage);
  return out + '}';
}

}  // namespace plumb::api
