// net/beast.h
// Internal to net: the parsers of Boost.Beast, with the macros of net/asio.h seen first (a file
// that misses them compiles, and then compares error codes of two copies of one category).
#pragma once

#include "net/asio.h"

// Apart, so that no formatter sorts them before the macros.
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

namespace plumb::net {

namespace http = boost::beast::http;

}  // namespace plumb::net
