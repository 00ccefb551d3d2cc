// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 between two that hold the same secret: no certificates, no names, no dates. The session's
// keys come from a fresh key exchange as well, so that the secret alone opens nothing that was
// recorded. For .cc files and headers that are private to their folder.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "common/base/status.h"
#include "trainer_function/peer/peer_key.h"

namespace lambdadnn {

class PskTls {
 public:
  explicit PskTls(const PeerSecret& secret);
  PskTls(const PskTls&) = delete;
  PskTls& operator=(const PskTls&) = delete;

  // They point into this.
  boost::asio::ssl::context& server() { return server_; }
  boost::asio::ssl::context& client() { return client_; }
  // After a client's handshake: whether the server has shown that it holds the secret. One that
  // shows a certificate instead has not.
  static bool IsShared(SSL* connection);

 private:
  const PeerSecret secret_;
  boost::asio::ssl::context server_;
  boost::asio::ssl::context client_;
};

}  // namespace lambdadnn
