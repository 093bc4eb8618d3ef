// api/multipart.cc
// See multipart.h.
#include "api/multipart.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "net/http.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kBoundaryBytesMax = 70;  // RFC 2046

Status BadForm(std::string message) {
  return InvalidArgument("", "the form cannot be read: " + std::move(message));
}

std::string_view Trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// What stands before the first ';'.
std::string_view TakeValue(std::string_view& rest) {
  const size_t end = std::min(rest.find(';'), rest.size());
  const std::string_view value = Trimmed(rest.substr(0, end));
  rest.remove_prefix(end);
  return value;
}

struct Parameter {
  std::string_view name;
  std::string value;
};

// A quoted value; a backslash keeps quote and backslash alone, since browsers send others as they
// are. False: the quote does not end.
bool TakeQuoted(std::string_view& rest, std::string& value) {
  rest.remove_prefix(1);
  while (!rest.empty() && rest.front() != '"') {
    if (rest.front() == '\\' && rest.size() > 1 && (rest[1] == '"' || rest[1] == '\\'))
      rest.remove_prefix(1);
    value.push_back(rest.front());
    rest.remove_prefix(1);
  }
  if (rest.empty()) return false;
  rest.remove_prefix(1);
  return true;
}

// `; name="value"; ...`. Nothing when it is of another form.
std::optional<std::vector<Parameter>> ReadParameters(std::string_view rest) {
  std::vector<Parameter> parameters;
  for (rest = Trimmed(rest); !rest.empty(); rest = Trimmed(rest)) {
    if (rest.front() != ';') return std::nullopt;
    rest = Trimmed(rest.substr(1));
    if (rest.empty()) break;
    const size_t equals = rest.find('=');
    if (equals == rest.npos) return std::nullopt;
    Parameter parameter{.name = Trimmed(rest.substr(0, equals)), .value = {}};
    rest = Trimmed(rest.substr(equals + 1));
    if (rest.starts_with('"')) {
      if (!TakeQuoted(rest, parameter.value)) return std::nullopt;
    } else {
      parameter.value = TakeValue(rest);
    }
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

const std::string* FindParameter(const std::vector<Parameter>& parameters, std::string_view name) {
  for (const Parameter& parameter : parameters)
    if (net::EqualsIgnoreCase(parameter.name, name)) return &parameter.value;
  return nullptr;
}

Result<std::string> Boundary(std::string_view content_type) {
  if (!IsForm(content_type)) return BadForm("its Content-Type must be multipart/form-data");
  TakeValue(content_type);
  const auto parameters = ReadParameters(content_type);
  const std::string* boundary = parameters ? FindParameter(*parameters, "boundary") : nullptr;
  if (boundary == nullptr || boundary->empty() || boundary->size() > kBoundaryBytesMax)
    return BadForm("its Content-Type must name a boundary of 1 to 70 characters");
  return *boundary;
}

// A line with its CRLF off; nothing when none ends in `rest`.
std::optional<std::string_view> TakeLine(std::string_view& rest) {
  const size_t end = rest.find("\r\n");
  if (end == rest.npos) return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  return line;
}

Status ReadDisposition(std::string_view value, FormPart& part) {
  if (!net::EqualsIgnoreCase(TakeValue(value), "form-data"))
    return BadForm("a part's Content-Disposition must be form-data");
  const auto parameters = ReadParameters(value);
  const std::string* name = parameters ? FindParameter(*parameters, "name") : nullptr;
  if (name == nullptr || name->empty()) return BadForm("a part has no name");
  part.name = *name;
  if (const std::string* filename = FindParameter(*parameters, "filename"))
    part.filename = *filename;
  return base::OkStatus();
}

// The header lines of a part, up to and with the empty one.
Status ReadPartHeader(std::string_view& rest, FormPart& part) {
  std::string_view header = rest.substr(0, kFormPartHeaderBytesMax);
  const size_t bytes = header.size();
  for (;;) {
    const auto line = TakeLine(header);
    if (!line) return BadForm("a part's header does not end, or is too long");
    if (line->empty()) break;
    const size_t colon = line->find(':');
    if (colon == line->npos) return BadForm("a part's header has a line without a colon");
    const std::string_view name = line->substr(0, colon);
    const std::string_view value = Trimmed(line->substr(colon + 1));
    if (net::EqualsIgnoreCase(name, "Content-Disposition")) {
      if (!part.name.empty()) return BadForm("a part has two names");
      RETURN_IF_ERROR(ReadDisposition(value, part));
    } else if (net::EqualsIgnoreCase(name, "Content-Transfer-Encoding")) {
      const bool plain = net::EqualsIgnoreCase(value, "binary") ||
                         net::EqualsIgnoreCase(value, "8bit") ||
                         net::EqualsIgnoreCase(value, "7bit");
      if (!plain) return BadForm("a part is encoded; send its bytes as they are");
    }
  }
  if (part.name.empty()) return BadForm("a part has no name");
  rest.remove_prefix(bytes - header.size());
  return base::OkStatus();
}

}  // namespace

bool IsForm(std::string_view content_type) {
  return net::EqualsIgnoreCase(TakeValue(content_type), "multipart/form-data");
}

Result<std::vector<FormPart>> ReadForm(std::string_view content_type, std::string_view body) {
  ASSIGN_OR_RETURN(const std::string boundary, Boundary(content_type));
  const std::string delimiter = "\r\n--" + boundary;
  std::string_view rest = body;
  if (rest.starts_with("\r\n")) rest.remove_prefix(2);
  if (!rest.starts_with(std::string_view(delimiter).substr(2)))
    return BadForm("its body does not begin with the boundary that its Content-Type names");
  rest.remove_prefix(delimiter.size() - 2);
  std::vector<FormPart> parts;
  while (!rest.starts_with("--")) {  // which ends the last part
    const auto padding = TakeLine(rest);
    if (!padding || !Trimmed(*padding).empty()) return BadForm("it is cut short or malformed");
    if (parts.size() == kFormPartsMax)
      return BadForm(fmt::format("it has more than {} parts", kFormPartsMax));
    FormPart part;
    RETURN_IF_ERROR(ReadPartHeader(rest, part));
    const size_t end = rest.find(delimiter);
    if (end == rest.npos) return BadForm("its last part does not end; was it cut short?");
    part.content = rest.substr(0, end);
    rest.remove_prefix(end + delimiter.size());
    const auto same = [&](const FormPart& other) { return other.name == part.name; };
    if (std::ranges::any_of(parts, same)) return InvalidArgument(part.name, "given twice");
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace plumb::api
