// tests/fuzz/refusal.h
// What a parser of requests may say of what it refuses: which code, mostly that the caller is
// wrong, in words that can stand in an answer, whatever bytes of the request they quote.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/json_writer.h"
#include "base/check.h"
#include "base/status.h"

namespace plumb::fuzz {

inline void CheckRefusal(const base::Status& status,
                         base::Code code = base::Code::kInvalidArgument) {
  CHECK(status.code() == code) << status.ToString();
  std::string json;
  api::AppendJsonString(json, status.message());
  CHECK(nlohmann::json::accept(json)) << json;
}

}  // namespace plumb::fuzz
