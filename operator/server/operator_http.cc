// SPDX-License-Identifier: Apache-2.0
#include "operator/server/operator_http.h"

#include "common/telemetry/log.h"

namespace lambdadnn {

HttpServerReply TextReply(int status, std::string text) {
  HttpServerReply reply;
  reply.status = status;
  reply.content_type = "text/plain; charset=utf-8";
  reply.body = std::move(text) + "\n";
  return reply;
}

const OperatorHttp::Page* OperatorHttp::Find(const std::string& path) const {
  if (const auto found = pages_.find(path); found != pages_.end()) return &found->second;
  for (const auto& [prefix, page] : pages_) {
    if (prefix.size() > 1 && prefix.ends_with('/') && path.starts_with(prefix)) return &page;
  }
  return nullptr;
}

std::optional<HttpServerReply> OperatorHttp::Admit(const HttpServerRequest& head) {
  if (head.method != "GET" && head.method != "HEAD") return TextReply(405, "only GET");
  if (head.has_body) return TextReply(413, "no page takes a body");
  if (Find(head.path) == nullptr) return TextReply(404, "no such page");
  return std::nullopt;
}

HttpServerReply OperatorHttp::Handle(HttpServerRequest request) {
  const Page* page = Find(request.path);
  return page == nullptr ? TextReply(404, "no such page") : (*page)(request);
}

Result<std::unique_ptr<HttpServer>> OperatorHttp::Listen(Runtime& runtime, const std::string& flag,
                                                         const std::string& address) {
  if (address.empty() || address == "0") return std::unique_ptr<HttpServer>();
  LDNN_ASSIGN_OR_RETURN(const ListenAddress listen, ParseListenAddress(flag, address));
  Result<std::unique_ptr<HttpServer>> server =
      HttpServer::ListenTcp(runtime, *this, listen.host, listen.port, HttpServerLimits{});
  if (!server.ok()) return server.status().WithContext(flag);
  LogInfo("operator", "serving",
          {{"flag", flag}, {"host", listen.host}, {"port", (*server)->port()}});
  return server;
}

}  // namespace lambdadnn
