// SPDX-License-Identifier: Apache-2.0
// One side of a TLS connection whose bytes others carry: many records go out with one call to the
// kernel, and come in with one. Of one task. For .cc files and headers that are private to their
// folder.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "common/base/bytes.h"
#include "common/base/status.h"

namespace lambdadnn {

class TlsSession {
 public:
  enum class Side { kClient, kServer };
  // `context` outlives this.
  TlsSession(SSL_CTX* context, Side side);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // What has come from the other side; Handshake and Read take it, all of it, and it must stay
  // until they say that they need more.
  void Receive(ByteView bytes) { incoming_ = bytes; }
  // What the other side must get. Whoever has sent it clears it.
  Bytes& outgoing() { return outgoing_; }

  // One step. False: it goes on when more has come.
  Result<bool> Handshake();
  // After the handshake: plain bytes, at least one; 0 = more must come first.
  Result<size_t> Read(MutableByteView plain);
  Status Write(ByteView plain);

  SSL* native_handle() { return ssl_.get(); }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  friend struct TlsSessionBio;

  ByteView incoming_;
  Bytes outgoing_;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace lambdadnn
