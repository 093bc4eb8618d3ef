// cli/generate_line.cc
// A line is a chat request with two members of ours, "id" and "prompt". They are taken out, and
// what is left goes through the chat API's own parser, so that both take and refuse the same.
#include "cli/generate_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/chat_prompt.h"
#include "api/chat_response.h"
#include "api/json.h"
#include "api/json_fields.h"
#include "api/json_writer.h"
#include "base/random.h"

namespace plumb::cli {
namespace {

using base::InvalidArgument;

constexpr size_t kIdBytesMax = 256;

void Write(api::JsonWriter& json, const api::JsonValue& value) {
  switch (value.kind) {
    case api::JsonKind::kNull:
      json.Null();
      return;
    case api::JsonKind::kBool:
      json.Bool(value.boolean);
      return;
    case api::JsonKind::kNumber:
      json.Raw(value.text);
      return;
    case api::JsonKind::kString:
      json.String(value.text);
      return;
    case api::JsonKind::kArray:
      json.BeginArray();
      for (const api::JsonValue& item : value.items) Write(json, item);
      json.EndArray();
      return;
    case api::JsonKind::kObject:
      json.BeginObject();
      for (const api::JsonMember& member : value.members) {
        Write(json.Key(member.name), member.value);
      }
      json.EndObject();
      return;
  }
}

base::Result<std::string> IdJson(const api::JsonValue& value) {
  const bool allowed = value.kind == api::JsonKind::kString || value.kind == api::JsonKind::kNumber;
  if (!allowed || value.text.size() > kIdBytesMax) {
    return InvalidArgument(
        "id", fmt::format("id must be a string or number of at most {} bytes", kIdBytesMax));
  }
  std::string text;
  api::JsonWriter json(text);
  Write(json, value);
  return text;
}

// The members that the chat API knows. A stand-in message takes the place of a raw prompt, and a
// stand-in name that of the model, which the command line has chosen.
std::string ChatBody(const api::JsonValue& root, bool has_prompt) {
  std::string body;
  api::JsonWriter json(body);
  json.BeginObject();
  if (root.Find("model") == nullptr) json.Key("model").String("local");
  if (has_prompt) {
    json.Key("messages").BeginArray().BeginObject();
    json.Key("role").String("user").Key("content").String("prompt").EndObject().EndArray();
  }
  for (const api::JsonMember& member : root.members) {
    if (member.name != "id" && member.name != "prompt") Write(json.Key(member.name), member.value);
  }
  json.EndObject();
  return body;
}

// Within what reads back from JSON everywhere.
uint64_t SeedOf(uint64_t run_seed, uint64_t index) {
  const auto bits =
      base::Philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0},
                       {static_cast<uint32_t>(run_seed), static_cast<uint32_t>(run_seed >> 32)});
  return (uint64_t{bits[0]} << 32 | bits[1]) & ((uint64_t{1} << 53) - 1);
}

void WriteToken(api::JsonWriter& json, base::TokenId token, float logprob,
                const text::Tokenizer& tokenizer) {
  const std::string_view bytes = tokenizer.TokenBytes(token);
  json.Key("token").String(bytes.empty() ? tokenizer.TokenName(token) : bytes);
  json.Key("token_id").Uint(base::Index(token)).Key("logprob").Float(logprob);
}

