// api/sampling_fields.cc
// One row of the table per number; the lists have a function each.
#include "api/sampling_fields.h"

#include <fmt/format.h>

#include <cfloat>
#include <charconv>

#include "api/json_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using engine::SamplingParams;

namespace {

struct FloatField {
  std::string_view name;
  NumberRange range;
  float SamplingParams::* member;
};

constexpr FloatField kFloatFields[] = {
    {"temperature", {0, 2}, &SamplingParams::temperature},
    {"top_p", {0, 1}, &SamplingParams::top_p},  // 0 becomes the smallest positive: one candidate
    {"min_p", {0, 1}, &SamplingParams::min_p},
    {"presence_penalty", {-2, 2}, &SamplingParams::presence_penalty},
    {"frequency_penalty", {-2, 2}, &SamplingParams::frequency_penalty},
    // A divisor of logits: nearer to 0 they would overflow.
    {"repetition_penalty", {0.01, 2}, &SamplingParams::repetition_penalty},
};

constexpr double kBiasMax = 100;

Status ReadTopK(const JsonValue& value, const std::string& path, const SamplingLimits&,
                SamplingParams& out) {
  ASSIGN_OR_RETURN(const auto top_k, ReadInteger(value, path, {0, INT32_MAX}));
  if (top_k) out.top_k = static_cast<uint32_t>(*top_k);
  return base::OkStatus();
}

// A key of logit_bias: a decimal token id without sign or leading zeros.
Result<base::TokenId> ReadTokenKey(const std::string& key, const std::string& path,
                                   const SamplingLimits& limits) {
  uint32_t id = 0;
  const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  const bool decimal =
      error == std::errc{} && stop == key.data() + key.size() && (key.size() == 1 || key[0] != '0');
  if (!decimal || id >= limits.vocabulary_size) {
    return InvalidArgument(
        path, fmt::format("a key of logit_bias is a token id below {}", limits.vocabulary_size));
  }
  return base::TokenId{id};
}

Status ReadLogitBias(const JsonValue& value, const std::string& path, const SamplingLimits& limits,
                     SamplingParams& out) {
  RETURN_IF_ERROR(CheckObject(value, path, engine::kLogitBiasMax));
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    ASSIGN_OR_RETURN(const base::TokenId token, ReadTokenKey(member.name, member_path, limits));
    ASSIGN_OR_RETURN(const auto bias, ReadNumber(member.value, member_path, {-kBiasMax, kBiasMax}));
    if (!bias) return WrongKind(member.value, member_path, "a number");
    out.logit_bias.push_back({token, static_cast<float>(*bias)});
  }
  return base::OkStatus();
}

Status AddStop(const JsonValue& value, const std::string& path, SamplingParams& out) {
  ASSIGN_OR_RETURN(auto stop, ReadString(value, path, engine::kStopStringBytesMax));
  if (!stop) return WrongKind(value, path, "a string");
  if (stop->empty()) return InvalidArgument(path, fmt::format("{} is empty", path));
  out.stop.push_back(std::move(*stop));
  return base::OkStatus();
}

Status ReadStop(const JsonValue& value, const std::string& path, const SamplingLimits&,
                SamplingParams& out) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind == JsonKind::kString) return AddStop(value, path, out);
  if (value.kind != JsonKind::kArray) return WrongKind(value, path, "a string or an array of them");
  RETURN_IF_ERROR(CheckArray(value, path, engine::kStopStringsMax));
  for (size_t i = 0; i < value.items.size(); ++i)
    RETURN_IF_ERROR(AddStop(value.items[i], IndexPath(path, i), out));
  return base::OkStatus();
}

Status ReadStopTokens(const JsonValue& value, const std::string& path, const SamplingLimits& limits,
                      SamplingParams& out) {
  RETURN_IF_ERROR(CheckArray(value, path, engine::kStopTokensMax));
  for (size_t i = 0; i < value.items.size(); ++i) {
    const std::string item_path = IndexPath(path, i);
    const IntegerRange range{0, static_cast<int64_t>(limits.vocabulary_size) - 1};
    ASSIGN_OR_RETURN(const auto id, ReadInteger(value.items[i], item_path, range));
    if (!id) return WrongKind(value.items[i], item_path, "an integer");
    out.stop_tokens.push_back(base::TokenId{static_cast<uint32_t>(*id)});
  }
  return base::OkStatus();
}

constexpr struct {
  std::string_view name;
  Status (*read)(const JsonValue& value, const std::string& path, const SamplingLimits& limits,
                 SamplingParams& out);
} kOtherFields[] = {
    {"top_k", ReadTopK},
    {"logit_bias", ReadLogitBias},
    {"stop", ReadStop},
    {"stop_token_ids", ReadStopTokens},
};

}  // namespace

Result<bool> ReadSamplingField(const JsonMember& member, const std::string& path,
                               const SamplingLimits& limits, SamplingParams& out) {
  for (const FloatField& field : kFloatFields) {
    if (field.name != member.name) continue;
    ASSIGN_OR_RETURN(const auto number, ReadNumber(member.value, path, field.range));
    if (number) out.*field.member = static_cast<float>(*number);
    if (out.top_p <= 0.0f) out.top_p = FLT_MIN;  // also what a tiny double rounds to
    return true;
  }
  for (const auto& field : kOtherFields) {
    if (field.name != member.name) continue;
    RETURN_IF_ERROR(field.read(member.value, path, limits, out));
    return true;
  }
  return false;
}

void AppendSamplingFieldNames(std::vector<std::string_view>& out) {
  for (const FloatField& field : kFloatFields) out.push_back(field.name);
  for (const auto& field : kOtherFields) out.push_back(field.name);
}

}  // namespace plumb::api
