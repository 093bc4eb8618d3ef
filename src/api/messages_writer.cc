// api/messages_writer.cc
// See messages_writer.h. One rule makes blocks of parts, streamed or not: a part goes on with the
// open block when it is of its kind, else it begins the next.
#include "api/messages_writer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "api/json.h"
#include "api/json_writer.h"
#include "api/messages_errors.h"
#include "api/thinking_signature.h"
#include "base/check.h"
#include "net/sse.h"

namespace plumb::api {

using engine::FinishReason;
using text::AnswerDelta;
using Kind = AnswerDelta::Kind;

namespace {

constexpr std::string_view kNoBlocks = "[]";

// The kind of the block that a part belongs to; a call's is that of its arguments.
Kind BlockOf(const AnswerDelta& part) {
  return part.kind == Kind::kCallBegin ? Kind::kArguments : part.kind;
}

bool Begins(const std::optional<Kind>& open, const AnswerDelta& part) {
  return part.kind == Kind::kCallBegin || open != BlockOf(part);
}

// Arguments as an object: as they are when they are one. Of what was cut off, or is no JSON, the
// members before.
std::string WholeObject(const std::string& arguments) {
  const auto is_object = [](std::string_view text) {
    const auto parsed = ParseJson(text);
    return parsed.ok() && parsed->kind == JsonKind::kObject;
  };
  if (is_object(arguments)) return arguments;
  size_t depth = 0;
  size_t end = 0;  // behind the last member that is whole
  bool in_string = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const char c = arguments[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    } else if (c == ',' && depth == 1) {
      end = i;
    }
  }
  const std::string closed = arguments.substr(0, end) + '}';
  return end > 0 && is_object(closed) ? closed : "{}";
}

std::string CallId(uint64_t answer, uint64_t call) {
  return fmt::format("toolu_{:016x}_{}", answer, call);
}

enum class UsageOf : uint8_t { kMessage, kDelta };  // the latter: no tier, nothing by time

void WriteUsage(JsonWriter& json, const AnswerUsage& usage, const MessagesShape& shape,
                UsageOf of) {
  const uint64_t hour = shape.hour_first ? usage.stored_tokens[0] : 0;
  const uint64_t minutes = usage.stored_tokens[0] + usage.stored_tokens[1] - hour;
  json.BeginObject().Key("input_tokens");
  json.Uint(usage.prompt_tokens - usage.cached_tokens - hour - minutes);
  json.Key("cache_creation_input_tokens").Uint(hour + minutes);
  if (of == UsageOf::kMessage) {
    json.Key("cache_creation").BeginObject().Key("ephemeral_5m_input_tokens").Uint(minutes);
    json.Key("ephemeral_1h_input_tokens").Uint(hour).EndObject();
  }
  json.Key("cache_read_input_tokens").Uint(usage.cached_tokens);
  json.Key("output_tokens").Uint(usage.completion_tokens);
  json.Key("output_tokens_details").BeginObject();
  json.Key("thinking_tokens").Uint(usage.reasoning_tokens).EndObject();
  if (of == UsageOf::kMessage) json.Key("service_tier").String("standard");
  json.EndObject();
}

void WriteEdits(JsonWriter& json) {
  json.Key("context_management").BeginObject().Key("applied_edits").BeginArray().EndArray();
  json.EndObject();
}

// What an event of a stream begins with.
std::string EventBegin(std::string_view type) { return fmt::format("{{\"type\":\"{}\"", type); }

// A block of a whole answer, while its parts are put together.
struct Block {
  Kind kind;
  std::string text;  // thinking, text or arguments
  std::string name;  // of a call
};

std::vector<Block> BlocksOf(const SampleAnswer& answer) {
  std::vector<Block> blocks;
  std::optional<Kind> open;
  for (const AnswerDelta& part : answer.parts) {
    const bool call = part.kind == Kind::kCallBegin;
    if (!call && part.text.empty()) continue;
    if (Begins(open, part)) {
      CHECK(part.kind != Kind::kArguments) << "arguments before a call";
      blocks.push_back({BlockOf(part), "", call ? part.text : ""});
      open = BlockOf(part);
    }
    if (!call) blocks.back().text += part.text;
  }
  return blocks;
}

}  // namespace

MessagesWriter::MessagesWriter(AnswerHead head, MessagesShape shape)
    : head_(std::move(head)), shape_(shape) {}

std::string MessagesWriter::StopReason(const SampleEnd& end, uint32_t calls) const {
  CHECK(end.reason == FinishReason::kStop || end.reason == FinishReason::kLength);
  if (shape_.warm_only) return "max_tokens";
  if (end.reason == FinishReason::kLength)
    return head_.context_ends ? "model_context_window_exceeded" : "max_tokens";
  if (end.stop) return "stop_sequence";
  return calls > 0 ? "tool_use" : "end_turn";
}

void MessagesWriter::WriteMessage(JsonWriter& json, std::string_view blocks,
                                  std::string_view stop_reason, std::string_view stop) const {
  json.Key("id").String(fmt::format("msg_{:016x}", head_.number)).Key("type").String("message");
  json.Key("role").String("assistant").Key("model").String(head_.model);
  json.Key("content").Raw(blocks).Key("stop_reason").StringOrNull(stop_reason);
  json.Key("stop_sequence").StringOrNull(stop);
  json.Key("plumb").BeginObject().Key("seed").Int(static_cast<int64_t>(head_.seed));
  json.Key("system_fingerprint").String(fingerprint_).EndObject();
}

