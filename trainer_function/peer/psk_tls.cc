// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/psk_tls.h"

#include <openssl/ssl.h>

#include "common/base/check.h"

namespace lambdadnn {

namespace {

// By which both sides name the one secret that there is.
constexpr std::string_view kIdentity = "lambdadnn";
constexpr const char* kCipherSuite = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherSuiteNumber[] = {0x13, 0x01};

// Where a context holds its secret.
int SecretIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// A new reference, as both callbacks of OpenSSL want it; null = out of memory.
SSL_SESSION* SessionOf(SSL* connection) {
  const auto* const secret = static_cast<const PeerSecret*>(
      SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), SecretIndex()));
  SSL_SESSION* const session = SSL_SESSION_new();
  if (session == nullptr) return nullptr;
  const bool made =
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(secret->data()),
                                  secret->size()) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(connection, kCipherSuiteNumber)) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int UseSession(SSL* connection, const EVP_MD*, const unsigned char** identity, size_t* length,
               SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *length = kIdentity.size();
  *session = SessionOf(connection);
  return *session != nullptr ? 1 : 0;
}

int FindSession(SSL* connection, const unsigned char* identity, size_t length,
                SSL_SESSION** session) {
  const std::string_view named(reinterpret_cast<const char*>(identity), length);
  // Without one the handshake fails, since there is no certificate.
  *session = named == kIdentity ? SessionOf(connection) : nullptr;
  return 1;
}

}  // namespace

PskTls::Context PskTls::Make(const SSL_METHOD* method, const PeerSecret& secret) {
  Context context(SSL_CTX_new(method));
  LDNN_CHECK(context != nullptr &&
                 SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                 SSL_CTX_set_ciphersuites(context.get(), kCipherSuite) == 1,
             "OpenSSL has no TLS 1.3");
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_ex_data(context.get(), SecretIndex(), const_cast<PeerSecret*>(&secret));
  return context;
}

PskTls::PskTls(const PeerSecret& secret)
    : secret_(secret),
      server_(Make(TLS_server_method(), secret_)),
      client_(Make(TLS_client_method(), secret_)) {
  SSL_CTX_set_psk_find_session_callback(server_.get(), FindSession);
  SSL_CTX_set_psk_use_session_callback(client_.get(), UseSession);
  // A certificate would be no proof: see IsShared.
  SSL_CTX_set_verify(client_.get(), SSL_VERIFY_NONE, nullptr);
}

bool PskTls::IsShared(SSL* connection) { return SSL_session_reused(connection) == 1; }

}  // namespace lambdadnn
