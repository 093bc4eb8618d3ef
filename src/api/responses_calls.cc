// api/responses_calls.cc
// See responses_calls.h.
#include "api/responses_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "api/json_writer.h"
#include "api/page.h"
#include "api/responses_dialect.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Status;
using net::HttpResponse;

namespace {

constexpr size_t kIdShownMax = 64;

HttpResponse ErrorOf(const Status& status) { return ErrorResponse(ErrorFromStatus(status)); }

HttpResponse Missing(const std::string& id) {
  const std::string shown = id.substr(0, kIdShownMax);
  return ErrorOf(
      base::NotFound(fmt::format("no answer with id '{}' is kept here", shown)).WithField("id"));
}

std::string PageJson(const ItemList& items, size_t first, size_t limit) {
  const size_t end = std::min(items.size(), first + limit);
  PageWriter page;
  for (size_t i = first; i < end; ++i) WriteItem(page.Entry(items[i]->id), *items[i]);
  return page.Finish(end < items.size());
}

}  // namespace

HttpResponse GetResponse(const ResponsesStore& store, const base::Hash256& caller,
                         const std::string& id, std::string_view query) {
  if (net::QueryParam(query, "stream") == "true") {
    return ErrorOf(InvalidArgument("stream",
                                   "an answer that was kept is not streamed again; "
                                   "leave stream out"));
  }
  const auto kept = store.Find(caller, id);
  return kept == nullptr ? Missing(id) : JsonResponse(kept->json);
}

HttpResponse ListInputItems(const ResponsesStore& store, const base::Hash256& caller,
                            const std::string& id, std::string_view query) {
  const auto page = ReadPage(query);
  if (!page.ok()) return ErrorOf(page.status());
  const auto kept = store.Find(caller, id);
  if (kept == nullptr) return Missing(id);
  ItemList items = kept->input;
  if (page->newest_first) std::ranges::reverse(items);
  size_t first = 0;
  if (page->after) {
    const auto at =
        std::ranges::find_if(items, [&](const auto& item) { return item->id == *page->after; });
    if (at == items.end())
      return ErrorOf(InvalidArgument("after", "after names no item of this answer's input"));
    first = static_cast<size_t>(at - items.begin()) + 1;
  }
  return JsonResponse(PageJson(items, first, page->limit));
}

HttpResponse DeleteResponse(ResponsesStore& store, const base::Hash256& caller,
                            const std::string& id, const EndRemoved& end) {
  const auto kept = store.Find(caller, id);
  if (kept == nullptr || !store.Remove(caller, id)) return Missing(id);
  end(*kept);
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("id").String(kept->id).Key("object").String("response");
  json.Key("deleted").Bool(true).EndObject();
  return JsonResponse(std::move(out));
}

HttpResponse CancelResponse(ResponsesStore& store, const base::Hash256& caller,
                            const std::string& id, const CancelRequest& cancel) {
  const auto kept = store.Find(caller, id);
  if (kept == nullptr) return Missing(id);
  if (!kept->background) {
    return ErrorOf(InvalidArgument("id",
                                   "only an answer that was asked for with background: "
                                   "true can be cancelled; close the connection of others"));
  }
  if (kept->running) {
    auto cancelled = std::make_shared<KeptResponse>();
    cancelled->id = kept->id;
    cancelled->json = kept->cancelled_json;
    cancelled->input = kept->input;
    cancelled->background = true;
    cancelled->idempotent_copy = kept->idempotent_copy;
    store.Replace(caller, std::move(cancelled));
    cancel(kept->request);
  }
  const auto now = store.Find(caller, id);  // the answer may have come in between
  return now == nullptr ? Missing(id) : JsonResponse(now->json);
}

}  // namespace plumb::api
