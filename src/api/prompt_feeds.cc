// api/prompt_feeds.cc
// See prompt_feeds.h.
#include "api/prompt_feeds.h"

#include <optional>
#include <utility>

#include "base/check.h"

namespace plumb::api {

using base::Status;
using engine::RequestId;

PromptFeeds::PromptFeeds(engine::Generator& generator, LiveRequests& live, size_t live_max)
    : generator_(generator),
      live_(live),
      queue_(live_max),
      thread_("prompt-feed", [this] { Run(); }) {}

PromptFeeds::~PromptFeeds() { Stop(); }

void PromptFeeds::Stop() {
  queue_.Close();
  if (thread_.joinable()) thread_.Join();
}

void PromptFeeds::Start(RequestId id, AnswerSink& sink, std::vector<engine::Request> prompts) {
  auto feed = std::make_unique<Feed>(Feed{.sink = &sink, .prompts = std::move(prompts)});
  const base::MutexLock lock(mutex_);
  const bool added = feeds_.emplace(static_cast<uint64_t>(id), std::move(feed)).second;
  CHECK(added && queue_.Push(RequestId(id))) << "as many feeds as live requests fit the queue";
}

void PromptFeeds::PromptEnded(RequestId id) {
  const base::MutexLock lock(mutex_);
  const auto place = feeds_.find(static_cast<uint64_t>(id));
  if (place == feeds_.end()) return;  // all of it is submitted
  ++place->second->ended;
  if (!std::exchange(place->second->queued, true)) queue_.Push(RequestId(id));
}

void PromptFeeds::Run() {
  while (const std::optional<RequestId> id = queue_.Pop()) {
    Feed* feed = nullptr;
    {
      const base::MutexLock lock(mutex_);
      feed = feeds_.at(static_cast<uint64_t>(*id)).get();
      feed->queued = false;
      feed->in_work -= std::exchange(feed->ended, 0);
    }
    const bool done = Go(*id, *feed);
    // When the client left while prompts were submitted: Cancel could not find those.
    live_.Submitted(*id);
    if (!done) continue;
    const base::MutexLock lock(mutex_);
    // One of its prompts has ended meanwhile: it goes when its turn in the queue comes.
    if (!feed->queued) feeds_.erase(static_cast<uint64_t>(*id));
  }
}

bool PromptFeeds::Go(RequestId id, Feed& feed) {
  const auto count = static_cast<uint32_t>(feed.prompts.size());
  while (feed.next < count && feed.in_work < kPromptsAtOnce) {
    Status status;
    if (live_.client_left(id) || feed.sink->given_up()) {
      status = Status(base::Code::kCancelled, "the client left");
    } else {
      engine::EventSink& events = feed.sink->prompt(feed.next);
      status = generator_.Submit(feed.prompts[feed.next], events);
    }
    if (!status.ok()) {
      if (status.code() == base::Code::kOverloaded && feed.in_work > 0) return false;
      feed.sink->NotSubmitted(std::exchange(feed.next, count), status);
      return true;
    }
    ++feed.next;
    ++feed.in_work;
  }
  return feed.next == count;
}

}  // namespace plumb::api
