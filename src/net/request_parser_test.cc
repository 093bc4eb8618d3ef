// net/request_parser_test.cc
// One reading of every request: what is accepted, and each way of being refused.
#include "net/request_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumb::net {
namespace {

using Phase = RequestParser::Phase;

const HttpLimits kLimits = {
    .target_bytes_max = 64, .header_bytes_max = 512, .header_fields_max = 5, .body_bytes_max = 16};

Phase FeedAll(RequestParser& parser, std::string_view bytes) {
  parser.Append(bytes);
  return parser.Advance();
}

TEST(RequestParser, ReadsARequestWithABody) {
  RequestParser parser(kLimits);
  ASSERT_EQ(FeedAll(parser,
                    "POST /a%20b?x=1%202&y HTTP/1.1\r\nHost: h\r\nX-Key:  v \r\n"
                    "Content-Length: 5\r\n\r\nhello"),
            Phase::kDone);
  EXPECT_TRUE(parser.keep_alive());
  const HttpRequest request = parser.TakeRequest();
  EXPECT_EQ(request.method, HttpMethod::kPost);
  EXPECT_EQ(request.path, "/a b");
  EXPECT_EQ(request.query, "x=1%202&y");
  EXPECT_EQ(QueryParam(request.query, "x"), "1 2");
  EXPECT_EQ(QueryParam(request.query, "y"), "");
  EXPECT_EQ(QueryParam(request.query, "z"), std::nullopt);
  EXPECT_EQ(request.headers.Get("x-kEY"), "v");
  EXPECT_EQ(request.body, "hello");
}

TEST(RequestParser, ReadsTheSameHoweverTheBytesAreSplit) {
  const std::string wire =
      "POST /one HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"
      "GET /two HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
  for (size_t step = 1; step <= wire.size(); ++step) {
    RequestParser parser(kLimits);
    std::vector<HttpRequest> requests;
    for (size_t at = 0; at < wire.size(); at += step) {
      parser.Append(std::string_view(wire).substr(at, step));
      while (parser.Advance() == Phase::kDone) {
        requests.push_back(parser.TakeRequest());
        EXPECT_EQ(parser.keep_alive(), requests.size() == 1);
        parser.Next();
      }
      ASSERT_NE(parser.Advance(), Phase::kRefused) << step << " " << parser.refusal().message;
    }
    ASSERT_EQ(requests.size(), 2u) << "step " << step;
    EXPECT_EQ(requests[0].body, "abc0123456789");
    EXPECT_EQ(requests[0].headers.Get("Trailer"), std::nullopt) << "trailers are dropped";
    EXPECT_EQ(requests[1].path, "/two");
    EXPECT_EQ(parser.Advance(), Phase::kIdle);
  }
}

TEST(RequestParser, TellsPhasesApart) {
  RequestParser parser(kLimits);
  EXPECT_EQ(parser.Advance(), Phase::kIdle);
  EXPECT_EQ(FeedAll(parser, "\r\n"), Phase::kIdle) << "an empty line first is forgiven";
  EXPECT_EQ(FeedAll(parser, "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\n"),
            Phase::kHeader);
  EXPECT_EQ(FeedAll(parser, "Content-Length: 2\r\n\r\n"), Phase::kBody);
  EXPECT_TRUE(parser.expects_continue());
  EXPECT_EQ(FeedAll(parser, "a"), Phase::kBody);
  EXPECT_EQ(FeedAll(parser, "bGET"), Phase::kDone);
  EXPECT_EQ(parser.buffered_bytes(), 3u);
}

TEST(RequestParser, AcceptsOtherFormsOfTarget) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"GET http://h:1/x?q HTTP/1.1", "/x"}, {"GET HTTPS://h HTTP/1.1", "/"},
      {"OPTIONS * HTTP/1.1", "*"},           {"GET /%41%2Fb HTTP/1.1", "/A/b"},
      {"GET /%e2%82%ac HTTP/1.1", "/€"},     {"HEAD /.. HTTP/1.1", "/.."},
  };
  for (const auto& [line, path] : cases) {
    RequestParser parser(kLimits);
    ASSERT_EQ(FeedAll(parser, line + "\r\nHost: h\r\n\r\n"), Phase::kDone) << line;
    EXPECT_EQ(parser.TakeRequest().path, path);
  }
}

TEST(RequestParser, Http10ClosesAndNeedsNoHost) {
  RequestParser parser(kLimits);
  ASSERT_EQ(FeedAll(parser, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), Phase::kDone);
  EXPECT_TRUE(parser.is_http10());
  EXPECT_FALSE(parser.keep_alive());
}

struct RefusedCase {
  const char* name;
  std::string wire;
  int status;
};

std::string Repeat(std::string_view text, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) repeated.append(text);
  return repeated;
}

