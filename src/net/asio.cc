// net/asio.cc
// Compiles Boost.Asio and Beast once for the whole program (see net/asio.h).
#include "net/asio.h"

#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
