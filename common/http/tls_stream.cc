// SPDX-License-Identifier: Apache-2.0
#include "common/http/tls_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "common/http/pem.h"
#include "common/http/pinned_certificate.h"

namespace lambdadnn {
namespace ssl = boost::asio::ssl;

Result<ssl::context> NewTlsServerContext(const TlsIdentity& identity) {
  LDNN_RETURN_IF_ERROR(CheckTlsIdentity(identity));
  ssl::context context(ssl::context::tls_server);
  SSL_CTX* const native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION);
  // Every connection makes its own handshake.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(native, 0);
  const std::vector<Certificate> chain = ReadCertificates(identity.certificate);
  const PrivateKey key = ReadPrivateKey(identity.private_key);
  const bool taken = SSL_CTX_use_certificate(native, chain.front().get()) == 1 &&
                     SSL_CTX_use_PrivateKey(native, key.get()) == 1;
  ERR_clear_error();
  if (!taken) {
    return InvalidArgumentError(
        "OpenSSL refuses the certificate, whose key may be too weak; give another");
  }
  return context;
}

ssl::context NewPinningContext() {
  ssl::context context(ssl::context::tls_client);
  SSL_CTX* const native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  // No authority has signed it: see DigestOfPeer.
  SSL_CTX_set_verify(native, SSL_VERIFY_NONE, nullptr);
  // Thousands of streams may be open, most of them idle.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  return context;
}

std::string DigestOfPeer(SSL* connection) {
  const Certificate shown(SSL_get1_peer_certificate(connection));
  return DigestOf(shown.get());
}

}  // namespace lambdadnn
