// api/common_fields.cc
// See common_fields.h.
#include "api/common_fields.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "api/json_fields.h"
#include "api/sampling_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kModelBytesMax = 256;
constexpr size_t kLabelBytesMax = 512;
constexpr size_t kMetadataMax = 16;
constexpr size_t kMetadataKeyBytesMax = 64;
constexpr size_t kMetadataValueBytesMax = 512;

// A text that stands for a value; nothing for null.
template <typename T>
struct Word {
  std::string_view text;
  T value;
};
template <typename T, size_t kCount>
Result<std::optional<T>> ReadWord(const JsonValue& value, const std::string& path,
                                  const Word<T> (&words)[kCount]) {
  ASSIGN_OR_RETURN(const auto text, ReadString(value, path, kLabelBytesMax));
  if (!text) return std::optional<T>();
  std::string known;
  for (const Word<T>& word : words) {
    if (word.text == *text) return std::optional<T>(word.value);
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", word.text);
  }
  return InvalidArgument(path, fmt::format("{} must be one of {}", path, known));
}

constexpr Word<engine::Priority> kPriorities[] = {{"interactive", engine::Priority::kInteractive},
                                                  {"default", engine::Priority::kDefault},
                                                  {"batch", engine::Priority::kBatch}};
// OpenAI's names for the same.
constexpr Word<engine::Priority> kTiers[] = {{"auto", engine::Priority::kDefault},
                                             {"default", engine::Priority::kDefault},
                                             {"scale", engine::Priority::kDefault},
                                             {"flex", engine::Priority::kBatch},
                                             {"priority", engine::Priority::kInteractive}};
constexpr Word<engine::Speculation> kSpeculations[] = {{"off", engine::Speculation::kOff},
                                                       {"ngram", engine::Speculation::kNgram},
                                                       {"draft", engine::Speculation::kDraft},
                                                       {"auto", engine::Speculation::kAuto}};

// Where a field's value goes.
struct Draft {
  const RequestLimits& limits;
  GenerationRequest& request;
  CommonFields& fields;
};

Status ReadModel(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(auto model, ReadString(value, path, kModelBytesMax));
  draft.request.model = std::move(model).value_or("");
  return base::OkStatus();
}

Status ReadStream(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto stream, ReadBool(value, path));
  draft.request.stream = stream.value_or(false);
  return base::OkStatus();
}

// OpenAI's seed is any int64; the two's complement is the engine's 64-bit seed.
Status ReadSeed(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto seed, ReadInteger(value, path, {INT64_MIN, INT64_MAX}));
  draft.request.seed_given = seed.has_value();
  draft.request.sampling.seed = static_cast<uint64_t>(seed.value_or(0));
  return base::OkStatus();
}

Status ReadIgnoreEnd(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto ignore, ReadBool(value, path));
  draft.request.sampling.ignore_end = ignore.value_or(false);
  return base::OkStatus();
}

Status ReadDeadline(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto deadline,
                   ReadInteger(value, path, {1, draft.limits.deadline_ms_max}));
  if (deadline) draft.request.deadline_ms = static_cast<uint32_t>(*deadline);
  return base::OkStatus();
}

Status ReadPriority(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.fields.priority, ReadWord(value, path, kPriorities));
  return base::OkStatus();
}

Status ReadTier(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.fields.tier_priority, ReadWord(value, path, kTiers));
  return base::OkStatus();
}

Status ReadSpeculation(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto speculation, ReadWord(value, path, kSpeculations));
  draft.request.speculation = speculation.value_or(engine::Speculation::kServer);
  return base::OkStatus();
}

constexpr struct {
  std::string_view name;
  Status (*read)(const JsonValue& value, const std::string& path, Draft& draft);
} kFields[] = {
    {"model", ReadModel},          {"stream", ReadStream},           {"seed", ReadSeed},
    {"ignore_eos", ReadIgnoreEnd}, {"deadline_ms", ReadDeadline},    {"priority", ReadPriority},
    {"service_tier", ReadTier},    {"speculation", ReadSpeculation},
};

}  // namespace

Result<bool> ReadCommonField(const JsonMember& member, const std::string& path,
                             const RequestLimits& limits, GenerationRequest& request,
                             CommonFields& fields) {
  Draft draft{limits, request, fields};
  for (const auto& field : kFields) {
    if (field.name != member.name) continue;
    RETURN_IF_ERROR(field.read(member.value, path, draft));
    return true;
  }
  return false;
}

void AppendCommonFieldNames(std::vector<std::string_view>& out) { AppendFieldNames(kFields, out); }

void AppendSharedFieldNames(std::vector<std::string_view>& out) {
  AppendCommonFieldNames(out);
  AppendSamplingFieldNames(out);
}

Status ReadSharedField(const JsonMember& member, const std::string& path,
                       const RequestLimits& limits, GenerationRequest& request,
                       CommonFields& fields) {
  ASSIGN_OR_RETURN(const bool common, ReadCommonField(member, path, limits, request, fields));
  if (common) return base::OkStatus();
  const SamplingLimits sampling_limits{.vocabulary_size = limits.vocabulary_size};
  ASSIGN_OR_RETURN(const bool sampling,
                   ReadSamplingField(member, path, sampling_limits, request.sampling));
  if (sampling) return base::OkStatus();
  return InvalidArgument(path, fmt::format("{} is not a field that this server knows; nothing is "
                                           "ignored silently, so leave it out",
                                           path));
}

Status ReadStreamOptions(const JsonValue& value, const std::string& path, StreamOptions& out) {
  RETURN_IF_ERROR(CheckObject(value, path, 8));
  out.given = !value.is_null();
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    ASSIGN_OR_RETURN(const auto flag, ReadBool(member.value, member_path));
    if (member.name == "include_usage") {
      out.include_usage = flag.value_or(false);
    } else if (member.name != "include_obfuscation") {  // padding against observers: never sent
      return InvalidArgument(member_path, fmt::format("{} is not known here", member_path));
    }
  }
  return base::OkStatus();
}

Status CheckLabel(const JsonValue& value, const std::string& path) {
  return ToStatus(ReadString(value, path, kLabelBytesMax));
}

Status CheckMetadata(const JsonValue& value, const std::string& path) {
  RETURN_IF_ERROR(CheckObject(value, path, kMetadataMax));
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name.size() > kMetadataKeyBytesMax)
      return InvalidArgument(member_path, "a metadata key has at most 64 bytes");
    RETURN_IF_ERROR(ToStatus(ReadString(member.value, member_path, kMetadataValueBytesMax)));
  }
  return base::OkStatus();
}

}  // namespace plumb::api
