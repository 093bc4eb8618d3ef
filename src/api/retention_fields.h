// api/retention_fields.h
// What callers say of how long their prompts should be kept: Anthropic's cache_control at blocks,
// OpenAI's prompt_cache_retention for all of a prompt. Hints both: they change time, never an
// answer (docs/prefix_cache.md, Hints). Read next: text/prompt_place.h (where in the prompt a block
// ends).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/json.h"
#include "base/clock.h"
#include "base/result.h"
#include "text/prompt_place.h"

namespace plumb::api {

constexpr base::Duration kFiveMinutes = base::Seconds(300);
constexpr base::Duration kOneHour = base::Seconds(3600);
constexpr base::Duration kOneDay = base::Seconds(24 * 3600);

// Marks of one request at most, as Anthropic has it.
constexpr size_t kCacheMarksMax = 4;

// A prompt up to a place, and how long it should be kept.
struct CacheMark {
  std::optional<text::ConversationPlace> place;  // nothing: all of the prompt
  base::Duration time{0};
};

// All: kInvalidArgument with the path of what is at fault.

// {"type": "ephemeral", "ttl": "5m" | "1h"}, five minutes when it says none; nothing when null.
base::Result<std::optional<base::Duration>> ReadCacheControl(const JsonValue& value,
                                                             const std::string& path);
// That of a block, an object, which may have none.
base::Result<std::optional<base::Duration>> ReadCacheMark(const JsonValue& block,
                                                          const std::string& path);

// "in_memory" (also spelled "in-memory"), which means five minutes, or "24h"; nothing when null.
base::Result<std::optional<CacheMark>> ReadPromptRetention(const JsonValue& value,
                                                           const std::string& path);

// Of marks in the order of their places those that count: each that no later one keeps as long or
// longer. So each has a time of its own.
std::vector<CacheMark> LastingMarks(const std::vector<CacheMark>& marks);

}  // namespace plumb::api
