// base/check.cc: prints a failed CHECK in one write and aborts.
// To stderr directly: a logger may be what failed.
#include "base/check.h"

#include <cstdlib>
#include <iostream>

namespace plumb::base {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  stream_ << "CHECK failed at " << file << ":" << line << ": " << condition << ": ";
}

CheckFailure::~CheckFailure() {
  stream_ << "\n";
  std::cerr << stream_.str() << std::flush;
  std::abort();
}

}  // namespace plumb::base
