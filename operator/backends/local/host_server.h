// SPDX-License-Identifier: Apache-2.0
// The function host as a program: FunctionHost behind HTTP on a Unix socket, until it receives a
// signal or its parent has ended (docs/formats.md, "Function host API"). The socket is for its
// owner alone, who may do everything.
#pragma once

#include <atomic>
#include <string>

#include "common/base/runtime.h"
#include "common/http/http_server.h"
#include "operator/backends/local/function_host.h"

namespace lambdadnn {

class HostServer final : public HttpServerHandler {
 public:
  // `host` outlives the server. `directory` is what GET /v1/host shows.
  HostServer(FunctionHost& host, std::string directory)
      : host_(host), directory_(std::move(directory)) {}

  std::optional<HttpServerReply> Admit(const HttpServerRequest& head) override;
  HttpServerReply Handle(HttpServerRequest request) override;
  // Set once DELETE /v1/host was answered: how long functions may take to end.
  std::optional<double> EndRequested() const {
    const double seconds = end_grace_seconds_;
    return seconds < 0 ? std::nullopt : std::optional<double>(seconds);
  }

 private:
  HttpServerReply Functions(const HttpServerRequest& request);
  HttpServerReply OneFunction(const HttpServerRequest& request, std::string uid);

  FunctionHost& host_;
  const std::string directory_;
  std::atomic<double> end_grace_seconds_{-1};  // < 0: not requested
};

struct HostProgramOptions {
  std::string socket;
  FunctionHost::Options host;
};

// Serves until SIGTERM, SIGINT, DELETE /v1/host or the parent's end; then all functions are gone,
// and so is the socket. kFailedPrecondition when another host serves the socket; the socket file of
// one that was killed is taken over. Blocks SIGTERM and SIGINT: call it before threads start.
Status RunHost(Runtime& runtime, const HostProgramOptions& options);

}  // namespace lambdadnn
