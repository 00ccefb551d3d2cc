// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 server over TCP or a Unix socket: the function server and the function host are
// handlers on top of it.
//
// One task of the executor reads and writes all connections; Handle() runs on it and must return
// soon (a probe waits for it). A reply may stream its body: its source then runs on a task of its
// own and may block. Header, body, connections, streams and every wait are limited; a request that
// breaks a limit or the protocol is answered 4xx and its connection closed. Request bodies are read
// only after Admit() has let the header pass. HEAD is answered like GET, without the body.
// Plain HTTP, or TLS 1.3 with a certificate of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "common/base/tls_identity.h"

namespace lambdadnn {

struct HttpServerRequest {
  std::string method;  // "GET"
  std::string path;    // percent-decoded, without the query
  std::map<std::string, std::string> query;
  std::string authorization;  // value of the header; empty when absent
  bool has_body = false;      // the header announces one: a length above 0, or chunks
  std::string body;           // empty in Admit()
};

// The next piece of a streamed body, as soon as there is one (a source that has nothing to say for
// seconds writes a heartbeat, else a dead peer is never noticed); nullopt ends the body.
using HttpBodySource = std::function<std::optional<std::string>()>;

struct HttpServerReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpBodySource stream;  // when set, the body is chunked and the connection closed after it
};

// {"error": {"code": "INVALID_ARGUMENT", "message": "…"}} with the HTTP status of the code.
HttpServerReply ErrorReply(const Status& status);
// The HTTP status that ErrorReply() uses, e.g. 404 for kNotFound.
int HttpStatusOf(StatusCode code);

class HttpServerHandler {
 public:
  virtual ~HttpServerHandler() = default;
  // Sees the header alone. A reply refuses the request, and its body is never read.
  virtual std::optional<HttpServerReply> Admit(const HttpServerRequest& head) = 0;
  virtual HttpServerReply Handle(HttpServerRequest request) = 0;
};

struct HttpServerLimits {
  uint32_t header_bytes = 16 * 1024;
  uint64_t body_bytes = 4 * 1024 * 1024;  // a plan of 1,000 functions has well below 1 MiB
  int connections = 64;                   // further ones are closed unanswered
  int streams = 16;                       // further ones are answered 503
  // From connection, handshake or previous reply to the whole header; and of the handshake.
  double header_seconds = 10;
  double body_seconds = 30;
  double write_seconds = 20;  // of one reply or one piece of a stream
  Status Validate() const;
};

class HttpServer {
 public:
  // Listens at once; `handler` and `runtime` outlive the server. Port 0 picks a free one. With
  // `tls` every connection begins with a handshake, and other bytes end it.
  // kUnavailable names the address and the reason (in use, not permitted); kInvalidArgument: no
  // address, or an identity that CheckTlsIdentity refuses.
  static Result<std::unique_ptr<HttpServer>> ListenTcp(Runtime& runtime, HttpServerHandler& handler,
                                                       const std::string& address, int port,
                                                       const HttpServerLimits& limits,
                                                       const std::optional<TlsIdentity>& tls = {});
  // The socket file must not exist; it is left to the caller to remove it. Mode 0600.
  static Result<std::unique_ptr<HttpServer>> ListenUnix(Runtime& runtime,
                                                        HttpServerHandler& handler,
                                                        const std::string& path,
                                                        const HttpServerLimits& limits);
  // Closes all connections and joins all tasks: waits for sources to give their next piece.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;  // 0 for a Unix socket
  // Replies under way, streams included.
  int ActiveReplies() const;

 private:
  friend class HttpSession;  // of http_server.cc
  struct State;
  explicit HttpServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// What a connection that sends `bytes` and then closes is answered, without a socket: the same
// parser, limits and handler. For tests and fuzzing.
std::string ServeBytes(HttpServerHandler& handler, const HttpServerLimits& limits,
                       std::string_view bytes);

}  // namespace lambdadnn
