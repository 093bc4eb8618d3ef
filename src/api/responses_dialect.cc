// api/responses_dialect.cc
// See responses_dialect.h.
#include "api/responses_dialect.h"

#include <utility>

#include "api/idempotency.h"
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

// Of errors about the prompt.
std::function<base::Status(const base::Status&)> RewordFor(ResponsesPlaces places) {
  return [places = std::move(places)](const base::Status& status) {
    return InResponsesWords(status, places);
  };
}

}  // namespace

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
  if (!origin.idempotency_key.empty()) {
    plan->idempotent_copy = {.id = IdempotencyId(origin.isolation, origin.idempotency_key),
                             .number = static_cast<uint64_t>(origin.id)};
  }
  read.writer = [this, plan = std::move(plan)](AnswerHead head, std::vector<ReadPrompt>) {
    return std::make_unique<ResponsesWriter>(std::move(head), std::move(*plan), tokenizer_, store_);
  };
  read.reword = RewordFor(std::move(request.places));
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
  read.reword = RewordFor(std::move(request.places));
  read.request = std::move(request);
  return read;
}

}  // namespace plumb::api
