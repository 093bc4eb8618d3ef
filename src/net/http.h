// net/http.h
// The values of HTTP that both ends speak: headers, a request that has been checked and sized, a
// response. No sockets here. Read next: net/http_server.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb::net {

// Anything else a client sends is refused with 501 before a handler sees it.
enum class HttpMethod : uint8_t { kGet, kHead, kPost, kPut, kPatch, kDelete, kOptions };

std::string_view MethodName(HttpMethod method);
std::optional<HttpMethod> MethodFromName(std::string_view name);  // case-sensitive, as HTTP is

// "Not Found" and so on; "Unknown" for a status we never send.
std::string_view ReasonPhrase(int status);

// ASCII only, as header names are.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

// Fields in the order of the wire. A value type.
class HttpHeaders {
 public:
  struct Field {
    std::string name;
    std::string value;
  };

  HttpHeaders() = default;
  HttpHeaders(std::initializer_list<Field> fields) : fields_(fields) {}

  void Add(std::string name, std::string value) {
    fields_.push_back({std::move(name), std::move(value)});
  }
  // The first value of `name` (any case), or nothing. Borrowed from this object.
  std::optional<std::string_view> Get(std::string_view name) const;
  size_t Count(std::string_view name) const;
  const std::vector<Field>& fields() const { return fields_; }

 private:
  std::vector<Field> fields_;
};

// One request, complete and within the server's limits. Content is still hostile.
struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string path;     // percent-decoded, starts with '/' ("*" only for OPTIONS); no control bytes
  std::string query;    // as sent, without '?'; see QueryParam
  HttpHeaders headers;  // trailers are dropped
  std::string body;
  std::string peer;  // numeric address of the client, without port
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;  // net adds Date, Content-Length or Transfer-Encoding, and Connection
  std::string body;
};

// The value of a hexadecimal digit of either case; -1 for any other character.
int HexDigit(char c);

// "a%20b" -> "a b"; nothing when a '%' is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecode(std::string_view text);

// The decoded value of the first `name=value` in a query ('+' is a space); nothing when absent or
// not decodable.
std::optional<std::string> QueryParam(std::string_view query, std::string_view name);

}  // namespace plumb::net
