// SPDX-License-Identifier: Apache-2.0
#include "tests/support/raw_tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace lambdadnn {
namespace {

struct ContextFreer {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, ContextFreer>;
struct ConnectionFreer {
  void operator()(SSL* connection) const { SSL_free(connection); }
};
using Connection = std::unique_ptr<SSL, ConnectionFreer>;

Context NewContext(const SSL_METHOD* method, int most_version) {
  Context context(SSL_CTX_new(method));
  SSL_CTX_set_max_proto_version(context.get(), most_version);
  return context;
}

void Use(const TlsIdentity& identity, SSL_CTX* context) {
  BIO* certificate_text =
      BIO_new_mem_buf(identity.certificate.data(), static_cast<int>(identity.certificate.size()));
  BIO* key_text =
      BIO_new_mem_buf(identity.private_key.data(), static_cast<int>(identity.private_key.size()));
  X509* certificate = PEM_read_bio_X509(certificate_text, nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
  if (SSL_CTX_use_certificate(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey(context, key) != 1) {
    std::abort();
  }
  X509_free(certificate);
  EVP_PKEY_free(key);
  BIO_free(certificate_text);
  BIO_free(key_text);
}

std::string ReadAll(SSL* connection) {
  std::string out;
  std::array<char, 4096> buffer{};
  for (;;) {
    const int got = SSL_read(connection, buffer.data(), static_cast<int>(buffer.size()));
    if (got <= 0) return out;
    out.append(buffer.data(), static_cast<size_t>(got));
  }
}

int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  timeval patience{.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
  return fd;
}

}  // namespace

RawReply FetchTls(int port, std::string_view method_and_target, std::string_view key,
                  std::string_view body, int most_version) {
  const Context context = NewContext(TLS_client_method(), most_version);
  const Connection connection(SSL_new(context.get()));
  const int fd = ConnectTo(port);
  SSL_set_fd(connection.get(), fd);
  RawReply reply;
  if (SSL_connect(connection.get()) == 1) {
    const std::string request = FormatRequest(method_and_target, key, body);
    SSL_write(connection.get(), request.data(), static_cast<int>(request.size()));
    reply = ParseReply(ReadAll(connection.get()));
  }
  ERR_clear_error();
  close(fd);
  return reply;
}

RawServer::Script TlsScript(const TlsIdentity& identity, TlsLog& log, int most_version) {
  return [identity, &log, most_version](int fd) {
    const Context context = NewContext(TLS_server_method(), most_version);
    SSL_CTX_set_num_tickets(context.get(), 0);
    Use(identity, context.get());
    const Connection connection(SSL_new(context.get()));
    SSL_set_fd(connection.get(), fd);
    TlsLog::Entry entry;
    entry.handshake = SSL_accept(connection.get()) == 1;
    entry.handshake_bytes = BIO_number_read(SSL_get_rbio(connection.get())) +
                            BIO_number_written(SSL_get_wbio(connection.get()));
    if (entry.handshake) entry.received = ReadAll(connection.get());
    ERR_clear_error();
    log.Add(std::move(entry));
  };
}

}  // namespace lambdadnn
