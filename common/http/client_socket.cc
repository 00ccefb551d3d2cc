// SPDX-License-Identifier: Apache-2.0
#include "common/http/client_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/http/request_errors.h"

namespace lambdadnn {
namespace {

// Pieces below this size share a record of TLS, which costs a call and its own checksum.
constexpr size_t kRecordBytes = size_t{16} << 10;
constexpr size_t kMostPieces = 64;  // of one call of sendmsg

bool MustWait(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// OpenSSL's own BIO of a socket raises SIGPIPE where the peer has closed.
int BioWrite(BIO* bio, const char* bytes, int size) {
  const int fd = *static_cast<const int*>(BIO_get_data(bio));
  const ssize_t sent = send(fd, bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  BIO_clear_retry_flags(bio);
  if (sent < 0 && MustWait(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}
int BioRead(BIO* bio, char* bytes, int size) {
  const int fd = *static_cast<const int*>(BIO_get_data(bio));
  const ssize_t got = recv(fd, bytes, static_cast<size_t>(size), 0);
  BIO_clear_retry_flags(bio);
  if (got < 0 && MustWait(errno)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}
long BioControl(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
int BioCreate(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

// Of the socket whose descriptor lies there for as long as the BIO.
BIO* NewBio(const int* fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "socket");
    LDNN_CHECK(made != nullptr, "OpenSSL has no memory");
    BIO_meth_set_write(made, BioWrite);
    BIO_meth_set_read(made, BioRead);
    BIO_meth_set_ctrl(made, BioControl);
    BIO_meth_set_create(made, BioCreate);
    return made;
  }();
  BIO* const bio = BIO_new(method);
  LDNN_CHECK(bio != nullptr, "OpenSSL has no memory");
  BIO_set_data(bio, const_cast<int*>(fd));
  return bio;
}

struct AddressesFreer {
  void operator()(addrinfo* first) const { freeaddrinfo(first); }
};
using Addresses = std::unique_ptr<addrinfo, AddressesFreer>;

Result<Addresses> Resolve(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(),
                                std::to_string(endpoint.PortOrUsual()).c_str(), &hints, &found);
  if (error != 0) return NoAnswer(endpoint.Text(), gai_strerror(error));
  return Addresses(found);
}

Status ConnectTo(int fd, const addrinfo& address, const std::string& origin, RequestTime& time) {
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) return OkStatus();
  if (errno != EINPROGRESS) return NoAnswer(origin, std::strerror(errno));
  LDNN_RETURN_IF_ERROR(time.Await(fd, POLLOUT));
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? OkStatus() : NoAnswer(origin, std::strerror(error));
}

}  // namespace

Result<std::unique_ptr<ClientSocket>> ClientSocket::Connect(const Endpoint& endpoint,
                                                            RequestTime& time) {
  LDNN_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(endpoint));
  const std::string origin = endpoint.Text();
  Status status = NoAnswer(origin, "the host has no address");
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    const int fd =
        socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol);
    if (fd < 0) {
      status = NoAnswer(origin, std::strerror(errno));
      continue;
    }
    std::unique_ptr<ClientSocket> made(new ClientSocket(fd, origin));
    status = ConnectTo(fd, *one, origin, time);
    if (status.ok()) {
      // The last piece of a request must not wait for the answer to the one before.
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return made;
    }
    LDNN_RETURN_IF_ERROR(time.Check());
  }
  return status;
}

ClientSocket::~ClientSocket() {
  SSL_free(tls_);
  close(fd_);
}

Status ClientSocket::Broken(const std::string& why) const { return NoAnswer(origin_, why); }

Status ClientSocket::AwaitTls(int result, RequestTime& time) {
  switch (SSL_get_error(tls_, result)) {
    case SSL_ERROR_WANT_READ:
      return time.Await(fd_, POLLIN);
    case SSL_ERROR_WANT_WRITE:
      return time.Await(fd_, POLLOUT);
    case SSL_ERROR_SYSCALL:
      return Broken(errno == 0 ? "the connection was cut" : std::strerror(errno));
    default: {
      const char* const text = ERR_reason_error_string(ERR_peek_last_error());
      return Broken(text == nullptr ? "the connection was cut" : text);
    }
  }
}

Status ClientSocket::StartTls(ssl_ctx_st* context, const std::string& name, RequestTime& time) {
  tls_ = SSL_new(context);
  LDNN_CHECK(tls_ != nullptr, "OpenSSL has no memory");
  BIO* const bio = NewBio(&fd_);
  SSL_set_bio(tls_, bio, bio);
  if (!name.empty()) {
    std::array<unsigned char, sizeof(in6_addr)> address{};
    const bool is_address = inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
                            inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
    if (is_address) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_), name.c_str());
    } else {
      SSL_set_tlsext_host_name(tls_, name.c_str());
      SSL_set_hostflags(tls_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
      SSL_set1_host(tls_, name.c_str());
    }
    SSL_set_verify(tls_, SSL_VERIFY_PEER, nullptr);
  }
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(tls_);
    if (result == 1) return OkStatus();
    if (SSL_get_error(tls_, result) == SSL_ERROR_SSL) return TlsFailed(origin_, ERR_peek_error());
    LDNN_RETURN_IF_ERROR(AwaitTls(result, time));
  }
}

