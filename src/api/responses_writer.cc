// api/responses_writer.cc
// See responses_writer.h. Events come in OpenAI's order, each with its place in the stream.
#include "api/responses_writer.h"

#include <fmt/format.h>

#include <utility>

#include "api/logprob_json.h"
#include "base/check.h"
#include "net/sse.h"

namespace plumb::api {

using engine::TokenLogprob;
using Kind = text::AnswerDelta::Kind;

namespace {

constexpr std::string_view kNoLogprobs = "[]";

// Of OpenAI's words for why an answer failed, the one that fits here; the message says more.
constexpr std::string_view kFailedCode = "server_error";

}  // namespace

ResponsesWriter::ResponsesWriter(AnswerHead head, ResponsesPlan plan,
                                 const text::Tokenizer& tokenizer, ResponsesStore& store)
    : head_(std::move(head)),
      plan_(std::move(plan)),
      tokenizer_(tokenizer),
      store_(store),
      id_(fmt::format("resp_{:016x}", head_.number)) {}

void ResponsesWriter::Begin(std::string_view system_fingerprint) {
  fingerprint_ = system_fingerprint;
}

std::string ResponsesWriter::Accepted() {
  auto kept = std::make_shared<KeptResponse>();
  kept->id = id_;
  kept->json = ResponseJson("queued", nullptr, nullptr);
  kept->cancelled_json = ResponseJson("cancelled", nullptr, nullptr);
  kept->input = plan_.input;
  kept->background = true;
  kept->idempotent_copy = plan_.idempotent_copy;
  kept->running = true;
  kept->request = plan_.request;
  std::string json = kept->json;
  store_.Add(plan_.caller, std::move(kept));
  return json;
}

template <typename Write>
void ResponsesWriter::Event(std::string_view type, std::string& out, Write write) {
  if (!streaming_) return;
  std::string data;
  JsonWriter json(data);
  json.BeginObject().Key("type").String(type).Key("sequence_number").Uint(sequence_++);
  write(json);
  json.EndObject();
  net::AppendSse(out, type, data);
}

void ResponsesWriter::WritePlace(JsonWriter& json) const {
  json.Key("item_id").String(items_.back().id).Key("output_index").Uint(items_.size() - 1);
}

void ResponsesWriter::StartStream(std::string& out) {
  streaming_ = true;
  const std::string response = ResponseJson("in_progress", nullptr, nullptr);
  const auto write = [&](JsonWriter& json) { json.Key("response").Raw(response); };
  Event("response.created", out, write);
  Event("response.in_progress", out, write);
}

void ResponsesWriter::Part(uint32_t, const text::AnswerDelta& part,
                           std::span<const TokenLogprob> logprobs, std::string& out) {
  if (head_.logprobs) pending_.insert(pending_.end(), logprobs.begin(), logprobs.end());
  if (part.kind == Kind::kCallBegin) return OpenCall(part.text, out);
  if (part.kind == Kind::kArguments) return AppendArguments(part.text, out);
  const bool message = part.kind == Kind::kContent;
  const bool open = IsOpen(message ? ItemKind::kMessage : ItemKind::kReasoning);
  const bool more = message && open && !pending_.empty();
  if (part.text.empty() && !more) return;
  if (!open && message) OpenMessage(out);
  if (!open && !message) Open({.kind = ItemKind::kReasoning}, out);
  Append(part.text, out);
}

void ResponsesWriter::Open(ResponsesItem item, std::string& out) {
  Close(ItemStatus::kCompleted, out);
  item.status = ItemStatus::kInProgress;
  item.id = fmt::format("{}_{:016x}_{}", ItemIdPrefix(item.kind), head_.number, items_.size());
  items_.push_back(std::move(item));
  logprobs_.emplace_back(kNoLogprobs);
  open_ = true;
  Event("response.output_item.added", out, [&](JsonWriter& json) {
    json.Key("output_index").Uint(items_.size() - 1).Key("item");
    WriteItem(json, items_.back(), FormOf(items_.size() - 1));
  });
  const ItemKind kind = items_.back().kind;
  if (kind != ItemKind::kMessage && kind != ItemKind::kReasoning) return;
  Event("response.content_part.added", out, [&](JsonWriter& json) {
    WritePlace(json);
    json.Key("content_index").Uint(0).Key("part");
    kind == ItemKind::kMessage ? WriteOutputText(json, "") : WriteReasoningText(json, "");
  });
}

void ResponsesWriter::OpenMessage(std::string& out) {
  ResponsesItem item;
  item.role = "assistant";
  Open(std::move(item), out);
}

// A name that no tool has is shown as the model wrote it.
void ResponsesWriter::OpenCall(const std::string& told, std::string& out) {
  const ResponsesTool* tool = plan_.tools.Find(told);
  ResponsesItem item;
  item.kind = tool != nullptr && tool->custom ? ItemKind::kCustomCall : ItemKind::kFunctionCall;
  item.call_id = fmt::format("call_{:016x}_{}", head_.number, items_.size());
  item.name = tool != nullptr ? tool->name : told;
  if (tool != nullptr) item.tool_space = tool->tool_space;
  custom_ = CustomInput();
  Open(std::move(item), out);
}

void ResponsesWriter::Append(std::string_view text, std::string& out) {
  ResponsesItem& item = items_.back();
  item.text += text;
  const bool message = item.kind == ItemKind::kMessage;
  const std::string_view type =
      message ? "response.output_text.delta" : "response.reasoning_text.delta";
  std::string logprobs(kNoLogprobs);
  if (message && !pending_.empty()) {
    logprobs.clear();
    JsonWriter json(logprobs);
    WriteLogprobList(json, pending_, tokenizer_, kChatLogprobs);
    pending_.clear();
    std::string& all = logprobs_.back();
    all.pop_back();
    if (all.size() > 1) all += ',';
    all += std::string_view(logprobs).substr(1);
  }
  Event(type, out, [&](JsonWriter& json) {
    WritePlace(json);
    json.Key("content_index").Uint(0).Key("delta").String(text);
    if (message) json.Key("logprobs").Raw(logprobs);
  });
}

void ResponsesWriter::AppendArguments(std::string_view arguments, std::string& out) {
  const bool custom = IsOpen(ItemKind::kCustomCall);
  CHECK(custom || IsOpen(ItemKind::kFunctionCall)) << "arguments before a call";
  std::string text(arguments);
  if (custom) {
    text.clear();
    custom_.Push(arguments, text);
  }
  if (text.empty()) return;
  items_.back().text += text;
  const std::string_view type =
      custom ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta";
  Event(type, out, [&](JsonWriter& json) {
    WritePlace(json);
    json.Key("delta").String(text);
  });
}

void ResponsesWriter::TellTextDone(std::string& out) {
  const ResponsesItem& item = items_.back();
  if (item.kind == ItemKind::kFunctionCall) {
    return Event("response.function_call_arguments.done", out, [&](JsonWriter& json) {
      WritePlace(json);
      json.Key("name").String(item.name).Key("arguments").String(item.text);
    });
  }
  if (item.kind == ItemKind::kCustomCall) {
    return Event("response.custom_tool_call_input.done", out, [&](JsonWriter& json) {
      WritePlace(json);
      json.Key("input").String(item.text);
    });
  }
  const bool message = item.kind == ItemKind::kMessage;
  const std::string_view type =
      message ? "response.output_text.done" : "response.reasoning_text.done";
  Event(type, out, [&](JsonWriter& json) {
    WritePlace(json);
    json.Key("content_index").Uint(0).Key("text").String(item.text);
    if (message) json.Key("logprobs").Raw(logprobs_.back());
  });
  Event("response.content_part.done", out, [&](JsonWriter& json) {
    WritePlace(json);
    json.Key("content_index").Uint(0).Key("part");
    message ? WriteOutputText(json, item.text, logprobs_.back())
            : WriteReasoningText(json, item.text);
  });
}

void ResponsesWriter::Close(ItemStatus status, std::string& out) {
  if (!open_) return;
  ResponsesItem& item = items_.back();
  if (item.kind == ItemKind::kCustomCall) {
    std::string rest;
    custom_.Finish(rest);
    item.text += rest;
    if (!rest.empty()) {
      Event("response.custom_tool_call_input.delta", out, [&](JsonWriter& json) {
        WritePlace(json);
        json.Key("delta").String(rest);
      });
    }
  }
  open_ = false;
  item.status = status;
  TellTextDone(out);
  Event("response.output_item.done", out, [&](JsonWriter& json) {
    json.Key("output_index").Uint(items_.size() - 1).Key("item");
    WriteItem(json, item, FormOf(items_.size() - 1));
  });
}

void ResponsesWriter::EndSample(uint32_t, const SampleEnd& end, std::string& out) {
  cut_ = end.reason == engine::FinishReason::kLength;
  bool spoken = false;
  for (const ResponsesItem& item : items_) spoken = spoken || item.kind != ItemKind::kReasoning;
  // An answer of nothing is a message of nothing, unless it was cut before it could begin.
  if (!spoken && (items_.empty() || !cut_)) OpenMessage(out);
  if (IsOpen(ItemKind::kMessage) && !pending_.empty()) Append("", out);
  const bool call = IsOpen(ItemKind::kFunctionCall) || IsOpen(ItemKind::kCustomCall);
  const bool whole = !cut_ && (!call || end.by_model);
  Close(whole ? ItemStatus::kCompleted : ItemStatus::kIncomplete, out);
}

void ResponsesWriter::EndStream(const AnswerUsage& usage, std::string& out) {
  std::string json = ResponseJson(final_status(), &usage, nullptr);
  Event(cut_ ? "response.incomplete" : "response.completed", out,
        [&](JsonWriter& event) { event.Key("response").Raw(json); });
  Keep(std::move(json));
}

void ResponsesWriter::Fail(const ApiError& error, std::string& out) {
  if (open_) items_.back().status = ItemStatus::kIncomplete;
  open_ = false;
  std::string json = ResponseJson("failed", nullptr, &error);
  Event("response.failed", out, [&](JsonWriter& event) { event.Key("response").Raw(json); });
  if (plan_.background) Keep(std::move(json));
}

std::string ResponsesWriter::Whole(std::span<const SampleAnswer> samples,
                                   const AnswerUsage& usage) {
  CHECK(samples.size() == 1) << "samples " << samples.size();
  std::string nobody;
  pending_ = samples[0].logprobs;
  for (const text::AnswerDelta& part : samples[0].parts) Part(0, part, {}, nobody);
  EndSample(0, samples[0].end, nobody);
  std::string json = ResponseJson(final_status(), &usage, nullptr);
  Keep(json);
  return json;
}

ItemForm ResponsesWriter::FormOf(size_t item) const {
  return {.encrypted_content = plan_.encrypted_reasoning, .logprobs = logprobs_[item]};
}

std::string ResponsesWriter::ResponseJson(std::string_view status, const AnswerUsage* usage,
                                          const ApiError* error) const {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("id").String(id_).Key("object").String("response");
  json.Key("created_at").Int(head_.created).Key("status").String(status).Key("error");
  if (error != nullptr) {
    json.BeginObject().Key("code").String(kFailedCode);
    json.Key("message").String(error->message).EndObject();
  } else {
    json.Null();
  }
  json.Key("incomplete_details");
  if (status == "incomplete") {
    json.BeginObject().Key("reason").String("max_output_tokens").EndObject();
  } else {
    json.Null();
  }
  json.Key("model").String(head_.model).Key("output").BeginArray();
  for (size_t i = 0; i < items_.size(); ++i) WriteItem(json, items_[i], FormOf(i));
  json.EndArray().Key("usage");
  usage != nullptr ? WriteUsage(json, *usage) : static_cast<void>(json.Null());
  json.Key("plumb").BeginObject().Key("seed").Int(static_cast<int64_t>(head_.seed));
  json.Key("system_fingerprint").StringOrNull(fingerprint_).EndObject();
  return out + ',' + plan_.echo + '}';
}

void ResponsesWriter::WriteUsage(JsonWriter& json, const AnswerUsage& usage) const {
  json.BeginObject().Key("input_tokens").Uint(usage.prompt_tokens);
  json.Key("input_tokens_details").BeginObject();
  json.Key("cached_tokens").Uint(usage.cached_tokens);
  json.Key("cache_write_tokens").Uint(0).EndObject();  // nothing costs more for being kept
  json.Key("output_tokens").Uint(usage.completion_tokens);
  json.Key("output_tokens_details").BeginObject();
  json.Key("reasoning_tokens").Uint(usage.reasoning_tokens).EndObject();
  json.Key("total_tokens").Uint(usage.prompt_tokens + usage.completion_tokens).EndObject();
}

void ResponsesWriter::Keep(std::string json) {
  if (!plan_.store) return;
  auto kept = std::make_shared<KeptResponse>();
  kept->id = id_;
  kept->json = std::move(json);
  kept->input = plan_.input;
  for (const ResponsesItem& item : items_)
    kept->output.push_back(std::make_shared<ResponsesItem>(item));
  kept->background = plan_.background;
  kept->idempotent_copy = plan_.idempotent_copy;
  if (plan_.background) {
    store_.Replace(plan_.caller, std::move(kept));
  } else {
    store_.Add(plan_.caller, std::move(kept));
  }
}

}  // namespace plumb::api
