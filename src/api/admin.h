// api/admin.h
// What an operator may do to a running server, on a listener and with keys of its own: replace the
// weights. Nobody is let in without a key. Replacing takes as long as loading does, so it happens
// on a thread here, one at a time; the answer comes when it is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/thread.h"
#include "net/http_server.h"
#include "telemetry/log.h"
#include "tenancy/api_key.h"

namespace plumb::api {

// A value type.
struct ServedWeights {
  std::string model;  // alias, file or folder, as its operator named it
  std::string fingerprint;
  uint32_t version = 1;
};

// Who can replace weights; implemented by cli.
class WeightsOwner {
 public:
  virtual ~WeightsOwner() = default;
  // Thread: any.
  virtual ServedWeights Current() const = 0;
  // Blocks until the new weights answer. On an error the old ones still do. The codes are those of
  // loading, and of Engine::SwapModel; messages may name paths, since an operator reads them.
  // Thread: one at a time.
  virtual base::Result<ServedWeights> Replace(const std::string& model,
                                              base::Duration patience) = 0;
};

//   route                key     answers
//   GET  /admin/weights  needed  what is served
//   POST /admin/weights  needed  {"model": ..., "deadline_ms": ...}: 200 with what is served now;
//                                409 while another is under way
//
// A resource type. Thread: any, for every method.
class Admin final : public net::HttpHandler {
 public:
  // All borrowed for its life; `keys` requires one (CHECK).
  struct Parts {
    WeightsOwner& weights;
    const tenancy::ApiKeys& keys;
    telemetry::Logger& logger;
    const base::Clock& clock;
  };
  explicit Admin(const Parts& parts);
  ~Admin() override;  // Stop()

  void OnRequest(net::HttpRequest request, std::unique_ptr<net::HttpExchange> exchange) override;
  net::HttpAdmission Admit(const net::HttpRequest& head) override;
  net::HttpResponse FormatRefusal(const net::HttpRefusal& refusal) const override;

  // Waits for a replacement that is under way. Idempotent.
  void Stop();

  static constexpr std::string_view kWeightsRoute = "/admin/weights";
  static constexpr uint32_t kDeadlineMsDefault = 600'000;
  static constexpr uint32_t kDeadlineMsMax = 3'600'000;

 private:
  struct Job {
    std::string model;
    base::Duration patience;
    std::unique_ptr<net::HttpExchange> exchange;
  };

  // Why not, as far as the header says it; nothing: it is answered.
  std::optional<net::HttpResponse> WhyNot(const net::HttpRequest& request) const;
  void Post(net::HttpRequest request, std::unique_ptr<net::HttpExchange> exchange);
  void RunWorker();
  void Do(Job job);

  const Parts parts_;
  base::BoundedQueue<Job> queue_;  // of one
  std::atomic<bool> busy_{false};  // from a job's acceptance to its end
  base::Thread worker_;
};

}  // namespace plumb::api
