// api/data_calls.h
// What the calls of files and of batches share. Read next: api/file_calls.h, api/batch_calls.h.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/page.h"
#include "api/routes.h"
#include "base/disk.h"
#include "base/result.h"
#include "telemetry/log.h"

namespace plumb::api {

// An answer, and the file that follows its body, null mostly.
struct DataAnswer {
  net::HttpResponse response;
  std::shared_ptr<const base::MappedFile> file;
};

// OpenAI's error body; what is our fault goes to the log as well, where it may name paths.
net::HttpResponse CallError(const base::Status& status, telemetry::Logger& logger,
                            const Call& call);

// "there is no file with id 'x'", with that field.
base::Status NoSuch(std::string_view what, std::string_view id, std::string field);

// `all`, oldest first, becomes what is behind `after` in the order that the page wants.
// kInvalidArgument, field "after": it names none of them.
template <typename Entry>
base::Status TakePage(const Page& page, std::vector<const Entry*>& all) {
  if (page.newest_first) std::ranges::reverse(all);
  if (!page.after) return base::OkStatus();
  const auto at =
      std::ranges::find_if(all, [&](const Entry* entry) { return entry->id == *page.after; });
  if (at == all.end()) return base::InvalidArgument("after", "after names nothing of this list");
  all.erase(all.begin(), at + 1);
  return base::OkStatus();
}

}  // namespace plumb::api
