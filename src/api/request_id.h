// api/request_id.h
// What a request is called in its answer's headers and in the log: as its client says, where that
// is fit for both, else a drawn name. Refused requests have one, too.
#pragma once

#include <string>

#include "net/http.h"

namespace plumb::api {

// The request's X-Request-Id where it has 1 to 128 of A-Z a-z 0-9 . _ -, else a drawn one.
std::string ChooseRequestId(const net::HttpHeaders& headers);
// "req-" and sixteen hexadecimal digits.
std::string DrawRequestId();

}  // namespace plumb::api
