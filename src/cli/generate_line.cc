// cli/generate_line.cc
// A line is a chat request with a few members of ours. They are taken out, and what is left goes
// through the chat API's own parser, so that both take and refuse the same.
#include "cli/generate_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "api/chat_prompt.h"
#include "api/json.h"
#include "api/json_fields.h"
#include "api/json_writer.h"
#include "base/random.h"
#include "model/config.h"

namespace plumb::cli {
namespace {

using base::InvalidArgument;

constexpr size_t kIdBytesMax = 256;
// Values in a line: a prompt as token ids has one for each.
constexpr uint32_t kLineNodesMax = 1u << 22;

base::Result<std::string> IdJson(const api::JsonValue& value) {
  const bool allowed = value.kind == api::JsonKind::kString || value.kind == api::JsonKind::kNumber;
  if (!allowed || value.text.size() > kIdBytesMax) {
    return InvalidArgument(
        "id", fmt::format("id must be a string or number of at most {} bytes", kIdBytesMax));
  }
  std::string text;
  api::AppendJson(text, value);
  return text;
}

// Members that the chat API does not see.
bool IsOurs(std::string_view name, LineKind kind) {
  if (name == "n") return kind == LineKind::kRollout;  // may be more than the API's
  return name == "id" || name == "prompt" || name == "best_of" || name == "echo" ||
         name == "prompt_logprobs";
}

// The rest. A stand-in message takes the place of a raw prompt, and a stand-in name that of the
// model, which the command line has chosen.
std::string ChatBody(const api::JsonValue& root, bool has_prompt, LineKind kind) {
  std::string body;
  api::JsonWriter json(body);
  json.BeginObject();
  if (root.Find("model") == nullptr) json.Key("model").String("local");
  if (has_prompt) {
    json.Key("messages").BeginArray().BeginObject();
    json.Key("role").String("user").Key("content").String("prompt").EndObject().EndArray();
  }
  for (const api::JsonMember& member : root.members) {
    if (IsOurs(member.name, kind)) continue;
    std::string value;
    api::AppendJson(value, member.value);
    json.Key(member.name).Raw(value);
  }
  json.EndObject();
  return body;
}

// Within what reads back from JSON everywhere.
uint64_t SeedOf(uint64_t of, std::array<uint32_t, 4> counter) {
  const auto bits =
      base::Philox4x32(counter, {static_cast<uint32_t>(of), static_cast<uint32_t>(of >> 32)});
  return (uint64_t{bits[0]} << 32 | bits[1]) & ((uint64_t{1} << 53) - 1);
}
uint64_t LineSeed(uint64_t run_seed, uint64_t index) {
  return SeedOf(run_seed, {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0});
}
uint64_t GroupSeed(uint64_t line_seed, uint32_t group) {
  return group == 0 ? line_seed : SeedOf(line_seed, {group, 0, 0, 1});
}

base::Status ReadPrompt(const api::JsonValue& value, const LineDefaults& defaults,
                        LineRequest& line) {
  if (value.kind != api::JsonKind::kArray) {
    ASSIGN_OR_RETURN(auto text, api::ReadString(value, "prompt", kInputLineBytesMax));
    line.prompt = std::move(text).value_or("");
    return base::OkStatus();
  }
  RETURN_IF_ERROR(api::CheckArray(value, "prompt", model::kContextMax));
  std::vector<base::TokenId> tokens;
  tokens.reserve(value.items.size());
  const api::IntegerRange range{0, static_cast<int64_t>(defaults.vocabulary_size) - 1};
  for (size_t i = 0; i < value.items.size(); ++i) {
    const std::string path = api::IndexPath("prompt", i);
    ASSIGN_OR_RETURN(const auto id, api::ReadInteger(value.items[i], path, range));
    if (!id) return api::WrongKind(value.items[i], path, "an integer");
    tokens.push_back(base::TokenId{static_cast<uint32_t>(*id)});
  }
  line.prompt = std::move(tokens);
  return base::OkStatus();
}

base::Status ReadCount(const api::JsonValue& root, const char* name, uint32_t max,
                       std::optional<uint32_t>& count) {
  const api::JsonValue* value = root.Find(name);
  if (value == nullptr) return base::OkStatus();
  ASSIGN_OR_RETURN(const auto number, api::ReadInteger(*value, name, {1, max}));
  if (number) count = static_cast<uint32_t>(*number);
  return base::OkStatus();
}

base::Status ReadFlag(const api::JsonValue& root, const char* name, bool& flag) {
  const api::JsonValue* value = root.Find(name);
  if (value == nullptr) return base::OkStatus();
  ASSIGN_OR_RETURN(const auto given, api::ReadBool(*value, name));
  flag = given.value_or(false);
  return base::OkStatus();
}

// n, best_of, echo, prompt_logprobs, once the chat part is known.
base::Status ReadOurs(const api::JsonValue& root, const LineDefaults& defaults, LineRequest& line) {
  std::optional<uint32_t> samples, best_of;
  RETURN_IF_ERROR(ReadCount(root, "best_of", engine::kSamplesMax, best_of));
  RETURN_IF_ERROR(ReadFlag(root, "echo", line.echo));
  RETURN_IF_ERROR(ReadFlag(root, "prompt_logprobs", line.prompt_logprobs));
  if (defaults.kind == LineKind::kRollout) {
    RETURN_IF_ERROR(ReadCount(root, "n", kRolloutSamplesMax, samples));
    if (best_of) return InvalidArgument("best_of", "best_of is not taken here: all are given");
    if (line.echo)
      return InvalidArgument("echo", "echo is not taken here: the prompt's ids are given");
    line.chat.sampling.logprobs = true;
  } else if (const api::JsonValue* n = root.Find("n"); n != nullptr && !n->is_null()) {
    samples = line.chat.samples;
  }
  line.samples = samples.value_or(defaults.samples);
  line.best_of = best_of.value_or(line.samples);
  if (line.best_of < line.samples) {
    return InvalidArgument(
        "best_of", fmt::format("best_of is {}, less than n, {}", line.best_of, line.samples));
  }
  if (line.echo && !line.has_prompt()) {
    return InvalidArgument("echo", "echo is for lines with a prompt, not for messages");
  }
  // What is echoed is part of the answer, and so are its log-probabilities.
  line.prompt_logprobs |= line.echo && line.chat.sampling.logprobs;
  return base::OkStatus();
}

}  // namespace

base::Result<LineRequest> ParseLine(std::string_view text, uint64_t index,
                                    const LineDefaults& defaults, std::string* id_json) {
  api::RequestLimits limits;
  limits.json.bytes_max = kInputLineBytesMax;
  limits.json.nodes_max = kLineNodesMax;
  limits.vocabulary_size = defaults.vocabulary_size;
  limits.abilities = defaults.abilities;
  ASSIGN_OR_RETURN(const api::JsonValue root, api::ParseJson(text, limits.json));
  if (root.kind != api::JsonKind::kObject) return InvalidArgument("", "a line is one JSON object");

  LineRequest line;
  if (const api::JsonValue* id = root.Find("id"); id != nullptr && !id->is_null()) {
    ASSIGN_OR_RETURN(line.id_json, IdJson(*id));
    if (id_json != nullptr) *id_json = line.id_json;
  }
  const api::JsonValue* prompt = root.Find("prompt");
  const bool has_prompt = prompt != nullptr && !prompt->is_null();
  const bool has_messages = root.Find("messages") != nullptr;
  if (has_prompt == has_messages) {
    return InvalidArgument("messages", "a line has either messages or prompt");
  }
  if (has_prompt) RETURN_IF_ERROR(ReadPrompt(*prompt, defaults, line));
  ASSIGN_OR_RETURN(line.chat,
                   api::ParseChatRequest(ChatBody(root, has_prompt, defaults.kind), limits));
  RETURN_IF_ERROR(ReadOurs(root, defaults, line));
  if (line.chat.stream) return InvalidArgument("stream", "stream is not taken here");
  if (line.chat.deadline_ms) {
    return InvalidArgument("deadline_ms",
                           "deadline_ms is not taken here: answers do not depend on time");
  }
  if (!line.chat.seed_given) line.chat.sampling.seed = LineSeed(defaults.seed, index);
  return line;
}

namespace {

// What a line's prompt is, as a chat's prompt: that of a text asks for nothing else.
base::Result<text::ChatPrompt> MakePrompt(const LineRequest& line, const LineModel& model) {
  if (!line.has_prompt()) return model.chat_format.Encode(line.chat.input, model.context_max);
  text::ChatPrompt prompt;
  if (const auto* given = std::get_if<std::vector<base::TokenId>>(&line.prompt)) {
    prompt.tokens = *given;
  } else {
    auto encoded = model.tokenizer.Encode(std::get<std::string>(line.prompt),
                                          text::ControlTokens::kParse, /*add_special=*/true);
    if (!encoded.ok()) return InvalidArgument("prompt", encoded.status().message());
    prompt.tokens = std::move(encoded).value();
  }
  if (prompt.tokens.empty()) return InvalidArgument("prompt", "the prompt is empty");
  return prompt;
}

text::ChatPrompt ShapeOf(const text::ChatPrompt& prompt) {
  return {.start = prompt.start,
          .continues = prompt.continues,
          .calls = prompt.calls,
          .stops = prompt.stops};
}

base::Status TooLong(std::string field, std::string message) {
  return InvalidArgument(std::move(field), std::move(message))
      .WithReason("context_length_exceeded");
}

base::Result<uint32_t> TokensMax(const LineRequest& line, const LineDefaults& defaults,
                                 uint64_t prompt_tokens, uint32_t context_max) {
  if (prompt_tokens >= context_max) {
    return TooLong(
        line.has_prompt() ? "prompt" : "messages",
        fmt::format("the prompt has {} tokens and the context {}", prompt_tokens, context_max));
  }
  const auto room = static_cast<uint32_t>(context_max - prompt_tokens);
  if (line.chat.tokens_max && *line.chat.tokens_max > room) {
    return TooLong("max_tokens",
                   fmt::format("the prompt has {} tokens, max_tokens is {} and the context {}",
                               prompt_tokens, *line.chat.tokens_max, context_max));
  }
  const uint32_t standard = defaults.tokens_max == 0 ? room : std::min(defaults.tokens_max, room);
  return line.chat.tokens_max.value_or(standard);
}

// The answers to a line are one line: it must stay readable.
base::Status CheckEntries(const LineRequest& line, const engine::Request& request) {
  const engine::SamplingParams& sampling = request.sampling;
  if (!sampling.logprobs && !line.prompt_logprobs) return base::OkStatus();
  const uint64_t tokens = uint64_t{line.best_of} * sampling.tokens_max + request.prompt.size();
  const uint64_t entries = tokens * (1 + sampling.top_logprobs);
  if (entries <= kLineEntriesMax) return base::OkStatus();
  return InvalidArgument(
      "max_tokens", fmt::format("the answers could hold {} log-probabilities; a line has {} at "
                                "most: lower max_tokens, n or top_logprobs",
                                entries, kLineEntriesMax));
}

}  // namespace

base::Result<std::vector<engine::Request>> BuildRequests(const LineRequest& line,
                                                         const LineDefaults& defaults,
                                                         const LineModel& model,
                                                         text::ChatPrompt* shape) {
  engine::Request first{};
  ASSIGN_OR_RETURN(text::ChatPrompt prompt, MakePrompt(line, model));
  if (shape != nullptr && !line.has_prompt()) *shape = ShapeOf(prompt);
  RETURN_IF_ERROR(api::ApplyPrompt(line.chat, std::move(prompt), model.grammars, first));
  first.speculation = line.chat.speculation;
  first.priority = line.chat.priority.value_or(engine::Priority::kBatch);
  first.prompt_logprobs = line.prompt_logprobs;
  ASSIGN_OR_RETURN(first.sampling.tokens_max,
                   TokensMax(line, defaults, first.prompt.size(), model.context_max));
  RETURN_IF_ERROR(CheckEntries(line, first));
  std::vector<engine::Request> requests;
  for (uint32_t done = 0; done < line.samples; done += engine::kSamplesMax) {
    engine::Request request = first;
    request.samples = std::min(line.samples - done, engine::kSamplesMax);
    request.sampling.seed = GroupSeed(first.sampling.seed, done / engine::kSamplesMax);
    request.prompt_logprobs = line.prompt_logprobs && done == 0;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace plumb::cli
