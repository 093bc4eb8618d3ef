// api/responses_calls.h
// What can be done with an answer of the Responses API that was kept: read it, list what it
// answers, remove it, stop it while it runs in the background. Functions of the store and a call's
// path and query, without a socket. Read next: api/responses_store.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/responses_store.h"
#include "base/hash.h"
#include "engine/request.h"
#include "net/http.h"

namespace plumb::api {

// Ends the request's generation; an unknown id is no error.
using CancelRequest = std::function<void(engine::RequestId id)>;
// Ends what else there is of an answer that was removed: its generation, if it runs, and its copy.
using EndRemoved = std::function<void(const KeptResponse& removed)>;

// GET /v1/responses/{}: 200 with the answer, 404 (also for one of another caller).
net::HttpResponse GetResponse(const ResponsesStore& store, const base::Hash256& caller,
                              const std::string& id, std::string_view query);
// GET /v1/responses/{}/input_items: a page of the items that it answers; limit (1 to 100, default
// 20), order ("desc", the newest first, or "asc"), after (an item's id).
net::HttpResponse ListInputItems(const ResponsesStore& store, const base::Hash256& caller,
                                 const std::string& id, std::string_view query);
// DELETE /v1/responses/{}: one that runs is stopped, too.
net::HttpResponse DeleteResponse(ResponsesStore& store, const base::Hash256& caller,
                                 const std::string& id, const EndRemoved& end);
// POST /v1/responses/{}/cancel: the answer as it is then; 400 for one that was not asked for in the
// background.
net::HttpResponse CancelResponse(ResponsesStore& store, const base::Hash256& caller,
                                 const std::string& id, const CancelRequest& cancel);

}  // namespace plumb::api