void WriteLogprobs(api::JsonWriter& json, const std::vector<engine::TokenLogprob>& logprobs,
                   const text::Tokenizer& tokenizer) {
  json.Key("logprobs").BeginArray();
  for (const engine::TokenLogprob& entry : logprobs) {
    json.BeginObject();
    WriteToken(json, entry.token, entry.logprob, tokenizer);
    json.Key("top").BeginArray();
    for (const engine::TopLogprob& top : entry.top) {
      json.BeginObject();
      WriteToken(json, top.token, top.logprob, tokenizer);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

void WriteHead(api::JsonWriter& json, const LineHead& head) {
  json.BeginObject().Key("index").Uint(head.index);
  if (!head.id_json.empty()) json.Key("id").Raw(head.id_json);
}

}  // namespace

base::Result<LineRequest> ParseLine(std::string_view text, uint64_t index,
                                    const LineDefaults& defaults, std::string* id_json) {
  api::ChatLimits limits;
  limits.json.bytes_max = kInputLineBytesMax;
  limits.vocabulary_size = defaults.vocabulary_size;
  ASSIGN_OR_RETURN(const api::JsonValue root, api::ParseJson(text, limits.json));
  if (root.kind != api::JsonKind::kObject) return InvalidArgument("", "a line is one JSON object");

  LineRequest line;
  if (const api::JsonValue* id = root.Find("id"); id != nullptr && !id->is_null()) {
    ASSIGN_OR_RETURN(line.id_json, IdJson(*id));
    if (id_json != nullptr) *id_json = line.id_json;
  }
  const api::JsonValue* prompt = root.Find("prompt");
  line.has_prompt = prompt != nullptr && !prompt->is_null();
  const bool has_messages = root.Find("messages") != nullptr;
  if (line.has_prompt == has_messages) {
    return InvalidArgument("messages", "a line has either messages or prompt");
  }
  if (line.has_prompt) {
    ASSIGN_OR_RETURN(const auto value, api::ReadString(*prompt, "prompt", kInputLineBytesMax));
    line.prompt = value.value_or("");
  }
  ASSIGN_OR_RETURN(line.chat, api::ParseChatRequest(ChatBody(root, line.has_prompt), limits));
  if (line.chat.samples != 1) {
    return InvalidArgument("n", "n is not taken here: repeat the line with another seed");
  }
  if (line.chat.stream) return InvalidArgument("stream", "stream is not taken here");
  if (line.chat.deadline_ms) {
    return InvalidArgument("deadline_ms",
                           "deadline_ms is not taken here: answers do not depend on time");
  }
  if (!line.chat.seed_given) line.chat.sampling.seed = SeedOf(defaults.seed, index);
  return line;
}

base::Result<engine::Request> BuildRequest(const LineRequest& line, const LineDefaults& defaults,
                                           const LineModel& model) {
  engine::Request request{};
  request.sampling = line.chat.sampling;
  if (line.has_prompt) {
    auto tokens = model.tokenizer.Encode(line.prompt, text::ControlTokens::kParse,
                                         /*add_special=*/true);
    if (!tokens.ok()) return InvalidArgument("prompt", tokens.status().message());
    request.prompt = std::move(tokens).value();
    if (request.prompt.empty()) return InvalidArgument("prompt", "the prompt is empty");
  } else {
    ASSIGN_OR_RETURN(request.prompt, api::EncodeChat(line.chat.messages, model.chat_template,
                                                     model.tokenizer, model.context_max));
  }
  const uint64_t size = request.prompt.size();
  if (size >= model.context_max) {
    return InvalidArgument(
               line.has_prompt ? "prompt" : "messages",
               fmt::format("the prompt has {} tokens and the context {}", size, model.context_max))
        .WithReason("context_length_exceeded");
  }
  const auto room = static_cast<uint32_t>(model.context_max - size);
  if (line.chat.tokens_max && *line.chat.tokens_max > room) {
    return InvalidArgument("max_tokens",
                           fmt::format("the prompt has {} tokens, max_tokens is {} and the context "
                                       "{}",
                                       size, *line.chat.tokens_max, model.context_max))
        .WithReason("context_length_exceeded");
  }
  const uint32_t standard = defaults.tokens_max == 0 ? room : std::min(defaults.tokens_max, room);
  request.sampling.tokens_max = line.chat.tokens_max.value_or(standard);
  return request;
}

std::string AnswerLine(const LineHead& head, const LineAnswer& answer,
                       const text::Tokenizer& tokenizer) {
  std::string out;
  api::JsonWriter json(out);
  WriteHead(json, head);
  json.Key("text").String(answer.text);
  json.Key("finish_reason").String(api::FinishReasonName(answer.finish.reason));
  const engine::Finish& finish = answer.finish;
  json.Key("usage").BeginObject().Key("prompt_tokens").Uint(finish.prompt_tokens);
  json.Key("completion_tokens").Uint(finish.completion_tokens);
  json.Key("total_tokens").Uint(uint64_t{finish.prompt_tokens} + finish.completion_tokens);
  json.EndObject().Key("seed").Int(static_cast<int64_t>(answer.seed));
  if (answer.with_logprobs) WriteLogprobs(json, answer.logprobs, tokenizer);
  json.Key("key").String(head.key).EndObject();
  return out + "\n";
}

std::string ErrorLine(const LineHead& head, const base::Status& status) {
  std::string out;
  api::JsonWriter json(out);
  WriteHead(json, head);
  json.Key("error").BeginObject();
  json.Key("message").String(fmt::format("line {}: {}", head.index + 1, status.message()));
  json.Key("param").StringOrNull(status.field()).Key("code").StringOrNull(status.reason());
  json.EndObject().Key("key").String(head.key).EndObject();
  return out + "\n";
}

}  // namespace plumb::cli
