// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 call over Boost.Beast whose answer may stream for hours. Private to the backends:
// included by .cc files only.
//
// To an endpoint https nothing is sent before the server has shown the certificate that the request
// names.
//
// All methods and callbacks run on the io_context's task. The callbacks never come after Close().
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/endpoint.h"
#include "common/base/status.h"
#include "common/http/tls_stream.h"

namespace lambdadnn {

struct HttpCallRequest {
  Endpoint endpoint;  // its user_info is not sent; without a scheme plain HTTP
  std::string method;
  std::string target;  // below the endpoint's path
  std::string bearer;  // key of the Authorization header; empty = none
  std::string body;
  // CertificateDigest of what an endpoint https must show.
  std::string certificate_digest = "";
};

// What calls share; both outlive them. `tls` is a NewPinningContext.
struct HttpCallTask {
  boost::asio::io_context& io;
  boost::asio::ssl::context& tls;
};

struct HttpCallLimits {
  double connect_seconds = 5;   // the handshake of TLS included
  double silence_seconds = 10;  // without a byte, while reading
};

class HttpCall : public std::enable_shared_from_this<HttpCall> {
 public:
  struct Callbacks {
    // Once, when the header is there.
    std::function<void(int status)> on_status;
    // Any number of times, with the bytes of the body as they come. Returns how long to wait before
    // the next ones are read.
    std::function<Duration(std::string_view bytes)> on_body;
    // Once, last: OK when the body ended as HTTP says, else why not.
    std::function<void(const Status& status)> on_end;
  };

  HttpCall(const HttpCallTask& task, HttpCallRequest request, const HttpCallLimits& limits,
           Callbacks callbacks);
  void Begin();
  void Close();

 private:
  using ErrorCode = boost::system::error_code;
  void Resolve();
  void OnResolved(const boost::asio::ip::tcp::resolver::results_type& endpoints);
  void Handshake();
  void OnHandshake();
  void Write();
  void ForgetRequest();
  void ReadHeader();
  void ReadBody();
  void ReadBodyAfter(Duration pause);
  void TakeBody();
  void Fail(std::string_view doing, ErrorCode error);
  void End(const Status& status);

  HttpCallRequest call_;  // its body moves into request_; once that is sent, its endpoint alone
  const HttpCallLimits limits_;
  Callbacks callbacks_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ssl::context& tls_;
  TlsStream<boost::asio::ip::tcp> stream_;
  boost::asio::steady_timer pause_;
  // Until it is sent.
  std::optional<boost::beast::http::request<boost::beast::http::string_body>> request_;
  boost::beast::http::response_parser<boost::beast::http::string_body> parser_;
  boost::beast::flat_buffer buffer_;
  bool ended_ = false;
};

}  // namespace lambdadnn
