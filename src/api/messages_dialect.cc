// api/messages_dialect.cc
// See messages_dialect.h.
#include "api/messages_dialect.h"

#include <fmt/format.h>

#include <memory>

#include "api/json_writer.h"
#include "api/messages_writer.h"

namespace plumb::api {

using base::Result;
using base::Status;

namespace {

// 2023-06-01, 2026-10-21 and so on.
bool IsDate(std::string_view version) {
  if (version.size() != 10) return false;
  for (size_t i = 0; i < version.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    const bool digit = version[i] >= '0' && version[i] <= '9';
    if (dash ? version[i] != '-' : !digit) return false;
  }
  return true;
}

std::string CountJson(const std::vector<ReadPrompt>& prompts) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("input_tokens").Uint(prompts.front().tokens.size()).EndObject();
  return out;
}

}  // namespace

// What versions differ in are fields that were taken away, which are honoured here all the same; so
// one that is newer than this code is taken, too, since its SDKs have to work.
Status MessagesDialect::CheckHeaders(const net::HttpHeaders& headers) const {
  const auto version = headers.Get("anthropic-version");
  if (!version || IsDate(*version)) return base::OkStatus();
  return base::InvalidArgument("anthropic-version", "a version is a date, as 2023-06-01");
}

Result<ReadBody> MessagesDialect::Read(std::string_view body, const BodyOrigin& origin) const {
  ASSIGN_OR_RETURN(MessagesRequest request,
                   ParseMessagesRequest(body, limits_, use_, origin.anthropic_beta));
  ReadBody read;
  if (use_ == MessagesUse::kCount) {
    read.count = CountJson;
  } else {
    const MessagesShape shape{
        .prompt_tokens = 0,
        .show_thinking = request.show_thinking,
        .warm_only = request.warm_only,
        .reports_edits = request.reports_edits,
        .hour_first = !request.cache_marks.empty() && request.cache_marks.front().time == kOneHour};
    read.writer = [shape](AnswerHead head, std::vector<ReadPrompt> prompts) {
      MessagesShape complete = shape;
      complete.prompt_tokens = prompts.front().tokens.size();
      return std::make_unique<MessagesWriter>(std::move(head), complete);
    };
  }
  read.request = std::move(request);
  return read;
}

// In these words agents look for both numbers.
std::string MessagesDialect::TooLongMessage(uint64_t prompt_tokens, uint64_t context_max) const {
  return fmt::format("prompt is too long: {} tokens > {} maximum", prompt_tokens, context_max - 1);
}

}  // namespace plumb::api
