// api/line_exchange.cc
// See line_exchange.h.
#include "api/line_exchange.h"

#include "api/errors.h"
#include "base/check.h"

namespace plumb::api {

void LineCall::Leave() {
  std::function<void()> callback;
  {
    base::MutexLock lock(mutex_);
    if (left_ || ended_) return;
    left_ = true;
    callback = std::exchange(on_close_, nullptr);
  }
  if (callback) callback();
}

LineExchange::~LineExchange() {
  if (!answered_) End(ErrorResponse(ErrorFromHttp(500, "the request was dropped")));
}

void LineExchange::End(net::HttpResponse response) {
  CHECK(!answered_) << "an exchange is answered once";
  answered_ = true;
  {
    base::MutexLock lock(call_->mutex_);
    call_->ended_ = true;
    call_->on_close_ = nullptr;
  }
  done_(std::move(response));
}

void LineExchange::Respond(net::HttpResponse response) { End(std::move(response)); }

void LineExchange::StartStream(int status, net::HttpHeaders headers) {
  stream_.status = status;
  stream_.headers = std::move(headers);
}

bool LineExchange::Write(std::string_view bytes) {
  stream_.body.append(bytes);
  return !closed();
}

void LineExchange::EndStream() { End(std::move(stream_)); }

void LineExchange::OnClose(std::function<void()> callback) {
  {
    base::MutexLock lock(call_->mutex_);
    if (call_->ended_) return;
    if (!call_->left_) {
      call_->on_close_ = std::move(callback);
      return;
    }
  }
  callback();
}

bool LineExchange::closed() const {
  base::MutexLock lock(call_->mutex_);
  return call_->left_;
}

}  // namespace plumb::api
