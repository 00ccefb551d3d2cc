// SPDX-License-Identifier: Apache-2.0
// The operator's HTTP server: GET requests for pages (health, metrics, debug) that are computed at
// each request.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/http/http_server.h"
#include "operator/server/operator_options.h"

namespace lambdadnn {

class OperatorHttp final : public HttpServerHandler {
 public:
  // Must return soon, and may be called at any time.
  using Page = std::function<HttpServerReply(const HttpServerRequest& request)>;

  // Serves a path, or all below it when it ends in '/'. Before the first server.
  void Add(const std::string& path, Page page) { pages_[path] = std::move(page); }

  // `flag` is named in errors. Null for an address that means nowhere.
  Result<std::unique_ptr<HttpServer>> Listen(Runtime& runtime, const std::string& flag,
                                             const std::string& address);

  std::optional<HttpServerReply> Admit(const HttpServerRequest& head) override;
  HttpServerReply Handle(HttpServerRequest request) override;

 private:
  const Page* Find(const std::string& path) const;
  std::map<std::string, Page> pages_;
};

HttpServerReply TextReply(int status, std::string text);

}  // namespace lambdadnn
