// SPDX-License-Identifier: Apache-2.0
// A stream of Boost.Beast that carries plain bytes, or TLS once it was told so: clients and servers
// have one code for both. Only TLS 1.3, without resumption. For .cc files and headers that are
// private to their folder.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/tls_identity.h"

namespace lambdadnn {

// Of a server that shows this certificate. kInvalidArgument as CheckTlsIdentity.
Result<boost::asio::ssl::context> NewTlsServerContext(const TlsIdentity& identity);
// Of a client that compares the server's certificate itself, after the handshake and before it
// sends anything. That the server holds the certificate's key is verified by the handshake.
boost::asio::ssl::context NewPinningContext();
// CertificateDigest of what the peer has shown; "" when it has shown none.
std::string DigestOfPeer(SSL* connection);

template <typename Protocol>
class TlsStream {
 public:
  using PlainStream = boost::beast::basic_stream<Protocol>;
  using executor_type = typename PlainStream::executor_type;

  template <typename... Arguments>
  explicit TlsStream(Arguments&&... arguments) : plain_(std::forward<Arguments>(arguments)...) {}

  executor_type get_executor() noexcept { return plain_.get_executor(); }
  PlainStream& plain() { return plain_; }
  // Of the operations that begin from now on, the handshake included.
  void expires_after(Duration time) { plain_.expires_after(time); }
  void close() { plain_.close(); }

  // Calls handler(error_code) once TLS stands; what is read and written then is encrypted.
  template <typename Handler>
  void AsyncHandshake(boost::asio::ssl::context& context,
                      boost::asio::ssl::stream_base::handshake_type as, Handler&& handler) {
    tls_.emplace(plain_, context);
    tls_->async_handshake(as, std::forward<Handler>(handler));
  }
  // With TLS.
  SSL* connection() { return tls_->native_handle(); }

  // As Boost.Asio's AsyncReadStream and AsyncWriteStream name them.
  template <typename Buffers, typename Handler>
  auto async_read_some(const Buffers& buffers, Handler&& handler) {
    return tls_.has_value() ? tls_->async_read_some(buffers, std::forward<Handler>(handler))
                            : plain_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  auto async_write_some(const Buffers& buffers, Handler&& handler) {
    return tls_.has_value() ? tls_->async_write_some(buffers, std::forward<Handler>(handler))
                            : plain_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  PlainStream plain_;
  std::optional<boost::asio::ssl::stream<PlainStream&>> tls_;
};

}  // namespace lambdadnn
