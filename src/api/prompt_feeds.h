// api/prompt_feeds.h
// Requests of more prompts than the generator should have of one caller at once (embeddings of up
// to 2048 inputs): it gets kPromptsAtOnce of them, and the next when one has ended, so that a large
// request neither fills the generator's queue nor needs room in it for all its prompts.
// Read next: api/answer_sink.h.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "api/answer_sink.h"
#include "api/live_requests.h"
#include "base/bounded_queue.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "engine/generator.h"

namespace plumb::api {

constexpr uint32_t kPromptsAtOnce = 32;

// A resource type. Thread: any, for every method. One thread of its own submits.
class PromptFeeds {
 public:
  // Borrows both; at most `live_max` requests are fed at once.
  PromptFeeds(engine::Generator& generator, LiveRequests& live, size_t live_max);
  ~PromptFeeds();  // Stop()
  PromptFeeds(const PromptFeeds&) = delete;
  PromptFeeds& operator=(const PromptFeeds&) = delete;

  // `sink` is that of `id`, has begun, and has a sample for each prompt; it may be gone as soon as
  // this returns. A prompt that the generator refuses for want of room waits for another one of the
  // request to end; without one in work, and for any other reason, the request fails.
  void Start(engine::RequestId id, AnswerSink& sink, std::vector<engine::Request> prompts);
  // One of its prompts has ended (AnswerPlan::prompt_ended). Does not block.
  void PromptEnded(engine::RequestId id);

  // Once no request is live: joins the thread. Idempotent.
  void Stop();

 private:
  struct Feed {
    // Thread: the feeding one, once started. The sink lives as long as there is a next prompt.
    AnswerSink* sink;
    std::vector<engine::Request> prompts;
    uint32_t next = 0;
    uint32_t in_work = 0;
    // Guarded by mutex_.
    uint32_t ended = 0;  // since the thread looked
    bool queued = true;
  };

  void Run();
  // Submits what there is room for; true when there is nothing left to submit.
  bool Go(engine::RequestId id, Feed& feed);

  engine::Generator& generator_;
  LiveRequests& live_;
  base::Mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<Feed>> feeds_ GUARDED_BY(mutex_);
  base::BoundedQueue<engine::RequestId> queue_;  // each feed at most once
  base::Thread thread_;
};

}  // namespace plumb::api
