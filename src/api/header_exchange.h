// api/header_exchange.h
// An exchange whose answer, whichever it will be, gets some more headers: for what is known of a
// request before there is an answer. Everything else is the inner exchange's.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "net/http_server.h"

namespace plumb::api {

// A resource type; owns the inner exchange. Thread: as net::HttpExchange.
class HeaderExchange final : public net::HttpExchange {
 public:
  HeaderExchange(std::unique_ptr<net::HttpExchange> inner, net::HttpHeaders headers)
      : inner_(std::move(inner)), headers_(std::move(headers)) {}

  void Respond(net::HttpResponse response) override {
    AddTo(response.headers);
    inner_->Respond(std::move(response));
  }
  void RespondFile(net::HttpResponse response,
                   std::shared_ptr<const base::MappedFile> file) override {
    AddTo(response.headers);
    inner_->RespondFile(std::move(response), std::move(file));
  }
  void StartStream(int status, net::HttpHeaders headers) override {
    AddTo(headers);
    inner_->StartStream(status, std::move(headers));
  }
  bool Write(std::string_view bytes) override { return inner_->Write(bytes); }
  void EndStream() override { inner_->EndStream(); }
  void EndStreamWith(std::string_view last) override { inner_->EndStreamWith(last); }
  void OnClose(std::function<void()> callback) override { inner_->OnClose(std::move(callback)); }
  bool closed() const override { return inner_->closed(); }

 private:
  void AddTo(net::HttpHeaders& headers) const {
    for (const net::HttpHeaders::Field& field : headers_.fields())
      headers.Add(field.name, field.value);
  }

  const std::unique_ptr<net::HttpExchange> inner_;
  const net::HttpHeaders headers_;
};

}  // namespace plumb::api
