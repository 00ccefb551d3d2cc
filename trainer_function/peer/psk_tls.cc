// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/psk_tls.h"

#include <openssl/ssl.h>

#include "common/base/check.h"

namespace lambdadnn {
namespace ssl = boost::asio::ssl;

namespace {

// By which both sides name the one secret that there is.
constexpr std::string_view kIdentity = "lambdadnn";
constexpr const char* kCipherSuite = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherSuiteNumber[] = {0x13, 0x01};

// Where a context holds its secret; its "app data" are Boost.Asio's.
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

void SetUp(SSL_CTX* context, const PeerSecret& secret) {
  LDNN_CHECK(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                 SSL_CTX_set_ciphersuites(context, kCipherSuite) == 1,
             "OpenSSL has no TLS 1.3");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_ex_data(context, SecretIndex(), const_cast<PeerSecret*>(&secret));
}

}  // namespace

PskTls::PskTls(const PeerSecret& secret)
    : secret_(secret), server_(ssl::context::tls_server), client_(ssl::context::tls_client) {
  SetUp(server_.native_handle(), secret_);
  SSL_CTX_set_psk_find_session_callback(server_.native_handle(), FindSession);
  SetUp(client_.native_handle(), secret_);
  SSL_CTX_set_psk_use_session_callback(client_.native_handle(), UseSession);
  // A certificate would be no proof: see IsShared.
  SSL_CTX_set_verify(client_.native_handle(), SSL_VERIFY_NONE, nullptr);
}

bool PskTls::IsShared(SSL* connection) { return SSL_session_reused(connection) == 1; }

}  // namespace lambdadnn
