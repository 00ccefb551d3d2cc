// SPDX-License-Identifier: Apache-2.0
// A TCP connection to a server, plain or with TLS. Reads and writes block the calling thread, up to
// the end of the request that they are of. Used by one thread at a time. Private to this folder.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/endpoint.h"
#include "common/base/status.h"
#include "common/http/request_time.h"

struct ssl_ctx_st;
struct ssl_st;

namespace lambdadnn {

class ClientSocket {
 public:
  // Tries the host's addresses one after another. Errors name the endpoint. Looking a
  // name up takes as long as the system's resolver does, and is not cancelled.
  static Result<std::unique_ptr<ClientSocket>> Connect(const Endpoint& endpoint, RequestTime& time);
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  // `name`: what the server's certificate must hold, a DNS name or an address; empty = any
  // certificate will do. `context` outlives this.
  Status StartTls(ssl_ctx_st* context, const std::string& name, RequestTime& time);

  // All pieces. kUnavailable when the peer takes no more.
  Status Write(std::span<const ByteView> pieces, RequestTime& time);
  // At least one byte; 0 = the peer has ended. kUnavailable when the connection broke.
  Result<size_t> Read(MutableByteView target, RequestTime& time);
  // Whether the peer, as far as is known here, has neither ended the connection nor sent anything.
  bool IsIdle() const;
  // kUnavailable: no answer from this server, and why.
  Status Broken(const std::string& why) const;

 private:
  ClientSocket(int fd, std::string origin) : fd_(fd), origin_(std::move(origin)) {}
  Status WritePlain(std::span<const ByteView> pieces, RequestTime& time);
  Status WriteTls(ByteView bytes, RequestTime& time);
  Result<size_t> ReadTls(MutableByteView target, RequestTime& time);
  // After an operation of TLS returned `result`: OK once it may be tried again.
  Status AwaitTls(int result, RequestTime& time);

  const int fd_;
  const std::string origin_;  // for messages
  ssl_st* tls_ = nullptr;
};

}  // namespace lambdadnn
