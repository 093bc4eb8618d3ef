// base/check.h
// CHECK(cond) << "values": a bug stops the process, always, with file, line, condition and values.
// DCHECK is for inner loops and exists in debug builds only. Circumstances (a caller's input, a
// full disk) are never CHECKed: they are base/status.h.
#pragma once

#include <sstream>

namespace plumb::base {

// Collects the message; the destructor prints it to stderr and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Turns the stream expression into void, so that both branches of ?: agree.
struct CheckVoidify {
  void operator&(std::ostream&) {}
};

}  // namespace plumb::base

#define CHECK(condition)                            \
  __builtin_expect(static_cast<bool>(condition), 1) \
      ? (void)0                                     \
      : ::plumb::base::CheckVoidify() &             \
            ::plumb::base::CheckFailure(__FILE__, __LINE__, #condition).stream()

#ifdef NDEBUG
#define DCHECK(condition) CHECK(true || (condition))
#else
#define DCHECK(condition) CHECK(condition)
#endif
