// cli/startup_gate.h
// The HTTP handler while the model loads: the port is taken at once (a port in use shows before
// minutes of loading), /health answers, / is a page that loads itself again, and everything else is
// told to come back. Then it passes requests on.
#pragma once

#include <atomic>

#include "net/http_server.h"

namespace plumb::cli {

// Thread: any. Borrows what Open gives it until the server's Shutdown.
class StartupGate final : public net::HttpHandler {
 public:
  void Open(net::HttpHandler& handler) { handler_.store(&handler); }

  void OnRequest(net::HttpRequest request, std::unique_ptr<net::HttpExchange> exchange) override;
  net::HttpAdmission Admit(const net::HttpRequest& head) override;
  net::HttpResponse FormatRefusal(const net::HttpRefusal& refusal) const override;

 private:
  std::atomic<net::HttpHandler*> handler_{nullptr};
};

}  // namespace plumb::cli
