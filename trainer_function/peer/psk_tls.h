// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 between two that hold the same secret: no certificates, no names, no dates. The session's
// keys come from a fresh key exchange as well, so that the secret alone opens nothing that was
// recorded. For .cc files and headers that are private to their folder.
#pragma once

#include <openssl/ssl.h>

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
  SSL_CTX* server() { return server_.get(); }
  SSL_CTX* client() { return client_.get(); }
  // After a client's handshake: whether the server has shown that it holds the secret. One that
  // shows a certificate instead has not.
  static bool IsShared(SSL* connection);

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using Context = std::unique_ptr<SSL_CTX, Free>;
  // On one of OpenSSL's methods.
  static Context Make(const SSL_METHOD* method, const PeerSecret& secret);

  const PeerSecret secret_;
  Context server_;
  Context client_;
};

}  // namespace lambdadnn
