// tests/fuzz/http_request_fuzz.cc
// Arbitrary bytes as what a client sends on a connection: requests, one behind the other. Besides
// not crashing: every cut gives the same requests and the same refusal; what is accepted keeps the
// promises of net/http.h and is read as the same request when it is written in the plainest form;
// and a smaller limit for the body, which is set while it comes, changes nothing but that.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "cuts.h"
#include "net/request_parser.h"

namespace {

namespace net = plumb::net;

using plumb::fuzz::Pieces;
using Phase = net::RequestParser::Phase;

constexpr uint64_t kBodyBytesMax = 64;
constexpr uint64_t kUploadBytesMax = 256;
constexpr uint64_t kAdmittedBytesMax = 16;

net::HttpLimits Limits(uint32_t times) {
  return {.target_bytes_max = 128 * times,
          .header_bytes_max = 1024 * times,
          .header_fields_max = 8,
          .body_bytes_max = kBodyBytesMax,
          .body_limits = {{.path = "/files", .bytes_max = kUploadBytesMax}}};
}

const net::HttpLimits kLimits = Limits(1);
const net::HttpLimits kWideLimits = Limits(4);  // for what is written anew, in which % takes three

// What was read of one connection, in a form that can be compared.
struct Reading {
  std::vector<std::string> requests;
  Phase phase = Phase::kIdle;
  std::string end;  // of a refusal, else of the request that is not whole
};

// All that the reading of a request says of it.
std::string Text(const net::HttpRequest& request, const net::RequestParser& parser) {
  std::string text =
      fmt::format("{} {} ?{} 1.0:{} keep:{} continue:{} {}s\n", net::MethodName(request.method),
                  request.path, request.query, parser.is_http10(), parser.keep_alive(),
                  parser.expects_continue(), parser.body_time_max().seconds());
  for (const auto& [name, value] : request.headers.fields())
    text += fmt::format("{}: {}\n", name, value);
  return text + request.body;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

void CheckHead(const net::HttpRequest& request) {
  const bool asterisk = request.path == "*" && request.method == net::HttpMethod::kOptions;
  CHECK(request.path.starts_with('/') || asterisk) << request.path;
  CHECK(std::ranges::none_of(request.path, IsControl));
  CHECK(std::ranges::none_of(request.query, [](char c) { return IsControl(c) || c == ' '; }));
  CHECK(request.path.size() + request.query.size() <= kLimits.target_bytes_max);
  CHECK(request.headers.fields().size() <= kLimits.header_fields_max);
  for (const auto& [name, value] : request.headers.fields()) {
    CHECK(!name.empty() && name.find_first_of(" \t\r\n:") == name.npos) << name;
    CHECK(std::ranges::none_of(value, [](char c) { return IsControl(c) && c != '\t'; }));
    CHECK(!value.starts_with(' ') && !value.ends_with(' ')) << value;
  }
}

void CheckWhole(const net::HttpRequest& request, bool is_http10) {
  CheckHead(request);
  const size_t hosts = request.headers.Count("Host");
  CHECK(hosts == 1 || (hosts == 0 && is_http10)) << hosts;
  const auto length = request.headers.Get("Content-Length");
  const size_t encodings = request.headers.Count("Transfer-Encoding");
  CHECK(request.headers.Count("Content-Length") + encodings <= 1);
  if (length) CHECK(std::stoull(std::string(*length)) == request.body.size()) << *length;
  CHECK(length || encodings == 1 || request.body.empty());
  CHECK(request.body.size() <= (request.path == "/files" ? kUploadBytesMax : kBodyBytesMax));
}

std::string PercentEncode(std::string_view path) {
  std::string encoded;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '/' || c == '*';
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

// Written anew, with its body's length and nothing that only its framing needed, it is the same.
void CheckRewritten(const net::HttpRequest& request) {
  std::string wire =
      fmt::format("{} {}{}{} HTTP/1.1\r\nContent-Length: {}\r\n", net::MethodName(request.method),
                  PercentEncode(request.path), request.query.empty() ? "" : "?", request.query,
                  request.body.size());
  if (request.headers.Count("Host") == 0) wire += "Host: h\r\n";
  net::HttpHeaders kept;
  for (const auto& [name, value] : request.headers.fields()) {
    bool framing = false;
    for (const std::string_view of_framing :
         {"Content-Length", "Transfer-Encoding", "Connection", "Expect"})
      framing = framing || net::EqualsIgnoreCase(name, of_framing);
    if (!framing) wire += fmt::format("{}: {}\r\n", name, value);
    if (!framing) kept.Add(name, value);
  }
  net::RequestParser parser(kWideLimits);
  parser.Append(wire + "\r\n" + request.body);
  if (parser.Advance() == Phase::kRefused) {
    CHECK(parser.refusal().status == 431) << parser.refusal().message << "\n" << wire;
    return;  // one field more than there may be
  }
  CHECK(parser.Advance() == Phase::kDone && parser.buffered_bytes() == 0) << wire;
  const net::HttpRequest again = parser.TakeRequest();
  CHECK(again.method == request.method && again.path == request.path) << wire;
  CHECK(again.query == request.query && again.body == request.body) << wire;
  for (const auto& [name, value] : kept.fields())
    CHECK(again.headers.Get(name) == kept.Get(name)) << name << wire;
}

Reading Read(const Pieces& pieces, std::optional<uint64_t> admitted_bytes_max = std::nullopt) {
  net::RequestParser parser(kLimits);
  Reading reading;
  bool asked = false;  // of the present request, as a connection asks whether it is admitted
  for (const std::string_view piece : pieces) {
    parser.Append(piece);
    while ((reading.phase = parser.Advance()) == Phase::kDone) {
      const net::HttpRequest request = parser.TakeRequest();
      CheckWhole(request, parser.is_http10());
      CHECK(!asked || !admitted_bytes_max || request.body.size() <= *admitted_bytes_max);
      reading.requests.push_back(Text(request, parser));
      CheckRewritten(request);
      parser.Next();
      asked = false;
    }
    if (reading.phase == Phase::kBody && !asked) {
      CheckHead(parser.head());
      asked = true;
      if (admitted_bytes_max) reading.phase = parser.LimitBody(*admitted_bytes_max);
    }
    if (reading.phase == Phase::kRefused) break;
  }
  if (reading.phase == Phase::kRefused) {
    const net::HttpRefusal& refusal = parser.refusal();
    CHECK(refusal.status >= 400 && refusal.status <= 599 && !refusal.message.empty());
    CHECK(net::ReasonPhrase(refusal.status) != "Unknown") << refusal.status;
    reading.end = fmt::format("{} {}", refusal.status, refusal.message);
    parser.Discard();
  } else {
    const bool body = reading.phase == Phase::kBody;
    reading.end =
        fmt::format("{} bytes, {} of the body {}", parser.buffered_bytes(),
                    body ? parser.body_bytes() : 0, body ? Text(parser.head(), parser) : "");
  }
  return reading;
}

void CheckAdmitted(const Reading& whole, const Reading& limited) {
  CHECK(limited.requests.size() <= whole.requests.size());
  CHECK(std::ranges::equal(limited.requests,
                           std::span(whole.requests).first(limited.requests.size())));
  if (limited.end.starts_with("413")) return;
  CHECK(limited.requests.size() == whole.requests.size());
  CHECK(limited.phase == whole.phase && limited.end == whole.end) << limited.end << whole.end;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const Reading whole = Read({input});
  for (const Pieces& pieces : plumb::fuzz::CutsOf(input)) {
    const Reading cut = Read(pieces);
    CHECK(cut.requests == whole.requests) << pieces.size() << " pieces";
    CHECK(cut.phase == whole.phase) << pieces.size() << " pieces";
    CHECK(cut.end == whole.end) << cut.end << " and " << whole.end;
    CheckAdmitted(whole, Read(pieces, kAdmittedBytesMax));
  }
  return 0;
}
