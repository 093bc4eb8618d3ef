// eval/speed/gateway/gateway_load.cc
// A load generator for one core: as many requests as the server answers, or, with --rate, so many a
// second at even distances, whose latencies count from when they were due, so that a server that
// falls behind cannot hide it. Any answer but a 200 ends it with an error. With --hold it opens
// streams, waits for the first event of each, says so, and holds them while its input is open.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "base/clock.h"
#include "connection.h"
#include "report.h"
#include "workload.h"

namespace plumb::speed {
namespace {

constexpr base::Duration kWaitMax = base::Milliseconds(100);
constexpr unsigned long kTimerSlackNs = 1000;  // the usual 50 us would be part of each latency

struct Flags {
  uint16_t port = 0;
  RequestKind kind = RequestKind::kShort;
  uint32_t connections = 8;
  double seconds = 5;
  double warm_up = 1;  // seconds before those that count
  double rate = 0;     // requests a second; 0: as many as are answered
  bool hold = false;
  std::vector<std::string> texts;  // files
};

// Who talks over one connection.
struct Talker {
  Connection connection;
  Workload workload;
  std::string next;  // made while the answer before is waited for
  bool busy = false;
  base::Instant due;
};

// A resource type. Thread: main.
class Load {
 public:
  Load(const Flags& flags, const std::vector<std::string>& lines) : flags_(flags), lines_(lines) {}
  ~Load() {
    if (epoll_ >= 0) close(epoll_);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  base::Status Run();
  base::Status Hold();

 private:
  base::Status AddTalker();
  base::Status SendDue(base::Instant now);
  base::Status Wait();
  base::Status Move(Talker& talker);
  void Watch(const Talker& talker, size_t number, int operation) const;

  const Flags flags_;
  const std::vector<std::string>& lines_;
  const base::SystemClock clock_;
  int epoll_ = -1;
  std::vector<Talker> talkers_;
  std::deque<size_t> idle_;  // talkers, the one that has been so for longest first
  base::Instant start_;      // of what counts
  base::Instant next_due_;
  Report report_;
};

void Load::Watch(const Talker& talker, size_t number, int operation) const {
  epoll_event event{};
  event.events = EPOLLIN;
  if (talker.connection.wants_to_write()) event.events |= EPOLLOUT;
  event.data.u64 = number;
  epoll_ctl(epoll_, operation, talker.connection.fd(), &event);
}

base::Status Load::AddTalker() {
  const size_t number = talkers_.size();
  ASSIGN_OR_RETURN(Connection connection, Connection::Open(flags_.port));
  talkers_.push_back({.connection = std::move(connection),
                      .workload = Workload(flags_.kind, lines_, number + 1),
                      .next = {},
                      .busy = false,
                      .due = {}});
  talkers_.back().next = talkers_.back().workload.Next();
  return base::OkStatus();
}

// Hands what is due to talkers that are idle; with none of them, it waits and its time runs.
base::Status Load::SendDue(base::Instant now) {
  for (size_t idle = idle_.size(); idle > 0 && next_due_ <= now; --idle) {
    Talker& talker = talkers_[idle_.front()];
    idle_.pop_front();
    talker.busy = true;
    talker.due = flags_.rate > 0 ? next_due_ : now;
    if (flags_.rate > 0) next_due_ = next_due_ + base::Seconds(1 / flags_.rate);
    talker.connection.Send(std::move(talker.next));
    RETURN_IF_ERROR(Move(talker));
  }
  return base::OkStatus();
}

base::Status Load::Move(Talker& talker) {
  const auto number = static_cast<size_t>(&talker - talkers_.data());
  const bool wanted = talker.connection.wants_to_write();
  RETURN_IF_ERROR(talker.connection.Move());
  if (talker.connection.wants_to_write() != wanted) Watch(talker, number, EPOLL_CTL_MOD);
  // Made while the answer is waited for, and not while the server waits for bytes.
  if (talker.next.empty() && !talker.connection.wants_to_write())
    talker.next = talker.workload.Next();
  if (!talker.busy || !talker.connection.complete()) return base::OkStatus();
  talker.busy = false;
  idle_.push_back(number);
  const base::Instant now = clock_.Now();
  if (now >= start_) report_.Add(now - talker.due);
  return base::OkStatus();
}

base::Status Load::Wait() {
  std::array<epoll_event, 256> events;
  // It sleeps until then, since who looks all the time has the core taken from it.
  const bool waits = idle_.empty() || flags_.rate == 0;
  const base::Duration time = waits ? kWaitMax : next_due_ - clock_.Now();
  const auto ns = std::clamp<int64_t>(time.ns, 0, kWaitMax.ns);
  const timespec timeout{.tv_sec = 0, .tv_nsec = ns};
  const int count = epoll_pwait2(epoll_, events.data(), events.size(), &timeout, nullptr);
  for (int i = 0; i < count; ++i)
    RETURN_IF_ERROR(Move(talkers_[static_cast<size_t>(events[static_cast<size_t>(i)].data.u64)]));
  return base::OkStatus();
}

base::Status Load::Run() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  for (size_t number = 0; number < flags_.connections; ++number) {
    RETURN_IF_ERROR(AddTalker());
    Watch(talkers_.back(), number, EPOLL_CTL_ADD);
    idle_.push_back(number);
  }
  next_due_ = clock_.Now();
  start_ = next_due_ + base::Seconds(flags_.warm_up);
  const base::Instant end = start_ + base::Seconds(flags_.seconds);
  for (base::Instant now = next_due_; now < end; now = clock_.Now()) {
    RETURN_IF_ERROR(SendDue(now));
    RETURN_IF_ERROR(Wait());
  }
  std::cout << report_.Json(clock_.Now() - start_) << std::endl;
  return base::OkStatus();
}

base::Status Load::Hold() {
  for (uint32_t i = 0; i < flags_.connections; ++i) {
    RETURN_IF_ERROR(AddTalker());
    Talker& talker = talkers_.back();
    talker.connection.Send(std::move(talker.next));
    while (!talker.connection.has_event()) {
      RETURN_IF_ERROR(talker.connection.Move());
      if (talker.connection.complete())
        return base::Status(base::Code::kCorrupt, "a stream ended that should be silent");
    }
  }
  std::cout << fmt::format(R"({{"streams":{}}})", talkers_.size()) << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  return base::OkStatus();
}

template <typename Number>
bool Read(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

bool ReadFlag(std::string_view name, std::string_view value, Flags& flags) {
  if (name == "--port") return Read(value, flags.port);
  if (name == "--connections") return Read(value, flags.connections) && flags.connections > 0;
  if (name == "--seconds") return Read(value, flags.seconds);
  if (name == "--warm-up") return Read(value, flags.warm_up);
  if (name == "--rate") return Read(value, flags.rate);
  if (name == "--text") return flags.texts.emplace_back(value), true;
  if (name != "--kind") return false;
  const auto kind = RequestKindFromName(value);
  flags.kind = kind.value_or(flags.kind);
  return kind.has_value();
}

base::Status RunWith(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadLines(flags.texts));
  Load load(flags, lines);
  return flags.hold ? load.Hold() : load.Run();
}

int Main(int argc, char** argv) {
  Flags flags;
  bool good = argc > 1;
  for (int i = 1; i < argc && good; ++i) {
    const std::string_view name = argv[i];
    if (name == "--hold") {
      flags.hold = true;
    } else {
      good = i + 1 < argc && ReadFlag(name, argv[i + 1], flags);
      ++i;
    }
  }
  if (!good || flags.port == 0) {
    std::cerr << "usage: gateway_load --port N --kind short|stream|turns|cold --text FILE...\n"
                 "  [--connections N] [--seconds S] [--warm-up S] [--rate N] [--hold]\n";
    return 2;
  }
  const base::Status status = RunWith(flags);
  if (!status.ok()) std::cerr << "gateway_load: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace plumb::speed

int main(int argc, char** argv) { return plumb::speed::Main(argc, argv); }
