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
  std::string arguments;
};

// A sample's parts, as a message has them.
struct Message {
  explicit Message(const SampleAnswer& answer) {
    for (const AnswerDelta& part : answer.parts) {
      switch (part.kind) {
        case Kind::kReasoning:
          reasoning += part.text;
          break;
        case Kind::kContent:
          content += part.text;
          break;
        case Kind::kCallBegin:
          calls.push_back({part.text, ""});
          break;
        case Kind::kArguments:
          CHECK(!calls.empty()) << "arguments before a call";
          calls.back().arguments += part.text;
          break;
      }
    }
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
  json.Key("id").String(id).Key("type").String("function").Key("function").BeginObject();
  json.Key("name").String(call.name).Key("arguments").String(call.arguments).EndObject();
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

ChatWriter::ChatWriter(AnswerHead head, uint32_t samples, bool usage_in_chunks,
                       const text::Tokenizer& tokenizer)
    : head_(std::move(head)),
      usage_in_chunks_(usage_in_chunks),
      tokenizer_(tokenizer),
      id_(fmt::format("chatcmpl-{:016x}", head_.number)),
      calls_(samples) {}

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
    const Message message(samples[i]);
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
  suffix_ = usage_in_chunks_ ? "}],\"usage\":null" : "}]";
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

void ChatWriter::Part(uint32_t sample, const AnswerDelta& part,
                      std::span<const TokenLogprob> logprobs, std::string& out) {
  std::string delta;
  JsonWriter json(delta);
  json.BeginObject();
  if (part.kind == Kind::kContent) {
    json.Key("content").String(part.text);
  } else if (part.kind == Kind::kReasoning) {
    json.Key("reasoning_content").String(part.text);
  } else {
    if (part.kind == Kind::kCallBegin) ++calls_[sample];
    CHECK(calls_[sample] > 0) << "arguments before a call";
    const uint32_t call = calls_[sample] - 1;
    json.Key("tool_calls").BeginArray().BeginObject().Key("index").Uint(call);
    if (part.kind == Kind::kCallBegin) {
      WriteCall(json, CallId(head_.number, sample, call), {part.text, ""});
    } else {
      json.Key("function").BeginObject().Key("arguments").String(part.text).EndObject();
    }
    json.EndObject().EndArray();
  }
  json.EndObject();
  const bool with = head_.logprobs && !logprobs.empty();
  Chunk(sample, delta, with ? LogprobsJson(logprobs) : "null", "null", "", out);
}

void ChatWriter::EndSample(uint32_t sample, const SampleEnd& end, std::string& out) {
  const std::string reason = fmt::format("\"{}\"", ReasonOf(end, calls_[sample] > 0));
  Chunk(sample, "{}", "null", reason, "", out);
}

void ChatWriter::EndStream(const AnswerUsage& usage, std::string& out) {
  if (usage_in_chunks_) {
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
