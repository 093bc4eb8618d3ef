// api/embedding_request.cc
// The table of fields, top to bottom: what is honoured, what is ignored; the rest is refused.
#include "api/embedding_request.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "api/common_fields.h"
#include "api/completion_request.h"
#include "api/json_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using engine::Pooling;

namespace {

// What the fields add up to while the object is read.
struct Draft {
  const RequestLimits& limits;
  const EmbeddingOptions& options;
  EmbeddingRequest request;
  CommonFields common;
};

using FieldReader = Status (*)(const JsonValue& value, const std::string& path, Draft& draft);
struct Field {
  std::string_view name;
  FieldReader read;
};

Status AddInput(const JsonValue& value, const std::string& path, JsonKind kind, Draft& draft) {
  if (value.kind != kind) {
    return InvalidArgument(path,
                           "input is one text, an array of texts, an array of token ids, or an "
                           "array of such arrays, all of one kind");
  }
  RawPrompt prompt;
  if (kind == JsonKind::kArray) {
    ASSIGN_OR_RETURN(prompt.tokens, ReadTokenIds(value, path, draft.limits.vocabulary_size));
  } else if (value.text.empty()) {
    return InvalidArgument(path, fmt::format("{} is an empty text; leave it out", path));
  } else {
    prompt.text = value.text;
  }
  draft.request.prompts.push_back(std::move(prompt));
  return base::OkStatus();
}

Status ReadInput(const JsonValue& value, const std::string& path, Draft& draft) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind == JsonKind::kString) return AddInput(value, path, JsonKind::kString, draft);
  if (value.kind != JsonKind::kArray) return WrongKind(value, path, "a string or an array");
  if (value.items.empty()) return InvalidArgument(path, "input is an empty array");
  const JsonKind kind = value.items.front().kind;
  if (kind == JsonKind::kNumber) return AddInput(value, path, JsonKind::kArray, draft);
  RETURN_IF_ERROR(CheckArray(value, path, kEmbeddingInputsMax));
  const JsonKind wanted = kind == JsonKind::kArray ? JsonKind::kArray : JsonKind::kString;
  for (size_t i = 0; i < value.items.size(); ++i)
    RETURN_IF_ERROR(AddInput(value.items[i], IndexPath(path, i), wanted, draft));
  return base::OkStatus();
}

Status ReadEncoding(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const std::string_view word, ReadWord(value, path, {"float", "base64"}));
  if (word == "base64") draft.request.encoding = EmbeddingEncoding::kBase64;
  return base::OkStatus();
}

Status ReadPooling(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const std::string_view word, ReadWord(value, path, {"mean", "last"}));
  if (!word.empty()) draft.request.pooling = word == "last" ? Pooling::kLast : Pooling::kMean;
  return base::OkStatus();
}

// Only of models that are trained for it may an embedding be cut; none that is served here is.
Status ReadDimensions(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {1, INT32_MAX}));
  const uint32_t own = draft.options.dimensions;
  if (!count || *count == own) return base::OkStatus();
  return InvalidArgument(
      path, fmt::format("this model's embeddings have {} dimensions and cannot be shortened; "
                        "leave dimensions out",
                        own));
}

constexpr Field kFields[] = {
    // Honoured.
    {"input", ReadInput},
    {"encoding_format", ReadEncoding},
    {"dimensions", ReadDimensions},
    {"pooling", ReadPooling},
    // Checked and ignored.
    {"user", [](const JsonValue& v, const std::string& p, Draft&) { return CheckLabel(v, p); }},
};
// Of those that all requests share, the ones that say something here.
constexpr std::string_view kCommon[] = {"model", "priority", "service_tier", "deadline_ms"};

Status ReadMember(const JsonMember& member, Draft& draft) {
  const std::string path = MemberPath("", member.name);
  for (const Field& field : kFields)
    if (field.name == member.name) return field.read(member.value, path, draft);
  for (const std::string_view name : kCommon) {
    if (name != member.name) continue;
    return ToStatus(ReadCommonField(member, path, draft.limits, draft.request, draft.common));
  }
  return InvalidArgument(path, fmt::format("{} is not a field that this server knows here; nothing "
                                           "is ignored silently, so leave it out",
                                           path));
}

Status CheckNumbers(const Draft& draft) {
  const uint64_t numbers = uint64_t{draft.options.dimensions} * draft.request.prompts.size();
  if (numbers <= kEmbeddingNumbersMax) return base::OkStatus();
  return InvalidArgument(
      "input", fmt::format("{} embeddings of {} numbers are more than an answer may hold; send at "
                           "most {} inputs at once",
                           draft.request.prompts.size(), draft.options.dimensions,
                           kEmbeddingNumbersMax / draft.options.dimensions));
}

}  // namespace

std::vector<std::string_view> EmbeddingFieldNames() {
  std::vector<std::string_view> names(std::begin(kCommon), std::end(kCommon));
  AppendFieldNames(kFields, names);
  return names;
}

Result<EmbeddingRequest> ParseEmbeddingRequest(std::string_view body, const RequestLimits& limits,
                                               const EmbeddingOptions& options) {
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, limits.json));
  Draft draft{.limits = limits, .options = options, .request = {}, .common = {}};
  EmbeddingRequest& request = draft.request;
  request.pooling = options.pooling;
  request.tokens_max = 0;
  for (const JsonMember& member : root.members) RETURN_IF_ERROR(ReadMember(member, draft));
  if (request.model.empty()) return InvalidArgument("model", "model is missing");
  if (request.prompts.empty()) return InvalidArgument("input", "input is missing");
  RETURN_IF_ERROR(CheckNumbers(draft));
  draft.common.Apply(request);
  return std::move(request);
}

}  // namespace plumb::api
