// api/testing/fake_exchange.h
// Tests only. An HttpExchange that keeps what it is given, and a client's side that waits for it
// and may leave. Checks the contract of net/http_server.h: answered once, in order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "net/http_server.h"

namespace plumb::api::testing {

// The client's side; waits in its destructor until the exchange is gone. Thread: any.
class FakeClient {
 public:
  FakeClient() = default;
  ~FakeClient() { WaitGone(); }
  FakeClient(const FakeClient&) = delete;
  FakeClient& operator=(const FakeClient&) = delete;

  // Once for each client.
  std::unique_ptr<net::HttpExchange> MakeExchange() {
    base::MutexLock lock(mutex_);
    gone_ = false;
    return std::make_unique<Exchange>(*this);
  }

  // Closes the connection, as a client that leaves.
  void Leave() {
    std::function<void()> callback;
    {
      base::MutexLock lock(mutex_);
      if (ended_) return;
      closed_ = true;
      callback = std::exchange(on_close_, nullptr);
    }
    if (callback) callback();
  }
  // Until the answer is complete; what came.
  net::HttpResponse Wait() {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) { return ended_; });
    return response_;
  }
  // Until so many bytes of a body have come.
  void WaitBytes(size_t size) {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) { return ended_ || response_.body.size() >= size; });
  }
  // Until the exchange object is gone: the server has let go of the request.
  void WaitGone() {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) { return gone_; });
  }
  // What has come until now.
  net::HttpResponse so_far() const {
    base::MutexLock lock(mutex_);
    return response_;
  }
  // Whether the answer is complete.
  bool ended() const {
    base::MutexLock lock(mutex_);
    return ended_;
  }
  bool streamed() const {
    base::MutexLock lock(mutex_);
    return streaming_;
  }

 private:
  class Exchange final : public net::HttpExchange {
   public:
    explicit Exchange(FakeClient& client) : client_(client) {}
    ~Exchange() override {
      base::MutexLock lock(client_.mutex_);
      CHECK(client_.ended_ || client_.closed_) << "an exchange was dropped without an answer";
      client_.gone_ = true;
      client_.changed_.NotifyAll();
    }
    void Respond(net::HttpResponse response) override {
      base::MutexLock lock(client_.mutex_);
      CHECK(!client_.ended_ && !client_.streaming_) << "answered twice";
      client_.response_ = std::move(response);
      End();
    }
    void StartStream(int status, net::HttpHeaders headers) override {
      base::MutexLock lock(client_.mutex_);
      CHECK(!client_.ended_ && !client_.streaming_) << "answered twice";
      client_.streaming_ = true;
      client_.response_.status = status;
      client_.response_.headers = std::move(headers);
    }
    bool Write(std::string_view bytes) override {
      base::MutexLock lock(client_.mutex_);
      CHECK(client_.streaming_ && !client_.ended_) << "a write outside a stream";
      if (client_.closed_) return false;
      client_.response_.body += bytes;
      client_.changed_.NotifyAll();
      return true;
    }
    void EndStream() override {
      base::MutexLock lock(client_.mutex_);
      CHECK(client_.streaming_ && !client_.ended_) << "ended outside a stream";
      End();
    }
    void OnClose(std::function<void()> callback) override {
      {
        base::MutexLock lock(client_.mutex_);
        if (!client_.closed_) {
          client_.on_close_ = std::move(callback);
          return;
        }
      }
      callback();
    }
    bool closed() const override {
      base::MutexLock lock(client_.mutex_);
      return client_.closed_;
    }

   private:
    void End() HOLDS(client_.mutex_) {
      client_.ended_ = true;
      client_.on_close_ = nullptr;
      client_.changed_.NotifyAll();
    }
    FakeClient& client_;
  };

  mutable base::Mutex mutex_;
  base::Condition changed_;
  net::HttpResponse response_ GUARDED_BY(mutex_);
  std::function<void()> on_close_ GUARDED_BY(mutex_);
  bool streaming_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
  bool gone_ GUARDED_BY(mutex_) = true;
};

}  // namespace plumb::api::testing
