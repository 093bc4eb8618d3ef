// net/asio.cc
// Compiles Boost.Asio and Beast once for the whole program (see net/asio.h).
#include "net/asio.h"

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 with sanitizers takes boost::optional in Beast's Content-Length for uninitialised.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
