// api/multipart.h
// Reads a form that was sent as multipart/form-data, as clients upload files. Strict and bounded:
// few parts, short headers, no nesting, no encodings. The contents are borrowed, never copied,
// since an upload may be as large as memory allows. Source: RFC 7578, RFC 2046 section 5.1.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plumb::api {

constexpr size_t kFormPartsMax = 16;
constexpr size_t kFormPartHeaderBytesMax = 4096;

struct FormPart {
  std::string name;
  std::optional<std::string> filename;  // as it was sent: a label, never a path
  std::string_view content;             // of the body
};

// Whether a Content-Type says multipart/form-data, with or without a boundary.
bool IsForm(std::string_view content_type);

// The parts in order, no name twice. `content_type` is the header's value, with the boundary.
// kInvalidArgument with the part's name as field, or none: not such a form, cut short, beyond a
// limit, a name twice.
base::Result<std::vector<FormPart>> ReadForm(std::string_view content_type, std::string_view body);

}  // namespace plumb::api
