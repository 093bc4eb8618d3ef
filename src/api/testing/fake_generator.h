// api/testing/fake_generator.h
// Tests only. A Generator that replays scripted tokens under any chunking, with the text rules of
// the real one (whole characters, stop strings held back, an end token that ends, grammars that
// hold): what the API must survive can be scripted here, without a model. Events come from its own
// thread after Start, or from whoever calls Step.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/testing/fake_answer.h"
#include "api/testing/fake_logprob.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "engine/generator.h"
#include "text/tokenizer.h"

namespace plumb::api::testing {

// Thread: any; Step one at a time.
class FakeGenerator final : public engine::Generator {
 public:
  FakeGenerator(const text::Tokenizer& tokenizer, FakeScript script)
      : tokenizer_(tokenizer), script_(std::move(script)) {}
  ~FakeGenerator() override {
    {
      base::MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    if (thread_.joinable()) thread_.Join();
  }

  void Start() {
    thread_ = base::Thread("fake-generator", [this] {
      while (WaitForWork()) Step();
    });
  }

  base::Status Submit(engine::Request request, engine::EventSink& sink) override {
    base::MutexLock lock(mutex_);
    if (!refusal_.ok()) return refusal_;
    if (live_.size() >= live_allowed_) return base::Status(base::Code::kOverloaded, "full");
    ++submitted_;
    last_request_ = request;
    const uint64_t key = static_cast<uint64_t>(request.id);
    Live live{.request = std::move(request), .sink = &sink, .samples = {}, .cancelled = false};
    const FakeCache::Use use = cache_.Take(live.request);
    for (uint32_t i = 0; i < live.request.samples; ++i) {
      live.samples.emplace_back(script_(live.request, i), tokenizer_, live.request);
      live.samples.back().cache_use = use;
    }
    live_.emplace(key, std::move(live));
    live_most_ = std::max(live_most_, live_.size());
    changed_.NotifyAll();
    return base::OkStatus();
  }

  void Cancel(engine::RequestId id) override {
    base::MutexLock lock(mutex_);
    if (auto live = live_.find(static_cast<uint64_t>(id)); live != live_.end())
      live->second.cancelled = true;
    ++cancels_;
    changed_.NotifyAll();
  }

  // Every sample that has not ended goes on, and ends, as this says.
  void Resume(const FakeAnswer& rest) {
    base::MutexLock lock(mutex_);
    for (auto& [key, live] : live_) {
      for (Sample& sample : live.samples) {
        auto& tokens = sample.answer.tokens;
        tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
        sample.answer.failure = rest.failure;
      }
    }
    changed_.NotifyAll();
  }

  // One event for each unfinished sample; false when nothing is live.
  bool Step() {
    std::vector<uint64_t> keys;
    {
      base::MutexLock lock(mutex_);
      for (const auto& [key, live] : live_) keys.push_back(key);
    }
    for (const uint64_t key : keys) StepRequest(key);
    return !keys.empty();
  }

  // From now on Submit gives this.
  void Refuse(base::Status status) {
    base::MutexLock lock(mutex_);
    refusal_ = std::move(status);
  }
  // From now on Submit gives kOverloaded while so many are live.
  void RefuseBeyond(size_t count) {
    base::MutexLock lock(mutex_);
    live_allowed_ = count;
  }
  // Until so many requests have been submitted and not ended.
  void WaitLive(size_t count) {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) { return live_.size() == count; });
  }
  size_t live() const {
    base::MutexLock lock(mutex_);
    return live_.size();
  }
  // The most that were live at once, and how many were taken in all.
  size_t live_most() const {
    base::MutexLock lock(mutex_);
    return live_most_;
  }
  size_t submitted() const {
    base::MutexLock lock(mutex_);
    return submitted_;
  }
  size_t cancels() const {
    base::MutexLock lock(mutex_);
    return cancels_;
  }
  // What all that had begun and have ended took, as their ends say: prompts and answers.
  size_t tokens_told() const {
    base::MutexLock lock(mutex_);
    return tokens_told_;
  }
  engine::Request last_request() const {
    base::MutexLock lock(mutex_);
    return last_request_;
  }

  static float Logprob(base::TokenId token) { return FakeLogprob(token, 0).logprob; }

 private:
  using Sample = FakeSample;
  struct Live {
    engine::Request request;
    engine::EventSink* sink;
    std::vector<Sample> samples;
    bool cancelled;
  };

  static bool CanMove(const Live& live) {
    if (live.cancelled) return true;
    return std::any_of(live.samples.begin(), live.samples.end(), [](const Sample& sample) {
      const bool more =
          sample.scripted < sample.answer.tokens.size() || !sample.answer.failure.ok();
      return !sample.finished && more;
    });
  }

