// base/thread.h
// A named thread that must be joined before it is destroyed (a forgotten join is a bug, not a
// detach). The home of std::thread: tidy bans it elsewhere, so that every thread has a name and an
// owner that stops it.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace plumb::base {

// A resource type. Owner: whoever constructs it.
class Thread {
 public:
  Thread() = default;
  // Starts `body`; `name` (at most 15 bytes are kept) shows in top and gdb.
  Thread(const std::string& name, std::function<void()> body);
  ~Thread();
  Thread(Thread&&) = default;
  Thread& operator=(Thread&& other);
  bool joinable() const { return thread_.joinable(); }
  void Join() { thread_.join(); }

 private:
  std::thread thread_;
};

// Processors this process may use: affinity and the cgroup's CPU quota respected, at least 1.
unsigned UsableProcessors();

}  // namespace plumb::base
