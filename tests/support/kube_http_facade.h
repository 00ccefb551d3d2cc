// SPDX-License-Identifier: Apache-2.0
// HTTP facade of the in-memory API server: an HttpTransport that answers HttpKubeClient's requests
// as kube-apiserver does, so that the production client runs against it, on threads or fibers.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "common/http/http_transport.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

class KubeHttpFacade final : public HttpTransport {
 public:
  // Serves `types` of `server`, which outlives it. A watch's bytes come `watch_piece` at a time;
  // that its caller has gone it notices every `watch_poll`.
  KubeHttpFacade(KubeClient& server, std::vector<ResourceType> types, size_t watch_piece,
                 Duration watch_poll = std::chrono::milliseconds(20));

  Result<HttpResponse> Send(const HttpRequest& request) override;

  // Asked before each request; an answer is given in the server's place.
  std::function<std::optional<Result<HttpResponse>>(const HttpRequest&)> intercept;

 private:
  struct Target;
  std::optional<Target> Parse(const HttpRequest& request) const;
  Result<Json> Call(const HttpRequest& request, const Target& target);
  HttpResponse Stream(const HttpRequest& request, const Target& target);
  bool SendPieces(const HttpRequest& request, const std::string& line) const;

  KubeClient& server_;
  const std::vector<ResourceType> types_;
  const size_t watch_piece_;
  const Duration watch_poll_;
};

// What a real server answers for this error: an HTTP status and a Status object.
HttpResponse KubeRefusal(const Status& status);

}  // namespace lambdadnn
