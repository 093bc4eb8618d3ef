// net/asio.h
// Internal to net: the only way in to Boost.Asio and Beast, so that every file sees the same macros
// (separate compilation: the library's code is compiled once, in asio.cc).
#pragma once

#define BOOST_ASIO_SEPARATE_COMPILATION
#define BOOST_BEAST_SEPARATE_COMPILATION
#define BOOST_ASIO_NO_DEPRECATED
#ifdef __SANITIZE_THREAD__
// GCC's thread sanitizer does not understand fences; Asio's locks order our handlers anyway.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#endif

#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

namespace plumb::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

}  // namespace plumb::net
