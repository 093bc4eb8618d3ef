// api/page.cc
// See page.h.
#include "api/page.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "net/http.h"

namespace plumb::api {

using base::InvalidArgument;

base::Result<Page> ReadPage(std::string_view query, const PageLimits& limits) {
  Page page{.limit = limits.limit_default};
  if (const auto limit = net::QueryParam(query, "limit")) {
    const char* end = limit->data() + limit->size();
    const auto [stop, error] = std::from_chars(limit->data(), end, page.limit);
    if (error != std::errc{} || stop != end || page.limit < 1 || page.limit > limits.limit_max)
      return InvalidArgument("limit", fmt::format("limit must be from 1 to {}", limits.limit_max));
  }
  if (const auto order = net::QueryParam(query, "order")) {
    if (*order != "asc" && *order != "desc")
      return InvalidArgument("order", "order must be \"asc\" or \"desc\"");
    page.newest_first = *order == "desc";
  }
  page.after = net::QueryParam(query, "after");
  return page;
}

PageWriter::PageWriter() : json_(out_) {
  json_.BeginObject().Key("object").String("list").Key("data").BeginArray();
}

JsonWriter& PageWriter::Entry(const std::string& id) {
  if (first_id_.empty()) first_id_ = id;
  last_id_ = id;
  return json_;
}

std::string PageWriter::Finish(bool has_more) {
  json_.EndArray().Key("first_id").StringOrNull(first_id_);
  json_.Key("last_id").StringOrNull(last_id_).Key("has_more").Bool(has_more).EndObject();
  return std::move(out_);
}

}  // namespace plumb::api
