// api/responses_dialect.cc
// See responses_dialect.h.
#include "api/responses_dialect.h"

#include <utility>

#include "api/json_writer.h"
#include "api/responses_writer.h"
#include "base/random.h"

namespace plumb::api {

using base::Result;

namespace {

// What the store has of that caller's.
ResponsesContext ContextOf(const ResponsesStore& store, const base::Hash256& caller) {
  ResponsesContext context;
  context.response = [&store, caller](const std::string& id) -> std::optional<ItemList> {
    const auto kept = store.Find(caller, id);
    if (kept == nullptr || kept->running) return std::nullopt;
    ItemList items = kept->input;
    items.insert(items.end(), kept->output.begin(), kept->output.end());
    return items;
  };
  context.item = [&store, caller](const std::string& id) { return store.FindItem(caller, id); };
  context.number = base::EntropySeed();
  return context;
}

// Names that other parts know fields by, and what they are called here. Beginnings of paths: a
// place in the model's list of messages is none in the request's.
struct FieldName {
  std::string_view elsewhere;
  std::string_view here;
};
constexpr FieldName kFieldNames[] = {
    {"messages", "input"},
    {"response_format", "text.format"},
    {"reasoning_effort", "reasoning.effort"},
    {"tool_choice.function.name", "tool_choice.name"},
    {"logprobs", "top_logprobs"},
};

}  // namespace

net::HttpResponse ResponsesErrorResponse(const ApiError& error) {
  ApiError named = error;
  for (const FieldName& name : kFieldNames)
    if (error.param.starts_with(name.elsewhere)) named.param = name.here;
  // "tools[0].function.name": a place in the model's list of tools, as above.
  const bool told = error.param.starts_with("tools[") && error.param.ends_with(".function.name");
  if (told) named.param = "tools";
  return ErrorResponse(named);
}

Result<ReadBody> ResponsesDialect::Read(std::string_view body, const BodyOrigin& origin) const {
  ASSIGN_OR_RETURN(ResponsesRequest request,
                   ParseResponsesRequest(body, limits_, ContextOf(store_, origin.isolation)));
  ReadBody read;
  read.detached = request.background;
  auto plan = std::make_shared<ResponsesPlan>();
  plan->echo = std::move(request.echo);
  plan->tools = std::move(request.tools);
  plan->input = std::move(request.items);
  plan->caller = origin.isolation;
  plan->store = request.store;
  plan->background = request.background;
  plan->encrypted_reasoning = request.encrypted_reasoning;
  plan->request = origin.id;
  read.writer = [this, plan = std::move(plan)](AnswerHead head, std::vector<ReadPrompt>) {
    return std::make_unique<ResponsesWriter>(std::move(head), std::move(*plan), tokenizer_, store_);
  };
  read.request = std::move(request);
  return read;
}

Result<ReadBody> ResponsesCountDialect::Read(std::string_view body,
                                             const BodyOrigin& origin) const {
  ASSIGN_OR_RETURN(ResponsesRequest request,
                   ParseResponsesRequest(body, limits_, ContextOf(store_, origin.isolation)));
  ReadBody read;
  read.count = [](const std::vector<ReadPrompt>& prompts) {
    std::string out;
    JsonWriter json(out);
    json.BeginObject().Key("object").String("response.input_tokens");
    json.Key("input_tokens").Uint(prompts.front().tokens.size()).EndObject();
    return out;
  };
  read.request = std::move(request);
  return read;
}

}  // namespace plumb::api
