// api/chat_writer.cc
// See chat_writer.h.
#include "api/chat_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/logprob_json.h"
#include "base/check.h"
#include "net/sse.h"

namespace plumb::api {

using engine::TokenLogprob;
using text::AnswerDelta;
using Kind = AnswerDelta::Kind;

namespace {

struct Call {
  std::string name;
  std::string text;  // its arguments, or the input of a custom tool
  bool custom = false;
};

bool IsCustom(const ChatShape& shape, const std::string& name) {
  return std::ranges::find(shape.custom_tools, name) != shape.custom_tools.end();
}

std::string InputOf(std::string_view arguments) {
  std::string text;
  CustomInput input;
  input.Push(arguments, text);
  input.Finish(text);
  return text;
}

// A sample's parts, as a message has them.
struct Message {
  Message(const SampleAnswer& answer, const ChatShape& shape) {
    for (const AnswerDelta& part : answer.parts) {
      switch (part.kind) {
        case Kind::kReasoning:
          reasoning += part.text;
          break;
        case Kind::kContent:
          content += part.text;
          break;
        case Kind::kCallBegin:
          calls.push_back({part.text, "", IsCustom(shape, part.text)});
          break;
        case Kind::kArguments:
          CHECK(!calls.empty()) << "arguments before a call";
          calls.back().text += part.text;
          break;
      }
    }
    for (Call& call : calls)
      if (call.custom) call.text = InputOf(call.text);
  }

  std::string reasoning;
  std::string content;
  std::vector<Call> calls;
};

// The same however an answer is given.
std::string CallId(uint64_t answer, uint64_t sample, uint64_t call) {
  return fmt::format("call_{:016x}_{}_{}", answer, sample, call);
}

void WriteCall(JsonWriter& json, const std::string& id, const Call& call) {
  const std::string_view type = call.custom ? "custom" : "function";
  json.Key("id").String(id).Key("type").String(type).Key(type).BeginObject();
  json.Key("name").String(call.name);
  json.Key(call.custom ? "input" : "arguments").String(call.text).EndObject();
}

void WriteMessage(JsonWriter& json, const Message& message, uint64_t answer, size_t sample) {
  json.BeginObject().Key("role").String("assistant").Key("content");
  if (message.content.empty() && !message.calls.empty()) {
    json.Null();
  } else {
    json.String(message.content);
  }
  if (!message.reasoning.empty()) json.Key("reasoning_content").String(message.reasoning);
  if (!message.calls.empty()) {
    json.Key("tool_calls").BeginArray();
    for (size_t i = 0; i < message.calls.size(); ++i) {
      json.BeginObject();
      WriteCall(json, CallId(answer, sample, i), message.calls[i]);
      json.EndObject();
    }
    json.EndArray();
  }
  json.Key("refusal").Null().EndObject();
}

std::string_view ReasonOf(const SampleEnd& end, bool calls) {
  return end.by_model && calls ? "tool_calls" : FinishReasonName(end.reason);
}

}  // namespace

std::string_view FinishReasonName(engine::FinishReason reason) {
  CHECK(reason == engine::FinishReason::kStop || reason == engine::FinishReason::kLength)
      << "not the end of an answer: " << static_cast<int>(reason);
  return reason == engine::FinishReason::kStop ? "stop" : "length";
}

// What was cached, in OpenAI's words and in DeepSeek's, whose clients look for theirs.
void WriteTokenUsage(JsonWriter& json, const AnswerUsage& usage) {
  json.BeginObject().Key("prompt_tokens").Uint(usage.prompt_tokens);
  json.Key("completion_tokens").Uint(usage.completion_tokens);
  json.Key("total_tokens").Uint(usage.prompt_tokens + usage.completion_tokens);
  json.Key("prompt_tokens_details").BeginObject();
  json.Key("cached_tokens").Uint(usage.cached_tokens).EndObject();
  json.Key("completion_tokens_details").BeginObject();
  json.Key("reasoning_tokens").Uint(usage.reasoning_tokens).EndObject();
  json.Key("prompt_cache_hit_tokens").Uint(usage.cached_tokens);
  json.Key("prompt_cache_miss_tokens").Uint(usage.prompt_tokens - usage.cached_tokens).EndObject();
}

void WriteSeed(JsonWriter& json, const AnswerHead& head) {
  json.Key("plumb").BeginObject().Key("seed").Int(static_cast<int64_t>(head.seed)).EndObject();
}

ChatWriter::ChatWriter(AnswerHead head, ChatShape shape, const text::Tokenizer& tokenizer)
    : head_(std::move(head)),
      shape_(std::move(shape)),
      tokenizer_(tokenizer),
      id_(fmt::format("chatcmpl-{:016x}", head_.number)),
      calls_(shape_.samples) {}

void ChatWriter::Begin(std::string_view system_fingerprint) { fingerprint_ = system_fingerprint; }

std::string ChatWriter::LogprobsJson(std::span<const TokenLogprob> logprobs) const {
  std::string out;
  JsonWriter json(out);
  WriteLogprobList(json.BeginObject().Key("content"), logprobs, tokenizer_, kChatLogprobs);
  json.Key("refusal").Null().EndObject();
  return out;
}

std::string ChatWriter::Whole(std::span<const SampleAnswer> samples, const AnswerUsage& usage) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("id").String(id_).Key("object").String("chat.completion");
  json.Key("created").Int(head_.created).Key("model").String(head_.model);
  json.Key("system_fingerprint").String(fingerprint_).Key("choices").BeginArray();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Message message(samples[i], shape_);
    json.BeginObject().Key("index").Uint(i).Key("message");
    WriteMessage(json, message, head_.number, i);
    json.Key("logprobs");
    if (head_.logprobs) {
      json.Raw(LogprobsJson(samples[i].logprobs));
    } else {
      json.Null();
    }
    json.Key("finish_reason").String(ReasonOf(samples[i].end, !message.calls.empty())).EndObject();
  }
  json.EndArray().Key("usage");
  WriteTokenUsage(json, usage);
  WriteSeed(json, head_);
  json.EndObject();
  return out;
}