  bool WaitForWork() {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) {
      return stopping_ || std::any_of(live_.begin(), live_.end(),
                                      [](const auto& entry) { return CanMove(entry.second); });
    });
    return !stopping_;
  }

  void StepRequest(uint64_t key) {
    size_t samples = 0;
    {
      base::MutexLock lock(mutex_);
      samples = live_.at(key).samples.size();
    }
    for (uint32_t i = 0; i < samples; ++i) {
      engine::EventSink* sink = nullptr;
      engine::TokenEvent event;
      bool last = false;
      {
        base::MutexLock lock(mutex_);
        Live& live = live_.at(key);
        if (live.samples[i].finished) continue;
        sink = live.sink;
        event = NextEvent(live, i);
        live.samples[i].finished = event.finish.has_value();
        if (event.finish && event.finish->weights_version != 0) {
          tokens_told_ += event.finish->completion_tokens;
          if (i == 0) tokens_told_ += event.finish->prompt_tokens;
        }
        last = std::all_of(live.samples.begin(), live.samples.end(),
                           [](const Sample& sample) { return sample.finished; });
        if (last) live_.erase(key);
        if (last) changed_.NotifyAll();
      }
      sink->OnEvent(std::move(event));  // without the lock: it may call Cancel
      if (last) return;
    }
  }

  engine::TokenEvent NextEvent(Live& live, uint32_t sample_index) const {
    Sample& sample = live.samples[sample_index];
    engine::TokenEvent event{.request = live.request.id, .sample_index = sample_index};
    const engine::SamplingParams& sampling = live.request.sampling;
    const bool embeds = live.request.pooling != engine::Pooling::kNone;
    if (embeds && !live.cancelled && sample.answer.failure.ok()) {
      event.embedding = FakeEmbedding(live.request);
      FinishSample(live.request, sample, engine::FinishReason::kStop, event);
      return event;
    }
    const bool describes = live.request.prompt_logprobs && sample_index == 0 && sample.sent == 0;
    for (size_t i = 1; describes && i < live.request.prompt.size(); ++i)
      event.prompt_logprobs.push_back(FakeLogprob(live.request.prompt[i], sampling.top_logprobs));
    const auto& chunks = sample.answer.chunks;
    const uint32_t wanted =
        sample.events < chunks.size() ? chunks[sample.events] : sample.answer.chunk_tokens;
    const uint32_t chunk = wanted == 0 ? UINT32_MAX : wanted;
    ++sample.events;
    for (uint32_t i = 0; i < chunk && !event.finish && !live.cancelled; ++i) {
      if (sample.scripted == sample.answer.tokens.size()) break;
      PushToken(live, sample, NextToken(sample, tokenizer_), event);
      if (!event.finish && sample.sent == sampling.tokens_max)
        FinishSample(live.request, sample, engine::FinishReason::kLength, event);
    }
    if (event.finish) return event;
    if (live.cancelled) {
      FinishSample(live.request, sample, engine::FinishReason::kCancelled, event);
    } else if (sample.scripted == sample.answer.tokens.size() && !sample.answer.failure.ok()) {
      FinishSample(live.request, sample, engine::FinishReason::kError, event);
      event.finish->status = sample.answer.failure;
    }
    return event;
  }

  void PushToken(const Live& live, Sample& sample, base::TokenId token,
                 engine::TokenEvent& event) const {
    const engine::SamplingParams& sampling = live.request.sampling;
    ++sample.sent;
    event.tokens.push_back(token);
    if (sampling.logprobs) event.logprobs.push_back(FakeLogprob(token, sampling.top_logprobs));
    const auto ends = tokenizer_.end_tokens();
    const bool end = std::find(ends.begin(), ends.end(), token) != ends.end();
    if (end && !sampling.ignore_end)
      return FinishSample(live.request, sample, engine::FinishReason::kStop, event);
    auto output = sample.matcher.Push(sample.detokenizer.Push(token));
    event.text += output.text;
    if (!output.stop_index && sample.grammar != nullptr && sample.grammar->Complete())
      return FinishSample(live.request, sample, engine::FinishReason::kStop, event);
    if (!output.stop_index) return;
    FinishSample(live.request, sample, engine::FinishReason::kStop, event);
    event.finish->stop = sample.stop_strings[*output.stop_index];
  }

  const text::Tokenizer& tokenizer_;
  const FakeScript script_;
  base::Thread thread_;
  mutable base::Mutex mutex_;
  base::Condition changed_;
  std::map<uint64_t, Live> live_ GUARDED_BY(mutex_);
  FakeCache cache_ GUARDED_BY(mutex_);
  base::Status refusal_ GUARDED_BY(mutex_);
  engine::Request last_request_ GUARDED_BY(mutex_){};
  size_t submitted_ GUARDED_BY(mutex_) = 0, cancels_ GUARDED_BY(mutex_) = 0;
  size_t live_allowed_ GUARDED_BY(mutex_) = SIZE_MAX, live_most_ GUARDED_BY(mutex_) = 0;
  size_t tokens_told_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace plumb::api::testing
