// net/http.cc
// Tables and small decoders of HTTP; see http.h.
#include "net/http.h"

#include <array>

namespace plumb::net {

namespace {

constexpr std::array<std::pair<HttpMethod, std::string_view>, 7> kMethods = {{
    {HttpMethod::kGet, "GET"},
    {HttpMethod::kHead, "HEAD"},
    {HttpMethod::kPost, "POST"},
    {HttpMethod::kPut, "PUT"},
    {HttpMethod::kPatch, "PATCH"},
    {HttpMethod::kDelete, "DELETE"},
    {HttpMethod::kOptions, "OPTIONS"},
}};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = Lower(c);
  if (lower >= 'a' && lower <= 'f') return lower - 'a' + 10;
  return -1;
}

}  // namespace

std::string_view MethodName(HttpMethod method) {
  for (const auto& [value, name] : kMethods) {
    if (value == method) return name;
  }
  return "";
}

std::optional<HttpMethod> MethodFromName(std::string_view name) {
  for (const auto& [value, known] : kMethods) {
    if (known == name) return value;
  }
  return std::nullopt;
}

// Names as registered with IANA; 499 is nginx's, used in logs and metrics alone.
std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

std::optional<std::string_view> HttpHeaders::Get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (EqualsIgnoreCase(field.name, name)) return field.value;
  }
  return std::nullopt;
}

size_t HttpHeaders::Count(std::string_view name) const {
  size_t count = 0;
  for (const Field& field : fields_) count += EqualsIgnoreCase(field.name, name) ? 1 : 0;
  return count;
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

std::optional<std::string> QueryParam(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(pair.size() == query.size() ? pair.size() : pair.size() + 1);
    const size_t equals = pair.find('=');
    if (PercentDecode(pair.substr(0, equals)) != name) continue;
    std::string value(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
    for (char& c : value) {
      if (c == '+') c = ' ';
    }
    return PercentDecode(value);
  }
  return std::nullopt;
}

}  // namespace plumb::net
