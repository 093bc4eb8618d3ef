// api/common_fields.h
// Fields that mean the same in every dialect of OpenAI's: model and stream, our extensions (seed,
// ignore_eos, deadline_ms, priority, speculation), service_tier, and labels for the caller's own
// books, which are checked and have no effect. Read next: api/sampling_fields.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/generation_request.h"
#include "api/json.h"
#include "base/result.h"

namespace plumb::api {

// What the common fields add up to while a body is read. A value type.
struct CommonFields {
  std::optional<engine::Priority> priority;       // `priority`
  std::optional<engine::Priority> tier_priority;  // what `service_tier` stands for

  // `priority` goes before `service_tier`, wherever they stood in the body.
  void Apply(GenerationRequest& out) const { out.priority = priority ? priority : tier_priority; }
};

// True when `member` is one of model, stream, seed, ignore_eos, deadline_ms, priority,
// service_tier, speculation; it then stands in `request` or `fields`. kInvalidArgument: out of
// range or of the wrong type.
base::Result<bool> ReadCommonField(const JsonMember& member, const std::string& path,
                                   const RequestLimits& limits, GenerationRequest& request,
                                   CommonFields& fields);

// For the end of a dialect's table: a common field or one of api/sampling_fields.h; any other name
// is refused.
base::Status ReadSharedField(const JsonMember& member, const std::string& path,
                             const RequestLimits& limits, GenerationRequest& request,
                             CommonFields& fields);

// The names of what ReadSharedField takes, and those of a dialect's own table: what a request of it
// may have, for who describes it (api/openapi_test.cc).
void AppendSharedFieldNames(std::vector<std::string_view>& out);
void AppendCommonFieldNames(std::vector<std::string_view>& out);
template <typename Field, size_t kCount>
void AppendFieldNames(const Field (&table)[kCount], std::vector<std::string_view>& out) {
  for (const Field& field : table) out.push_back(field.name);
}

// stream_options of Chat Completions and Completions.
struct StreamOptions {
  bool given = false;
  bool include_usage = false;
};
base::Status ReadStreamOptions(const JsonValue& value, const std::string& path, StreamOptions& out);

// A label of at most 512 bytes, or null.
base::Status CheckLabel(const JsonValue& value, const std::string& path);
// At most 16 strings of 512 bytes under keys of 64 bytes, or null.
base::Status CheckMetadata(const JsonValue& value, const std::string& path);

}  // namespace plumb::api
