// base/thread.cc: thread names and the number of processors a container really grants.
// A cgroup may grant half a processor on a machine with many.
#include "base/thread.h"

#include <pthread.h>

#include <utility>

#include "base/affinity.h"
#include "base/cgroup.h"
#include "base/check.h"

namespace plumb::base {

Thread::Thread(const std::string& name, std::function<void()> body)
    : thread_([name = name.substr(0, 15), body = std::move(body)] {
        pthread_setname_np(pthread_self(), name.c_str());
        body();
      }) {}

Thread::~Thread() { CHECK(!thread_.joinable()) << "a thread is destroyed that was not joined"; }

Thread& Thread::operator=(Thread&& other) {
  CHECK(!thread_.joinable()) << "a running thread is overwritten";
  thread_ = std::move(other.thread_);
  return *this;
}

unsigned UsableProcessors() {
  return ProcessorsOf(AllowedProcessors().size(), ReadCgroupLimits().processors);
}

}  // namespace plumb::base
