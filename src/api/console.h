// api/console.h
// GET / and GET /console/{}: the console, a page for people, from the files in this binary. The one
// idea: the page may load and reach this server alone, run its own scripts alone, and be framed by
// nobody, so what a model writes can do nothing. Read next: web/README.md.
#pragma once

#include <string_view>

#include "net/http.h"

namespace plumb::api {

constexpr std::string_view kConsoleRoute = "/";
constexpr std::string_view kConsoleFilesRoute = "/console/{}";

// The page, or one of its files by name: 200; 304 when If-None-Match names what there is; 404. A
// browser asks each time whether its copy still holds. Needs no key, and tells nothing of the
// model. Thread: any.
net::HttpResponse ConsolePage(const net::HttpRequest& request);
net::HttpResponse ConsoleFile(const net::HttpRequest& request, std::string_view name);

// Whether the value of If-None-Match names `etag`: "*", or a list of tags, weak ones too.
bool MatchesTag(std::string_view if_none_match, std::string_view etag);

}  // namespace plumb::api
