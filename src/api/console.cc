// api/console.cc
// See console.h.
#include "api/console.h"

#include <algorithm>
#include <string>

#include "api/embedded_files.h"
#include "api/errors.h"
#include "base/check.h"

namespace plumb::api {

namespace {

constexpr std::string_view kPage = "index.html";

// Scripts, styles and images are files of ours, and there is no other origin. Trusted types: the
// browser itself refuses to read text as HTML.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

constexpr struct {
  std::string_view name;
  std::string_view value;
} kHeaders[] = {
    {"Content-Security-Policy", kPolicy},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    // Kept, but asked for again each time: a new binary shows at once.
    {"Cache-Control", "no-cache"},
};

const EmbeddedFile* Find(std::string_view name) {
  const auto files = WebFiles();
  const auto found = std::ranges::lower_bound(files, name, {}, &EmbeddedFile::name);
  return found != files.end() && found->name == name ? &*found : nullptr;
}

net::HttpResponse Answer(const net::HttpRequest& request, const EmbeddedFile& file) {
  net::HttpResponse response;
  for (const auto& [name, value] : kHeaders)
    response.headers.Add(std::string(name), std::string(value));
  response.headers.Add("ETag", std::string(file.etag));
  const auto known = request.headers.Get("If-None-Match");
  if (known && MatchesTag(*known, file.etag)) {
    response.status = 304;
    return response;
  }
  response.headers.Add("Content-Type", std::string(file.type));
  response.body = file.body;
  return response;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

bool MatchesTag(std::string_view if_none_match, std::string_view etag) {
  if (Trim(if_none_match) == "*") return true;
  while (!if_none_match.empty()) {
    const size_t comma = if_none_match.find(',');
    std::string_view tag = Trim(if_none_match.substr(0, comma));
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag) return true;
    if (comma == if_none_match.npos) break;
    if_none_match.remove_prefix(comma + 1);
  }
  return false;
}

net::HttpResponse ConsolePage(const net::HttpRequest& request) {
  const EmbeddedFile* page = Find(kPage);
  CHECK(page != nullptr) << "the build left out web/" << kPage;
  return Answer(request, *page);
}

net::HttpResponse ConsoleFile(const net::HttpRequest& request, std::string_view name) {
  const EmbeddedFile* file = Find(name);
  if (file != nullptr && name != kPage) return Answer(request, *file);
  ApiError error = ErrorFromHttp(404, "the console has no such file");
  error.code = "unknown_url";
  return ErrorResponse(error);
}

}  // namespace plumb::api
