// cli/bus_error.cc
// A handler for SIGBUS, so that nothing here may allocate or lock: the file's name is looked up in
// /proc/self/maps with system calls and one buffer on the stack.
#include "cli/bus_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <string_view>

#include "base/check.h"

namespace plumb::cli {
namespace {

constexpr size_t kLineBytesMax = 4352;  // of the maps: PATH_MAX and what stands before it

std::atomic<bool> g_explaining{false};

void Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// "7f00-7fff r--s 0 fe:00 1234   /path": the path where the range holds `address`, else empty.
std::string_view PathIfIn(std::string_view line, uintptr_t address) {
  uintptr_t first = 0, last = 0;
  const char* const end = line.data() + line.size();
  const auto from = std::from_chars(line.data(), end, first, 16);
  if (from.ec != std::errc() || from.ptr == end || *from.ptr != '-') return {};
  const auto to = std::from_chars(from.ptr + 1, end, last, 16);
  if (to.ec != std::errc() || address < first || address >= last) return {};
  const size_t path = line.find('/');
  return path == std::string_view::npos ? std::string_view() : line.substr(path);
}

// The file that is mapped at `address`, as a part of `buffer`; empty where there is none.
std::string_view MappedAt(uintptr_t address, char (&buffer)[kLineBytesMax]) {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string_view path;
  size_t held = 0;
  for (;;) {
    const ssize_t got = read(fd, buffer + held, kLineBytesMax - held);
    if (got <= 0) break;  // a line longer than the buffer ends here too: it leaves no room
    held += static_cast<size_t>(got);
    size_t begin = 0;
    for (size_t i = 0; i < held && path.empty(); ++i) {
      if (buffer[i] != '\n') continue;
      path = PathIfIn({buffer + begin, i - begin}, address);
      begin = i + 1;
    }
    if (!path.empty()) break;
    std::copy(buffer + begin, buffer + held, buffer);
    held -= begin;
  }
  close(fd);
  return path;
}

void OnBusError(int number, siginfo_t* info, void* /*context*/) {
  if (info->si_code <= 0) {  // sent, by kill
    std::signal(number, SIG_DFL);
    raise(number);
    return;
  }
  // Several threads may meet it; the others must not end the process before the line is out.
  while (g_explaining.exchange(true)) pause();
  char buffer[kLineBytesMax];
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const std::string_view path = MappedAt(address, buffer);
  if (path.empty()) {
    Write("plumb: memory could not be read (SIGBUS), so the process ends\n");
  } else {
    Write("plumb: '");
    Write(path);
    Write(
        "' was cut while in use, or its disk failed, so the process ends; to change a model, put "
        "the new one beside it, rename, and start again\n");
  }
  std::signal(number, SIG_DFL);  // the read is tried again on return, and ends the process
}

}  // namespace

void ExplainBusErrors() {
  struct sigaction action{};
  action.sa_sigaction = OnBusError;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  CHECK(sigaction(SIGBUS, &action, nullptr) == 0);
}

}  // namespace plumb::cli
