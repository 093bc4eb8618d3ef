// tests/fuzz/refusal.h
// What a parser of requests may say of a body that it refuses: that the body is wrong, in words
// that can stand in an answer, whatever bytes of the body they quote.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/json_writer.h"
#include "base/check.h"
#include "base/status.h"

namespace plumb::fuzz {

inline void CheckRefusal(const base::Status& status) {
  CHECK(status.code() == base::Code::kInvalidArgument) << status.ToString();
  std::string json;
  api::AppendJsonString(json, status.message());
  CHECK(nlohmann::json::accept(json)) << json;
}

}  // namespace plumb::fuzz
