// cli/remote_talker.h
// A Talker over a running server: a streamed chat completion, read on a thread of its own so that
// Ctrl-C works while the server is silent.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread.h"
#include "cli/talker.h"
#include "net/http_client.h"

namespace plumb::cli {

// A resource type; destroying it ends a running answer.
class RemoteTalker final : public Talker {
 public:
  // Asks the server for its models; takes `wanted_model` when it is among them, else the first.
  // `url` is "http://host:port", with or without "/v1". kInvalidArgument, field "--url";
  // kUnavailable: not reachable; kUnauthenticated: it wants another key.
  static base::Result<std::unique_ptr<RemoteTalker>> Connect(const std::string& url,
                                                             const std::string& api_key,
                                                             const std::string& wanted_model,
                                                             const base::Clock& clock);
  ~RemoteTalker() override;

  const std::string& model() const override { return model_; }
  base::Status Start(const std::string& body, AnswerSink& sink) override;
  void Cancel() override { cancel_.Cancel(); }

 private:
  RemoteTalker(std::string base_url, std::string api_key, const base::Clock& clock)
      : base_url_(std::move(base_url)), api_key_(std::move(api_key)), clock_(clock) {}
  base::Result<net::HttpClientRequest> MakeRequest(net::HttpMethod method,
                                                   std::string_view target) const;
  base::Status ChooseModel(const std::string& wanted);
  void Read(const net::HttpClientRequest& request, AnswerSink& sink);

  const std::string base_url_;  // without trailing '/'
  const std::string api_key_;   // empty = none
  const base::Clock& clock_;
  std::string model_;
  net::CancelToken cancel_;
  base::Thread thread_;
};

// One event of a chat completion stream into the piece it holds: more of the answer, or parts of
// the end (finish reason, usage, seed), which gather in `end`. kCorrupt: not such an event; or the
// error that the server reports in it.
base::Status ReadChunk(std::string_view json, std::vector<text::AnswerDelta>& deltas,
                       AnswerEnd& end);

}  // namespace plumb::cli
