// api/batches.h
// The one thread that keeps files and runs batches. Calls of /v1/files and /v1/batches come to it
// through a bounded queue, as do the answers to lines; so nothing here needs a lock, and a slow
// disk holds up nobody but those who ask for it. Read next: api/file_calls.h, api/batch_calls.h,
// api/batch_runner.h.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/batch_runner.h"
#include "api/batch_store.h"
#include "api/data_calls.h"
#include "api/file_store.h"
#include "api/routes.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace plumb::api {

struct DataLimits {
  FileLimits files;
  BatchStoreLimits batches;
  BatchRunnerOptions runner;
  uint32_t calls_max = 256;               // that wait; above it: 503
  uint64_t calls_bytes_max = 1ull << 30;  // of their bodies
};

// The folder with everything that outlives the process. A resource type: open it, then give it to
// the service.
struct DataFolder {
  // Errors of base/disk.h, for the operator. One process at a time, which the caller sees to.
  static base::Result<std::unique_ptr<DataFolder>> Open(const std::string& path,
                                                        const DataLimits& limits,
                                                        const base::Clock& clock,
                                                        telemetry::Logger& logger);
  DataLimits limits;
  std::unique_ptr<FileStore> files;
  std::unique_ptr<BatchStore> batches;
};

// What waits for the thread: calls, of which there may be so many and so large ones and each key
// has its share (base/share.h), and answers to lines, for which there is always room, since no more
// lines are asked at once. A resource type. Thread: any, for every method.
class BatchInbox {
 public:
  struct Taken {
    std::vector<LineAnswer> answers;
    std::deque<Call> calls;
    bool closed = false;
  };
  BatchInbox(uint32_t calls_max, uint64_t calls_bytes_max)
      : calls_max_(calls_max), calls_bytes_max_(calls_bytes_max) {}

  // False when there is no room for it, or it is closed; the call is then still the caller's.
  bool Push(Call& call);
  void Push(LineAnswer answer);  // dropped once it is closed
  void Close();
  // All there is, after waiting for something for at most `time`.
  Taken Take(base::Duration time);

 private:
  struct Load {  // of calls that wait
    uint64_t calls = 0;
    uint64_t bytes = 0;  // of their bodies
  };
  bool Fits(const Load& all, const Load& own) const;

  const uint32_t calls_max_;
  const uint64_t calls_bytes_max_;
  base::Mutex mutex_;
  base::Condition changed_;
  Taken waiting_ GUARDED_BY(mutex_);
  Load load_ GUARDED_BY(mutex_);  // of waiting_.calls
  // Of each key's, where there are keys; only of those that have some.
  std::map<base::Hash256, Load> loads_ GUARDED_BY(mutex_);
};

// A resource type. Thread: any, for every method.
class Batches {
 public:
  // What the service has. `send` answers a line as if it had come from a client of that caller, and
  // never blocks; `answer` sends an answer to a call. Both live as long as this object.
  struct Parts {
    const base::Clock& clock;
    telemetry::Logger& logger;
    std::vector<std::string> endpoints;  // that lines may ask
    std::function<void(LineRequest request)> send;
    std::function<size_t()> live;  // BatchParts::live
    std::function<void(Call& call, DataAnswer answer)> answer;
  };
  Batches(std::unique_ptr<DataFolder> folder, Parts parts);
  ~Batches();  // Stop()
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // A call of one of the routes of files and batches. Never blocks.
  void Handle(Call call);
  // No more lines; those that run go on. What is not done is done by the next process.
  void Pause() { runner_.Pause(); }
  // Answers what waits and joins. Answers to lines that come later are dropped. Idempotent.
  void Stop();

 private:
  void Run();
  DataAnswer Answer(const Call& call);

  const std::unique_ptr<DataFolder> folder_;
  const Parts parts_;
  // Also held by lines that are being asked, which may end after this object.
  const std::shared_ptr<BatchInbox> inbox_;
  BatchRunner runner_;
  base::Thread thread_;
};

}  // namespace plumb::api
