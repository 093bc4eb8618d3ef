// api/web_files.h
// The files of web/, the console, as they lie in this binary: the build writes them into
// web_files.cc (cmake/web.cmake), so that serving them needs no disk. Read next: api/console.h.
#pragma once

#include <span>
#include <string_view>

namespace plumb::api {

// All static text.
struct WebFile {
  std::string_view name;  // of the file in web/, without a folder
  std::string_view type;  // for Content-Type
  std::string_view etag;  // with its quotes; changes with the body
  std::string_view body;
};

// Sorted by name; there is an "index.html".
std::span<const WebFile> WebFiles();

}  // namespace plumb::api