Status ClientSocket::WritePlain(std::span<const ByteView> pieces, RequestTime& time) {
  std::vector<iovec> left;
  for (const ByteView piece : pieces) {
    if (!piece.empty()) left.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  }
  for (size_t next = 0; next < left.size();) {
    msghdr message{};
    message.msg_iov = &left[next];
    message.msg_iovlen = std::min(left.size() - next, kMostPieces);
    const ssize_t result = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (result < 0) {
      if (!MustWait(errno)) return Broken(std::strerror(errno));
      LDNN_RETURN_IF_ERROR(time.Await(fd_, POLLOUT));
      continue;
    }
    time.Moved(static_cast<uint64_t>(result));
    for (auto sent = static_cast<size_t>(result); sent > 0;) {
      const size_t part = std::min(sent, left[next].iov_len);
      left[next].iov_base = static_cast<std::byte*>(left[next].iov_base) + part;
      left[next].iov_len -= part;
      sent -= part;
      if (left[next].iov_len == 0) ++next;
    }
    LDNN_RETURN_IF_ERROR(time.Check());
  }
  return OkStatus();
}

Status ClientSocket::WriteTls(ByteView bytes, RequestTime& time) {
  while (!bytes.empty()) {
    ERR_clear_error();
    errno = 0;
    size_t sent = 0;
    const int result =
        SSL_write_ex(tls_, bytes.data(), std::min(bytes.size(), kRecordBytes), &sent);
    if (result != 1) {
      LDNN_RETURN_IF_ERROR(AwaitTls(result, time));
      continue;
    }
    time.Moved(sent);
    bytes = bytes.subspan(sent);
    LDNN_RETURN_IF_ERROR(time.Check());
  }
  return OkStatus();
}

Status ClientSocket::Write(std::span<const ByteView> pieces, RequestTime& time) {
  if (tls_ == nullptr) return WritePlain(pieces, time);
  Bytes small;
  for (const ByteView piece : pieces) {
    if (small.size() + piece.size() <= kRecordBytes) {
      small.insert(small.end(), piece.begin(), piece.end());
      continue;
    }
    LDNN_RETURN_IF_ERROR(WriteTls(small, time));
    small.clear();
    LDNN_RETURN_IF_ERROR(WriteTls(piece, time));
  }
  return WriteTls(small, time);
}

Result<size_t> ClientSocket::ReadTls(MutableByteView target, RequestTime& time) {
  for (;;) {
    ERR_clear_error();
    errno = 0;
    size_t got = 0;
    const int result = SSL_read_ex(tls_, target.data(), target.size(), &got);
    if (result == 1) return got;
    if (SSL_get_error(tls_, result) == SSL_ERROR_ZERO_RETURN) return 0;
    LDNN_RETURN_IF_ERROR(AwaitTls(result, time));
  }
}

Result<size_t> ClientSocket::Read(MutableByteView target, RequestTime& time) {
  if (tls_ != nullptr) return ReadTls(target, time);
  for (;;) {
    const ssize_t got = recv(fd_, target.data(), target.size(), 0);
    if (got >= 0) return static_cast<size_t>(got);
    if (!MustWait(errno)) return Broken(std::strerror(errno));
    LDNN_RETURN_IF_ERROR(time.Await(fd_, POLLIN));
  }
}

bool ClientSocket::IsIdle() const {
  std::byte byte{};
  const ssize_t got = recv(fd_, &byte, 1, MSG_PEEK);
  // With TLS, what has come may be a ticket of its protocol.
  return got < 0 ? MustWait(errno) : got > 0 && tls_ != nullptr;
}

}  // namespace lambdadnn
