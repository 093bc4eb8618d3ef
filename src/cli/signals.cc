// cli/signals.cc
// A handler that adds to a counter and an eventfd, both safe in a handler. They are
// globals, because a handler gets no argument.
#include "cli/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/check.h"

namespace plumb::cli {
namespace {

std::atomic<uint32_t> g_count{0};
std::atomic<int> g_event_fd{-1};

void OnSignal(int) {
  const int saved_errno = errno;
  g_count.fetch_add(1);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(g_event_fd.load(), &one, sizeof(one));
  errno = saved_errno;
}

}  // namespace

void IgnoreBrokenPipes() { std::signal(SIGPIPE, SIG_IGN); }

Signals::Signals(std::initializer_list<int> numbers) {
  CHECK(g_event_fd.load() < 0) << "there is a Signals object already";
  g_count.store(0);
  g_event_fd.store(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  CHECK(g_event_fd.load() >= 0);
  for (const int number : numbers) {
    struct sigaction action{};
    action.sa_handler = OnSignal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    Former former{number, {}};
    CHECK(sigaction(number, &action, &former.action) == 0);
    former_.push_back(former);
  }
}

Signals::~Signals() {
  for (const Former& former : former_) sigaction(former.number, &former.action, nullptr);
  close(g_event_fd.exchange(-1));
}

uint32_t Signals::count() const { return g_count.load(); }

int Signals::fd() const { return g_event_fd.load(); }

void Signals::Clear() {
  uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t got = read(fd(), &ignored, sizeof(ignored));
}

bool Signals::WaitFor(base::Duration timeout) {
  pollfd waiting{fd(), POLLIN, 0};
  if (poll(&waiting, 1, static_cast<int>(timeout.ms())) <= 0) return false;
  Clear();
  return true;
}

void Signals::Wait() {
  while (!WaitFor(base::Seconds(3600))) {
  }
}

}  // namespace plumb::cli
