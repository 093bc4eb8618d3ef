// net/sse_test.cc
// What is written is read back, and a stream means the same however it is split.
#include "net/sse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace plumb::net {
namespace {

std::vector<SseEvent> Parse(std::string_view stream, size_t step) {
  SseParser parser(1000);
  std::vector<SseEvent> events;
  for (size_t at = 0; at < stream.size(); at += step) {
    EXPECT_TRUE(parser.Feed(stream.substr(at, step), events).ok());
  }
  return events;
}

TEST(Sse, WritesDataLines) {
  std::string out;
  AppendSse(out, "", "{\"a\":1}");
  EXPECT_EQ(out, "data: {\"a\":1}\n\n");
  out.clear();
  AppendSse(out, "de\nlta", "a\nb\r\nc\rd");
  EXPECT_EQ(out, "event: delta\ndata: a\ndata: b\ndata: c\ndata: d\n\n");
  out.clear();
  AppendSse(out, "", "");
  EXPECT_EQ(out, "data: \n\n");
  out.clear();
  AppendSseComment(out, "keep\nalive");
  EXPECT_EQ(out, ": keep alive\n\n");
}

TEST(SseParser, ReadsTheSameHoweverTheStreamIsSplit) {
  struct Case {
    std::string stream;
    std::vector<SseEvent> events;
  };
  const std::vector<Case> cases = {
      {"data: a\n\ndata: b\n\n", {{"", "a"}, {"", "b"}}},
      {"data: a\r\n\r\ndata: b\r\n\r\n", {{"", "a"}, {"", "b"}}},
      {"data: a\r\rdata: b\r\r", {{"", "a"}, {"", "b"}}},
      {"\xef\xbb\xbf"
       "data: a\n\n",
       {{"", "a"}}},
      {"data:a\ndata:  b\n\n", {{"", "a\n b"}}},
      {"data\n\n", {{"", ""}}},
      {"data\ndata\n\n", {{"", "\n"}}},
      {": comment\n\nevent: x\ndata: 안녕 👋\nid: 3\nretry: 5\nother: y\n\n", {{"x", "안녕 👋"}}},
      {"event: x\n\ndata: a\n\n", {{"", "a"}}},
      {"data: [DONE]\n\ndata: cut off\n", {{"", "[DONE]"}}},
      {"\n\n\r\n", {}},
  };
  for (const Case& c : cases) {
    for (size_t step = 1; step <= c.stream.size(); ++step) {
      EXPECT_EQ(Parse(c.stream, step), c.events) << c.stream << " step " << step;
    }
  }
}

TEST(SseParser, ReadsBackWhatIsWritten) {
  base::Rng rng(1);
  for (int round = 0; round < 500; ++round) {
    std::string data;
    for (uint64_t i = rng.Below(12); i > 0; --i) data.push_back("ab :\n"[rng.Below(5)]);
    std::string stream;
    AppendSse(stream, "e", data);
    EXPECT_EQ(Parse(stream, 1 + rng.Below(4)), (std::vector<SseEvent>{{"e", data}}));
  }
}

TEST(SseParser, RefusesAnEventThatIsTooLarge) {
  for (const std::string& stream :
       {std::string(50, 'a'), std::string("data: 12345678\ndata: 12345")}) {
    SseParser parser(16);
    std::vector<SseEvent> events;
    const base::Status status = parser.Feed(stream, events);
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
    EXPECT_THAT(status.message(), testing::HasSubstr("16 bytes"));
  }
}

}  // namespace
}  // namespace plumb::net