std::string MessagesWriter::Whole(std::span<const SampleAnswer> samples, const AnswerUsage& usage) {
  CHECK(samples.size() == 1);
  const SampleAnswer& answer = samples.front();
  std::string blocks;
  JsonWriter list(blocks);
  uint32_t calls = 0;
  list.BeginArray();
  for (const Block& block : shape_.warm_only ? std::vector<Block>() : BlocksOf(answer)) {
    list.BeginObject().Key("type");
    if (block.kind == Kind::kContent) {
      list.String("text").Key("text").String(block.text);
    } else if (block.kind == Kind::kReasoning) {
      list.String("thinking").Key("thinking");
      list.String(shape_.show_thinking ? std::string_view(block.text) : std::string_view());
      list.Key("signature").String(ThinkingSignature(block.text, !shape_.show_thinking));
    } else {
      list.String("tool_use").Key("id").String(CallId(head_.number, calls++));
      list.Key("name").String(block.name).Key("input").Raw(WholeObject(block.text));
    }
    list.EndObject();
  }
  list.EndArray();
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  WriteMessage(json, blocks, StopReason(answer.end, calls), answer.end.stop.value_or(""));
  json.Key("usage");
  WriteUsage(json, Shown(usage), shape_, UsageOf::kMessage);
  if (shape_.reports_edits) WriteEdits(json);
  json.EndObject();
  return out;
}

// Of a request that only warms the cache, what was generated is not told.
AnswerUsage MessagesWriter::Shown(AnswerUsage usage) const {
  if (shape_.warm_only) usage.completion_tokens = usage.reasoning_tokens = 0;
  return usage;
}

// How much of the prompt was cached is not known yet; message_delta says it.
void MessagesWriter::StartStream(std::string& out) {
  std::string event = EventBegin("message_start") + ",\"message\":";
  JsonWriter json(event);
  json.BeginObject();
  WriteMessage(json, kNoBlocks, "", "");
  json.Key("usage");
  WriteUsage(json, {.prompt_tokens = shape_.prompt_tokens}, shape_, UsageOf::kMessage);
  json.EndObject();
  net::AppendSse(out, "message_start", event + '}');
}

void MessagesWriter::Delta(std::string_view type, std::string_view member, std::string_view text,
                           std::string& out) const {
  std::string event = EventBegin("content_block_delta");
  event += fmt::format(",\"index\":{},\"delta\":{{\"type\":\"{}\",\"{}\":", blocks_, type, member);
  AppendJsonString(event, text);
  net::AppendSse(out, "content_block_delta", event + "}}");
}

void MessagesWriter::OpenBlock(const AnswerDelta& part, std::string& out) {
  std::string event = EventBegin("content_block_start");
  event += fmt::format(",\"index\":{},\"content_block\":", blocks_);
  JsonWriter json(event);
  json.BeginObject().Key("type");
  open_ = BlockOf(part);
  if (open_ == Kind::kContent) {
    json.String("text").Key("text").String("");
  } else if (open_ == Kind::kReasoning) {
    json.String("thinking").Key("thinking").String("").Key("signature").String("");
  } else {
    CHECK(part.kind == Kind::kCallBegin) << "arguments before a call";
    json.String("tool_use").Key("id").String(CallId(head_.number, calls_++));
    json.Key("name").String(part.text).Key("input").BeginObject().EndObject();
  }
  json.EndObject();
  net::AppendSse(out, "content_block_start", event + '}');
  if (blocks_ == 0) net::AppendSse(out, "ping", R"({"type":"ping"})");
}

void MessagesWriter::CloseBlock(std::string& out) {
  if (!open_) return;
  if (open_ == Kind::kReasoning) {
    Delta("signature_delta", "signature", ThinkingSignature(thinking_, !shape_.show_thinking), out);
    thinking_.clear();
  }
  const std::string event =
      EventBegin("content_block_stop") + fmt::format(",\"index\":{}}}", blocks_);
  net::AppendSse(out, "content_block_stop", event);
  open_.reset();
  ++blocks_;
}

void MessagesWriter::Part(uint32_t, const AnswerDelta& part, std::span<const engine::TokenLogprob>,
                          std::string& out) {
  const bool call = part.kind == Kind::kCallBegin;
  if (shape_.warm_only || (!call && part.text.empty())) return;
  if (Begins(open_, part)) {
    CloseBlock(out);
    OpenBlock(part, out);
  }
  if (part.kind == Kind::kContent) {
    Delta("text_delta", "text", part.text, out);
  } else if (part.kind == Kind::kArguments) {
    Delta("input_json_delta", "partial_json", part.text, out);
  } else if (part.kind == Kind::kReasoning) {
    thinking_ += part.text;
    if (shape_.show_thinking) Delta("thinking_delta", "thinking", part.text, out);
  }
}

void MessagesWriter::EndSample(uint32_t, const SampleEnd& end, std::string& out) {
  CloseBlock(out);
  end_ = end;
}

void MessagesWriter::EndStream(const AnswerUsage& usage, std::string& out) {
  std::string event = EventBegin("message_delta") + ",\"delta\":";
  JsonWriter json(event);
  json.BeginObject().Key("stop_reason").String(StopReason(end_, calls_));
  json.Key("stop_sequence").StringOrNull(end_.stop.value_or("")).EndObject();
  json.Key("usage");
  WriteUsage(json, Shown(usage), shape_, UsageOf::kDelta);
  if (shape_.reports_edits) WriteEdits(json);
  net::AppendSse(out, "message_delta", event + '}');
  net::AppendSse(out, "message_stop", R"({"type":"message_stop"})");
}

void MessagesWriter::Fail(const ApiError& error, std::string& out) {
  net::AppendSse(out, "error", MessagesErrorJson(error));
}

}  // namespace plumb::api
