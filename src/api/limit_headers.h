// api/limit_headers.h
// What a key has left, as headers on answers and refusals alike, in the words of each API. Limits
// that a key does not have are not told of.
#pragma once

#include "net/http.h"
#include "tenancy/limiter.h"

namespace plumb::api {

// OpenAI's x-ratelimit-{limit,remaining,reset}-{requests,tokens}, resets as "1m12s", "12ms"; and
// ours of the same form, -concurrent, which has no reset. `unix_seconds` is not looked at.
net::HttpHeaders OpenAiLimitHeaders(const tenancy::LimitReport& report, int64_t unix_seconds);

// Anthropic's anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}, resets as times of day
// (RFC 3339) from the wall clock; and ours, anthropic-ratelimit-concurrent-{limit,remaining}.
net::HttpHeaders AnthropicLimitHeaders(const tenancy::LimitReport& report, int64_t unix_seconds);

}  // namespace plumb::api
