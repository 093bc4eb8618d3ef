// cli/process.cc
// Posix_spawn and poll, behind cli/process.h.
#include "cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/format.h"

extern char** environ;

namespace plumb::cli {
namespace {

constexpr size_t kReadBytes = 1u << 18;

// Both ends of a pipe, closed on every way out.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool ok() const { return ends_[0] >= 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void CloseRead() { Close(ends_[0]); }
  void CloseWrite() { Close(ends_[1]); }

 private:
  static void Close(int& fd) {
    if (fd >= 0) close(std::exchange(fd, -1));
  }
  std::array<int, 2> ends_;
};

base::Result<pid_t> Spawn(const std::vector<std::string>& argv, const Pipe& out, const Pipe& err) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
  posix_spawnattr_t attributes;  // handlers and masks of ours are not the child's
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal_number : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&defaults, signal_number);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return base::NotFound("'" + argv[0] + "' is not on PATH");
  if (error != 0) {
    return base::Internal("cannot start '" + argv[0] + "': " + std::strerror(error));
  }
  return pid;
}

// Reads both pipes until the child has closed them, or the sink refuses.
base::Status Drain(Pipe& out, Pipe& err, const OutputSink& sink, std::string& error_text) {
  std::string buffer(kReadBytes, '\0');
  while (out.read_end() >= 0 || err.read_end() >= 0) {
    std::array<pollfd, 2> waiting = {pollfd{out.read_end(), POLLIN, 0},
                                     pollfd{err.read_end(), POLLIN, 0}};
    if (poll(waiting.data(), waiting.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return base::Internal(std::string("cannot wait for a program: ") + std::strerror(errno));
    }
    for (Pipe* source : {&out, &err}) {
      if (waiting[source == &out ? 0 : 1].revents == 0) continue;
      const ssize_t got = read(source->read_end(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        source->CloseRead();
        continue;
      }
      const std::string_view piece(buffer.data(), static_cast<size_t>(got));
      if (source == &out) {
        RETURN_IF_ERROR(sink(piece));
      } else {
        error_text += piece;
        if (error_text.size() > kErrorBytesMax) {
          error_text.erase(0, error_text.size() - kErrorBytesMax);
        }
      }
    }
  }
  return base::OkStatus();
}

int Reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

base::Result<ProcessResult> RunProcess(const std::vector<std::string>& argv,
                                       const OutputSink& sink) {
  CHECK(!argv.empty());
  Pipe out;
  Pipe err;
  if (!out.ok() || !err.ok()) {
    return base::Internal(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(argv, out, err));
  out.CloseWrite();
  err.CloseWrite();
  ProcessResult result;
  const base::Status drained = Drain(out, err, sink, result.error_text);
  if (!drained.ok()) kill(pid, SIGTERM);
  out.CloseRead();
  err.CloseRead();
  result.exit_code = Reap(pid);
  if (!drained.ok()) return drained;
  return result;
}

base::Result<ProcessResult> RunProcess(const std::vector<std::string>& argv, size_t size_max,
                                       std::string& output) {
  return RunProcess(argv, [&](std::string_view piece) {
    if (output.size() + piece.size() > size_max) {
      return base::Internal("'" + argv[0] + "' printed more than " + FormatBytes(size_max));
    }
    output += piece;
    return base::OkStatus();
  });
}

std::string LastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  const size_t start = text.rfind('\n');
  return Printable(start == std::string_view::npos ? text : text.substr(start + 1), 300);
}

}  // namespace plumb::cli
