// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>

#include <algorithm>
#include <climits>
#include <string>

#include "common/base/check.h"

namespace lambdadnn {

// What OpenSSL takes for the connection: the session's own bytes.
struct TlsSessionBio {
  static TlsSession& SessionOf(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int Read(BIO* bio, char* to, int most) {
    ByteView& incoming = SessionOf(bio).incoming_;
    BIO_clear_retry_flags(bio);
    if (incoming.empty()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const size_t bytes = std::min(incoming.size(), static_cast<size_t>(most));
    std::copy_n(incoming.begin(), bytes, reinterpret_cast<std::byte*>(to));
    incoming = incoming.subspan(bytes);
    return static_cast<int>(bytes);
  }

  static int Write(BIO* bio, const char* from, int bytes) {
    const auto* const begin = reinterpret_cast<const std::byte*>(from);
    Bytes& outgoing = SessionOf(bio).outgoing_;
    outgoing.insert(outgoing.end(), begin, begin + bytes);
    return bytes;
  }

  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static const BIO_METHOD* Method() {
    static const BIO_METHOD* const method = [] {
      BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bytes");
      LDNN_CHECK(made != nullptr && BIO_meth_set_read(made, Read) == 1 &&
                     BIO_meth_set_write(made, Write) == 1 && BIO_meth_set_ctrl(made, Control) == 1,
                 "OpenSSL is out of memory");
      return made;
    }();
    return method;
  }
};

namespace {

// Of the call that returned `result`.
Status ErrorOf(SSL* ssl, int result) {
  if (SSL_get_error(ssl, result) == SSL_ERROR_ZERO_RETURN) {
    return UnavailableError("the other side has ended the connection");
  }
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return UnavailableError(reason != nullptr ? reason : "TLS has failed");
}

bool NeedsMore(SSL* ssl, int result) { return SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ; }

int Length(size_t bytes) { return static_cast<int>(std::min<size_t>(bytes, INT_MAX)); }

}  // namespace

TlsSession::TlsSession(SSL_CTX* context, Side side) : ssl_(SSL_new(context)) {
  BIO* const bio = BIO_new(TlsSessionBio::Method());
  LDNN_CHECK(ssl_ != nullptr && bio != nullptr, "OpenSSL is out of memory");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  side == Side::kClient ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
}

Result<bool> TlsSession::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) return true;
  if (NeedsMore(ssl_.get(), result)) return false;
  return ErrorOf(ssl_.get(), result);
}

Result<size_t> TlsSession::Read(MutableByteView plain) {
  size_t bytes = 0;
  // A record at most with each call.
  while (bytes < plain.size()) {
    ERR_clear_error();
    const int result = SSL_read(ssl_.get(), plain.data() + bytes, Length(plain.size() - bytes));
    if (result > 0) {
      bytes += static_cast<size_t>(result);
    } else if (NeedsMore(ssl_.get(), result) || bytes > 0) {
      break;  // an error comes again
    } else {
      return ErrorOf(ssl_.get(), result);
    }
  }
  return bytes;
}

Status TlsSession::Write(ByteView plain) {
  while (!plain.empty()) {
    ERR_clear_error();
    const int result = SSL_write(ssl_.get(), plain.data(), Length(plain.size()));
    if (result <= 0) return ErrorOf(ssl_.get(), result);
    plain = plain.subspan(static_cast<size_t>(result));
  }
  return OkStatus();
}

}  // namespace lambdadnn
