// api/page.h
// Pages of a list, as OpenAI's lists are asked for: `limit`, `order` and `after` of a query, and
// the object around what is shown.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/json_writer.h"
#include "base/result.h"

namespace plumb::api {

struct PageLimits {
  size_t limit_max = 100;
  size_t limit_default = 20;
};

// A value type.
struct Page {
  size_t limit = 0;
  bool newest_first = true;
  std::optional<std::string> after;  // an id: the page begins behind it
};

// kInvalidArgument: limit, order. Thread: any; pure.
base::Result<Page> ReadPage(std::string_view query, const PageLimits& limits = {});

// Writes {"object":"list","data":[...],"first_id","last_id","has_more"}. Thread: one at a time.
class PageWriter {
 public:
  PageWriter();
  PageWriter(const PageWriter&) = delete;
  PageWriter& operator=(const PageWriter&) = delete;

  // Where the next entry is to be written.
  JsonWriter& Entry(const std::string& id);
  // The whole object; once.
  std::string Finish(bool has_more);

 private:
  std::string out_;
  JsonWriter json_;
  std::string first_id_;
  std::string last_id_;
};

}  // namespace plumb::api
