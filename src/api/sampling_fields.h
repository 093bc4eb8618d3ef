// api/sampling_fields.h
// The sampling fields that every dialect of completion shares, into engine::SamplingParams. The
// ranges are those of engine/request.h; where OpenAI's are wider (top_p = 0) the comment in the
// table says what becomes of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/result.h"
#include "engine/request.h"

namespace plumb::api {

struct SamplingLimits {
  uint32_t vocabulary_size;  // token ids must be below
};

// True when `member` is a sampling field: temperature, top_p, top_k, min_p, presence_penalty,
// frequency_penalty, repetition_penalty, logit_bias, stop, stop_token_ids; it then stands in `out`
// (null leaves the default). kInvalidArgument: out of range or of the wrong type.
base::Result<bool> ReadSamplingField(const JsonMember& member, const std::string& path,
                                     const SamplingLimits& limits, engine::SamplingParams& out);
// Their names.
void AppendSamplingFieldNames(std::vector<std::string_view>& out);

}  // namespace plumb::api