std::vector<RefusedCase> RefusedCases() {
  const std::string get = "GET / HTTP/1.1\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  return {
      {"tls hello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), 400},
      {"no method", " / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"only empty lines", "\r\n\r\n", 400},
      {"no version", "GET /\r\nHost: h\r\n\r\n", 400},
      {"no target", "GET  HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"two spaces", "GET /  HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"http2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"unknown method", "BREW / HTTP/1.1\r\nHost: h\r\n\r\n", 501},
      {"connect", "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501},
      {"lower case method", "get / HTTP/1.1\r\nHost: h\r\n\r\n", 501},
      {"relative target", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"asterisk for get", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"bad percent", "GET /%4 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"percent nul", "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"percent newline", "GET /%0a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"fragment", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"long target", "GET /" + std::string(64, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n", 414},
      {"endless target", "GET /" + std::string(200, 'a'), 414},
      {"large header", get + "a: " + std::string(600, 'a'), 431},
      {"many fields", get + "Host: h\r\n" + Repeat("a: b\r\n", 6) + "\r\n", 431},
      {"no host", get + "\r\n", 400},
      {"two hosts", get + "Host: a\r\nHost: a\r\n\r\n", 400},
      {"bare lf", "GET / HTTP/1.1\nHost: h\n\n", 400},
      {"bare cr", get + "Host: h\ra: b\r\n\r\n", 400},
      {"nul", get + std::string("Host: h\0i\r\n\r\n", 13), 400},
      {"control byte", get + "Host: h\x01\r\n\r\n", 400},
      {"obs-fold", get + "Host: h\r\n folded\r\n\r\n", 400},
      {"field without colon", get + "Host: h\r\nabc\r\n\r\n", 400},
      {"space before colon", get + "Host : h\r\n\r\n", 400},
      {"empty field name", get + "Host: h\r\n: b\r\n\r\n", 400},
      {"space in field name", get + "Host: h\r\na b: c\r\n\r\n", 400},
      {"length and chunked", post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"chunked and length", post + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
      {"two lengths", post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"same length twice", post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
      {"list of lengths", post + "Content-Length: 1, 1\r\n\r\n", 400},
      {"signed length", post + "Content-Length: +1\r\n\r\n", 400},
      {"negative length", post + "Content-Length: -1\r\n\r\n", 400},
      {"hex length", post + "Content-Length: 0x1\r\n\r\n", 400},
      {"empty length", post + "Content-Length: \r\n\r\n", 400},
      {"2^64 length", post + "Content-Length: 18446744073709551616\r\n\r\n", 400},
      {"large body", post + "Content-Length: 17\r\n\r\n", 413},
      {"gzip", post + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {"gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"chunked twice", post + "Transfer-Encoding: chunked, chunked\r\n\r\n", 501},
      {"obfuscated chunked", post + "Transfer-Encoding: xchunked\r\n\r\n", 501},
      {"http/1.0 chunked", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"other expectation", post + "Expect: 200-ok\r\n\r\n", 417},
      {"chunk not hex", chunked + "xyz\r\n", 400},
      {"chunk size negative", chunked + "-1\r\n", 400},
      {"chunk size overflow", chunked + "fffffffffffffffff\r\n", 400},
      {"chunk too large", chunked + "11\r\n", 413},
      {"chunks too large", chunked + "9\r\n123456789\r\n9\r\n", 413},
      {"chunk without crlf", chunked + "1\r\nabcdef", 400},
      {"chunk without size", chunked + "\r\n", 400},
      {"chunk size after space", chunked + " 1\r\na\r\n", 400},
      {"chunk with bare lf", chunked + "1\na\n", 400},
      {"chunk extension with bare lf", chunked + "1;a\nb\r\na\r\n", 400},
      {"chunk extension with nul", chunked + std::string("1;\0\r\n", 5), 400},
      {"chunk line endless", chunked + "1;" + std::string(20000, 'a'), 413},
      {"trailer with bare cr", chunked + "0\r\na: b\rc\r\n\r\n", 400},
      {"trailers endless", chunked + "0\r\n" + Repeat("a: b\r\n", 4000), 413},
  };
}

TEST(RequestParser, RefusesWhatIsMalformedOrTooLarge) {
  for (const RefusedCase& refused : RefusedCases()) {
    RequestParser whole(kLimits);
    ASSERT_EQ(FeedAll(whole, refused.wire), Phase::kRefused) << refused.name;
    EXPECT_EQ(whole.refusal().status, refused.status)
        << refused.name << ": " << whole.refusal().message;

    RequestParser dripped(kLimits);
    Phase phase = Phase::kIdle;
    for (char c : refused.wire) {
      if (phase == Phase::kRefused) break;
      phase = FeedAll(dripped, {&c, 1});
    }
    ASSERT_EQ(phase, Phase::kRefused) << refused.name << ", byte by byte";
    EXPECT_EQ(dripped.refusal().status, refused.status) << refused.name << ", byte by byte";
  }
}

TEST(RequestParser, ReadsAnEmptyChunkedBodyByteByByte) {
  RequestParser parser(kLimits);
  Phase phase = Phase::kIdle;
  for (char c : std::string("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
                            "0\r\n\r\n")) {
    ASSERT_NE(phase, Phase::kDone);
    phase = FeedAll(parser, {&c, 1});
  }
  EXPECT_EQ(phase, Phase::kDone);
  EXPECT_EQ(parser.TakeRequest().body, "");
}

TEST(RequestParser, BoundsPaddingOfChunks) {
  RequestParser parser(kLimits);
  Phase phase = FeedAll(parser, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string padded = "1;" + std::string(4000, 'a') + "\r\nx\r\n";
  for (int i = 0; i < 8 && phase == Phase::kBody; ++i) phase = FeedAll(parser, padded);
  EXPECT_EQ(phase, Phase::kRefused);
  EXPECT_EQ(parser.refusal().status, 413);
}

}  // namespace
}  // namespace plumb::net
