// api/models.cc
// See models.h.
#include "api/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "api/json_writer.h"
#include "api/page.h"

namespace plumb::api {

using base::InvalidArgument;

namespace {

std::string Rfc3339(int64_t unix_seconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(unix_seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

// What a request may say, in the words of OpenRouter's lists.
void WriteParameters(JsonWriter& json, const ModelCard& model) {
  json.BeginArray();
  for (const char* name :
       {"max_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "presence_penalty",
        "frequency_penalty", "repetition_penalty", "logit_bias", "logprobs", "top_logprobs"})
    json.String(name);
  if (model.grammars) json.String("response_format").String("structured_outputs");
  if (model.abilities.tools)
    json.String("tools").String("tool_choice").String("parallel_tool_calls");
  if (model.abilities.reasoning) json.String("reasoning_effort");
  json.EndArray();
}

// What the model can do: `capabilities` is ours, the rest as vLLM and OpenRouter have it.
void WriteAbilities(JsonWriter& json, const ModelCard& model) {
  json.Key("context_length").Uint(model.context_max);
  json.Key("max_model_len").Uint(model.context_max);
  json.Key("capabilities").BeginObject().Key("tools").Bool(model.abilities.tools);
  json.Key("reasoning").Bool(model.abilities.reasoning).Key("vision").Bool(false);
  json.Key("structured_outputs").Bool(model.grammars).EndObject();
  json.Key("architecture").BeginObject();
  json.Key("input_modalities").BeginArray().String("text").EndArray();
  json.Key("output_modalities").BeginArray().String("text").EndArray().EndObject();
  json.Key("supported_parameters");
  WriteParameters(json, model);
}

void WriteForAnthropic(JsonWriter& json, const ModelCard& model, std::string_view name) {
  json.BeginObject().Key("type").String("model").Key("id").String(name);
  json.Key("display_name").String(name).Key("created_at").String(Rfc3339(model.created));
  json.Key("lifecycle").String("active").Key("max_input_tokens").Uint(model.context_max);
  json.Key("max_tokens").Uint(model.context_max).EndObject();
}

// OpenAI's members, then what the model can do, then Anthropic's.
void WriteModel(JsonWriter& json, const ModelCard& model, std::string_view name, ModelForm form) {
  if (form == ModelForm::kAnthropic) return WriteForAnthropic(json, model, name);
  json.BeginObject().Key("id").String(name).Key("object").String("model");
  json.Key("created").Int(model.created).Key("owned_by").String("plumb");
  WriteAbilities(json, model);
  json.Key("type").String("model").Key("display_name").String(name);
  json.Key("created_at").String(Rfc3339(model.created)).EndObject();
}

struct NamePage {
  std::span<const std::string> names;
  bool has_more;  // in the direction that was asked for
};

// Where the name stands that the query's `field` gives; `absent` where it gives none.
base::Result<size_t> PlaceOf(std::span<const std::string> names, std::string_view query,
                             const std::string& field, size_t absent) {
  const auto name = net::QueryParam(query, field);
  if (!name) return absent;
  const auto found = std::ranges::find(names, *name);
  if (found == names.end()) return InvalidArgument(field, field + " is no model that is listed");
  return static_cast<size_t>(found - names.begin());
}

base::Result<NamePage> PageOf(std::span<const std::string> names, std::string_view query) {
  ASSIGN_OR_RETURN(const Page page, ReadPage(query, {.limit_max = 1000, .limit_default = 20}));
  ASSIGN_OR_RETURN(const size_t after, PlaceOf(names, query, "after_id", names.size()));
  ASSIGN_OR_RETURN(const size_t before, PlaceOf(names, query, "before_id", names.size()));
  if (before < names.size()) {
    if (after < names.size())
      return InvalidArgument("before_id", "after_id and before_id cannot both be given");
    const size_t count = std::min(page.limit, before);
    return NamePage{names.subspan(before - count, count), before > count};
  }
  if (after < names.size()) names = names.subspan(after + 1);
  const size_t count = std::min(page.limit, names.size());
  return NamePage{names.first(count), names.size() > count};
}

}  // namespace

ModelForm FormFor(const net::HttpHeaders& headers) {
  return headers.Get("anthropic-version") ? ModelForm::kAnthropic : ModelForm::kOpenAi;
}

base::Result<std::string> ModelListJson(const ModelCard& model, ModelForm form,
                                        std::string_view query) {
  NamePage page{.names = model.names, .has_more = false};
  if (form == ModelForm::kAnthropic) {
    ASSIGN_OR_RETURN(page, PageOf(model.names, query));
  }
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  if (form == ModelForm::kOpenAi) json.Key("object").String("list");
  json.Key("data").BeginArray();
  for (const std::string& name : page.names) WriteModel(json, model, name, form);
  const bool none = page.names.empty();
  json.EndArray().Key("has_more").Bool(page.has_more);
  json.Key("first_id").StringOrNull(none ? "" : page.names.front());
  json.Key("last_id").StringOrNull(none ? "" : page.names.back()).EndObject();
  return out;
}

std::optional<std::string> ModelJson(const ModelCard& model, std::string_view name,
                                     ModelForm form) {
  if (std::find(model.names.begin(), model.names.end(), name) == model.names.end())
    return std::nullopt;
  std::string out;
  JsonWriter json(out);
  WriteModel(json, model, name, form);
  return out;
}

}  // namespace plumb::api
