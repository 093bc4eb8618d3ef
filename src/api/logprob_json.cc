// api/logprob_json.cc
// One token, then a list of them; behind api/logprob_json.h.
#include "api/logprob_json.h"

namespace plumb::api {
namespace {

// OpenAI's stand-in for "so unlikely that it does not matter".
constexpr float kLogprobMin = -9999.0f;

void WriteToken(JsonWriter& json, base::TokenId token, float logprob,
                const text::Tokenizer& tokenizer, const LogprobForm& form) {
  const std::string_view bytes = tokenizer.TokenBytes(token);
  // A control token stands for no bytes: it is shown by name.
  json.Key("token").String(bytes.empty() ? tokenizer.TokenName(token) : bytes);
  if (form.token_ids) json.Key("token_id").Uint(base::Index(token));
  json.Key("logprob").Float(JsonLogprob(logprob));
  if (!form.bytes) return;
  json.Key("bytes");
  if (bytes.empty()) {
    json.Null();
    return;
  }
  json.BeginArray();
  for (const char byte : bytes) json.Uint(static_cast<unsigned char>(byte));
  json.EndArray();
}

}  // namespace

float JsonLogprob(float logprob) { return logprob >= kLogprobMin ? logprob : kLogprobMin; }

void WriteLogprobList(JsonWriter& json, std::span<const engine::TokenLogprob> logprobs,
                      const text::Tokenizer& tokenizer, const LogprobForm& form) {
  json.BeginArray();
  for (const engine::TokenLogprob& entry : logprobs) {
    json.BeginObject();
    WriteToken(json, entry.token, entry.logprob, tokenizer, form);
    json.Key(form.top_name).BeginArray();
    for (const engine::TopLogprob& top : entry.top) {
      json.BeginObject();
      WriteToken(json, top.token, top.logprob, tokenizer, form);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

}  // namespace plumb::api
