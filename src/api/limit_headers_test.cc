// api/limit_headers_test.cc
// The shapes that clients parse: names, and how a time is written.
#include "api/limit_headers.h"

#include <gtest/gtest.h>

#include <string>

namespace plumb::api {
namespace {

using base::Milliseconds;

tenancy::LimitReport Report(base::Duration requests_reset) {
  tenancy::LimitReport report;
  report.requests = {.limit = 60, .remaining = 59, .reset = requests_reset};
  report.concurrent = {.limit = 3, .remaining = 2, .reset = {}};
  return report;
}

TEST(LimitHeaders, SayOnlyWhatThereIs) {
  const net::HttpHeaders headers = OpenAiLimitHeaders(Report(Milliseconds(0)), 0);
  EXPECT_EQ(headers.Get("x-ratelimit-limit-requests"), "60");
  EXPECT_EQ(headers.Get("x-ratelimit-remaining-requests"), "59");
  EXPECT_EQ(headers.Get("x-ratelimit-limit-concurrent"), "3");
  EXPECT_EQ(headers.Get("x-ratelimit-remaining-concurrent"), "2");
  EXPECT_EQ(headers.fields().size(), 5u) << "no tokens, and no reset of what nobody knows";
  EXPECT_TRUE(OpenAiLimitHeaders({}, 0).fields().empty());
  EXPECT_TRUE(AnthropicLimitHeaders({}, 0).fields().empty());
}

TEST(LimitHeaders, WriteSpansAsOpenAiDoes) {
  struct Case {
    base::Duration time;
    const char* text;
  };
  const Case cases[] = {
      {{0}, "0s"},
      {{1}, "1ms"},
      {Milliseconds(999), "999ms"},
      {Milliseconds(1000), "1s"},
      {Milliseconds(1001), "2s"},
      {Milliseconds(59'999), "1m0s"},
      {Milliseconds(60'000), "1m0s"},
  };
  for (const Case& one : cases) {
    const net::HttpHeaders headers = OpenAiLimitHeaders(Report(one.time), 0);
    EXPECT_EQ(headers.Get("x-ratelimit-reset-requests"), one.text);
  }
}

TEST(LimitHeaders, WriteTimesOfDayAsAnthropicDoes) {
  const net::HttpHeaders headers = AnthropicLimitHeaders(Report(Milliseconds(1500)), 1'700'000'000);
  EXPECT_EQ(headers.Get("anthropic-ratelimit-requests-limit"), "60");
  EXPECT_EQ(headers.Get("anthropic-ratelimit-requests-remaining"), "59");
  EXPECT_EQ(headers.Get("anthropic-ratelimit-requests-reset"), "2023-11-14T22:13:22Z");
  EXPECT_EQ(headers.Get("anthropic-ratelimit-concurrent-remaining"), "2");
  EXPECT_EQ(headers.fields().size(), 5u);
}

}  // namespace
}  // namespace plumb::api
