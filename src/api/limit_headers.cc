// api/limit_headers.cc
// See limit_headers.h.
#include "api/limit_headers.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace plumb::api {

using net::HttpHeaders;
using tenancy::LimitState;

namespace {

// Whole seconds, rounded up, except below one.
std::string Span(base::Duration time) {
  constexpr int64_t kNsPerMs = 1'000'000;
  const int64_t ms = (time.ns + kNsPerMs - 1) / kNsPerMs;
  if (ms > 0 && ms < 1000) return fmt::format("{}ms", ms);
  const int64_t seconds = (ms + 999) / 1000;
  return seconds < 60 ? fmt::format("{}s", seconds)
                      : fmt::format("{}m{}s", seconds / 60, seconds % 60);
}

std::string TimeOfDay(base::Duration time, int64_t unix_seconds) {
  const int64_t seconds = (time.ns + 999'999'999) / 1'000'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(unix_seconds + seconds));
}

}  // namespace

HttpHeaders OpenAiLimitHeaders(const tenancy::LimitReport& report, int64_t /*unix_seconds*/) {
  HttpHeaders headers;
  const auto add = [&](const LimitState& state, std::string_view of, bool resets) {
    if (state.limit == 0) return;
    headers.Add(fmt::format("x-ratelimit-limit-{}", of), std::to_string(state.limit));
    headers.Add(fmt::format("x-ratelimit-remaining-{}", of), std::to_string(state.remaining));
    if (resets) headers.Add(fmt::format("x-ratelimit-reset-{}", of), Span(state.reset));
  };
  add(report.requests, "requests", true);
  add(report.tokens, "tokens", true);
  add(report.concurrent, "concurrent", false);
  return headers;
}

HttpHeaders AnthropicLimitHeaders(const tenancy::LimitReport& report, int64_t unix_seconds) {
  HttpHeaders headers;
  const auto add = [&](const LimitState& state, std::string_view of, bool resets) {
    if (state.limit == 0) return;
    const std::string name = fmt::format("anthropic-ratelimit-{}-", of);
    headers.Add(name + "limit", std::to_string(state.limit));
    headers.Add(name + "remaining", std::to_string(state.remaining));
    if (resets) headers.Add(name + "reset", TimeOfDay(state.reset, unix_seconds));
  };
  add(report.requests, "requests", true);
  add(report.tokens, "tokens", true);
  add(report.concurrent, "concurrent", false);
  return headers;
}

}  // namespace plumb::api
