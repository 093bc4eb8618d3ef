// api/embedded_files.h
// Files that lie in this binary, so that serving them needs no disk: the build writes them into a
// source of their own, a folder each (cmake/embed.cmake). Read next: api/console.h, api/openapi.h.
#pragma once

#include <span>
#include <string_view>

namespace plumb::api {

// All static text.
struct EmbeddedFile {
  std::string_view name;  // without a folder
  std::string_view type;  // for Content-Type
  std::string_view etag;  // with its quotes; changes with the body
  std::string_view body;
};

// Of web/, the console. Sorted by name; there is an "index.html".
std::span<const EmbeddedFile> WebFiles();
// Of src/api/openapi/. Sorted by name; there is a "base.json".
std::span<const EmbeddedFile> OpenApiFiles();

}  // namespace plumb::api