// The constant parts of chunks are written once; the first chunk of a sample has role and seed.
void ChatWriter::StartStream(std::string& out) {
  JsonWriter json(prefix_);
  json.BeginObject().Key("id").String(id_).Key("object").String("chat.completion.chunk");
  json.Key("created").Int(head_.created).Key("model").String(head_.model);
  json.Key("system_fingerprint").String(fingerprint_);
  prefix_ += ",\"choices\":[";
  suffix_ = shape_.usage_in_chunks ? "}],\"usage\":null" : "}]";
  std::string seed;
  JsonWriter seed_json(seed);
  WriteSeed(seed_json, head_);
  for (uint32_t i = 0; i < calls_.size(); ++i)
    Chunk(i, R"({"role":"assistant","content":"","refusal":null})", "null", "null", ',' + seed,
          out);
}

void ChatWriter::Chunk(uint32_t sample, std::string_view delta, std::string_view logprobs,
                       std::string_view finish_reason, std::string_view more,
                       std::string& out) const {
  std::string json;
  json.reserve(prefix_.size() + delta.size() + logprobs.size() + suffix_.size() + 128);
  json.append(prefix_).append("{\"index\":").append(std::to_string(sample));
  json.append(",\"delta\":").append(delta).append(",\"logprobs\":").append(logprobs);
  json.append(",\"finish_reason\":").append(finish_reason).append(suffix_).append(more);
  json += '}';
  net::AppendSse(out, /*event=*/"", json);
}

std::string ChatWriter::BeginCall(uint32_t sample, const std::string& name) {
  Calls& calls = calls_[sample];
  calls.custom = IsCustom(shape_, name);
  calls.input = CustomInput();
  const uint32_t index = calls.begun++;
  std::string delta;
  JsonWriter json(delta);
  json.BeginObject().Key("tool_calls").BeginArray().BeginObject().Key("index").Uint(index);
  WriteCall(json, CallId(head_.number, sample, index), {name, "", calls.custom});
  json.EndObject().EndArray().EndObject();
  return delta;
}

std::string ChatWriter::MoreOfCall(uint32_t sample, std::string_view text) const {
  const Calls& calls = calls_[sample];
  CHECK(calls.begun > 0) << "arguments before a call";
  std::string delta;
  JsonWriter json(delta);
  json.BeginObject().Key("tool_calls").BeginArray().BeginObject();
  json.Key("index").Uint(calls.begun - 1);
  json.Key(calls.custom ? "custom" : "function").BeginObject();
  json.Key(calls.custom ? "input" : "arguments").String(text).EndObject();
  json.EndObject().EndArray().EndObject();
  return delta;
}

void ChatWriter::CloseCall(uint32_t sample, std::string& out) {
  Calls& calls = calls_[sample];
  if (!calls.custom) return;
  std::string rest;
  calls.input.Finish(rest);
  if (!rest.empty()) Chunk(sample, MoreOfCall(sample, rest), "null", "null", "", out);
  calls.custom = false;
}

void ChatWriter::Part(uint32_t sample, const AnswerDelta& part,
                      std::span<const TokenLogprob> logprobs, std::string& out) {
  if (part.kind != Kind::kArguments) CloseCall(sample, out);
  std::string delta;
  if (part.kind == Kind::kCallBegin) {
    delta = BeginCall(sample, part.text);
  } else if (part.kind == Kind::kArguments) {
    std::string input;
    Calls& calls = calls_[sample];
    if (calls.custom) calls.input.Push(part.text, input);
    // Of {"input": "..."} the braces and names are no input.
    if (calls.custom && input.empty() && logprobs.empty()) return;
    delta = MoreOfCall(sample, calls.custom ? std::string_view(input) : part.text);
  } else {
    JsonWriter json(delta);
    json.BeginObject();
    json.Key(part.kind == Kind::kContent ? "content" : "reasoning_content").String(part.text);
    json.EndObject();
  }
  const bool with = head_.logprobs && !logprobs.empty();
  Chunk(sample, delta, with ? LogprobsJson(logprobs) : "null", "null", "", out);
}

void ChatWriter::EndSample(uint32_t sample, const SampleEnd& end, std::string& out) {
  CloseCall(sample, out);
  const std::string reason = fmt::format("\"{}\"", ReasonOf(end, calls_[sample].begun > 0));
  Chunk(sample, "{}", "null", reason, "", out);
}

void ChatWriter::EndStream(const AnswerUsage& usage, std::string& out) {
  if (shape_.usage_in_chunks) {
    std::string last = prefix_ + "],\"usage\":";
    JsonWriter json(last);
    WriteTokenUsage(json, usage);
    net::AppendSse(out, /*event=*/"", last + '}');
  }
  net::AppendSse(out, /*event=*/"", "[DONE]");
}

void ChatWriter::Fail(const ApiError& error, std::string& out) {
  net::AppendSse(out, /*event=*/"", ErrorJson(error));
}

}  // namespace plumb::api
