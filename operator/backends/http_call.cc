// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/http_call.h"

#include <boost/beast/core/error.hpp>
#include <boost/beast/http/read.hpp>
#include <limits>

namespace lambdadnn {
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace net = boost::asio;

namespace {
constexpr const char* kPlainScheme = "http";
// Of a digest, to tell certificates apart.
constexpr size_t kShownCharacters = 16;

std::string Shown(const std::string& digest) {
  return digest.empty() ? "none" : "SHA-256 " + digest.substr(0, kShownCharacters);
}
}  // namespace

HttpCall::HttpCall(const HttpCallTask& task, HttpCallRequest request, const HttpCallLimits& limits,
                   Callbacks callbacks)
    : call_(std::move(request)),
      limits_(limits),
      callbacks_(std::move(callbacks)),
      resolver_(task.io),
      tls_(task.tls),
      stream_(task.io),
      pause_(task.io) {
  // boost::none would refuse any Content-Length (Boost 1.74).
  parser_.body_limit(std::numeric_limits<uint64_t>::max());
}

void HttpCall::Begin() {
  Endpoint& endpoint = call_.endpoint;
  if (endpoint.scheme.empty()) endpoint.scheme = kPlainScheme;
  if (endpoint.host.empty() || (endpoint.scheme != kPlainScheme && !endpoint.IsTls())) {
    return End(InvalidArgumentError("'" + endpoint.Text() + "' is no server of HTTP"));
  }
  if (endpoint.IsTls() && call_.certificate_digest.empty()) {
    return End(FailedPreconditionError(
        "nothing is sent to " + endpoint.Authority() +
        ", whose certificate is not known: the Secret with the job's key names none"));
  }
  request_.emplace();
  request_->method_string(call_.method);
  request_->target(endpoint.path + call_.target);
  request_->version(11);
  request_->set(http::field::host, endpoint.HostField());
  request_->set(http::field::connection, "close");
  if (!call_.bearer.empty()) request_->set(http::field::authorization, "Bearer " + call_.bearer);
  if (!call_.body.empty()) request_->set(http::field::content_type, "application/json");
  request_->body() = std::move(call_.body);
  request_->prepare_payload();
  Resolve();
}

void HttpCall::Close() {
  ended_ = true;
  callbacks_ = {};
  resolver_.cancel();
  pause_.cancel();
  stream_.close();
}

void HttpCall::Resolve() {
  // The resolver's thread starts at the first host name; pods and local functions have numeric
  // addresses.
  const int number = call_.endpoint.PortOrUsual();
  const std::string port = std::to_string(number);
  ErrorCode not_a_number;
  const net::ip::address ip = net::ip::make_address(call_.endpoint.host, not_a_number);
  if (!not_a_number) {
    return OnResolved(net::ip::tcp::resolver::results_type::create(
        net::ip::tcp::endpoint(ip, static_cast<uint16_t>(number)), call_.endpoint.host, port));
  }
  resolver_.async_resolve(call_.endpoint.host, port,
                          [self = shared_from_this()](ErrorCode error, const auto& endpoints) {
                            if (error) return self->Fail("finding", error);
                            self->OnResolved(endpoints);
                          });
}

void HttpCall::OnResolved(const net::ip::tcp::resolver::results_type& endpoints) {
  stream_.expires_after(FromSeconds(limits_.connect_seconds));
  stream_.plain().async_connect(endpoints,
                                [self = shared_from_this()](ErrorCode error, const auto&) {
                                  if (error) return self->Fail("connecting to", error);
                                  self->call_.endpoint.IsTls() ? self->Handshake() : self->Write();
                                });
}

void HttpCall::Handshake() {
  if (ended_) return;
  // Head and body are two records: the second must not wait until the first is acknowledged.
  ErrorCode ignored;
  stream_.plain().socket().set_option(net::ip::tcp::no_delay(true), ignored);
  stream_.AsyncHandshake(tls_, net::ssl::stream_base::client,
                         [self = shared_from_this()](ErrorCode error) {
                           if (error) return self->Fail("setting up TLS with", error);
                           self->OnHandshake();
                         });
}

void HttpCall::OnHandshake() {
  if (ended_) return;
  const std::string shown = DigestOfPeer(stream_.connection());
  if (shown == call_.certificate_digest) return Write();
  End(UnauthenticatedError(call_.endpoint.Authority() + " shows another certificate (" +
                           Shown(shown) + ") than the job's functions have (" +
                           Shown(call_.certificate_digest) +
                           "), and was sent nothing: another program answers there, or the Secret "
                           "with the job's key was changed"));
}

void HttpCall::Write() {
  stream_.expires_after(FromSeconds(limits_.silence_seconds));
  http::async_write(stream_, *request_, [self = shared_from_this()](ErrorCode error, size_t) {
    if (error) return self->Fail("sending to", error);
    self->ForgetRequest();
    self->ReadHeader();
  });
}

// Thousands of answers may stream for hours. Texts that are assigned an empty one keep their
// memory.
void HttpCall::ForgetRequest() {
  request_.reset();
  for (std::string* const text : {&call_.target, &call_.bearer, &call_.certificate_digest}) {
    std::string().swap(*text);
  }
}

void HttpCall::ReadHeader() {
  stream_.expires_after(FromSeconds(limits_.silence_seconds));
  http::async_read_header(stream_, buffer_, parser_,
                          [self = shared_from_this()](ErrorCode error, size_t) {
                            if (error) return self->Fail("reading the answer of", error);
                            if (self->ended_) return;
                            self->callbacks_.on_status(self->parser_.get().result_int());
                            self->TakeBody();
                          });
}

void HttpCall::ReadBody() {
  stream_.expires_after(FromSeconds(limits_.silence_seconds));
  http::async_read_some(stream_, buffer_, parser_,
                        [self = shared_from_this()](ErrorCode error, size_t) {
                          if (error) return self->Fail("reading the answer of", error);
                          self->TakeBody();
                        });
}

void HttpCall::ReadBodyAfter(Duration pause) {
  pause_.expires_after(pause);
  pause_.async_wait([self = shared_from_this()](ErrorCode) {
    if (!self->ended_) self->ReadBody();
  });
}

void HttpCall::TakeBody() {
  if (ended_) return;
  Duration pause{};
  if (!parser_.get().body().empty()) {
    // The parser appends to the body; it is handed on and emptied, so memory stays bounded.
    const std::string bytes = std::move(parser_.get().body());
    parser_.get().body().clear();
    pause = callbacks_.on_body(bytes);
    if (ended_) return;
  }
  if (parser_.is_done()) return End(OkStatus());
  if (pause > Duration{}) return ReadBodyAfter(pause);
  ReadBody();
}

void HttpCall::Fail(std::string_view doing, ErrorCode error) {
  const bool silent = error == beast::error::timeout;
  End(UnavailableError(std::string(doing) + " " + call_.endpoint.Authority() + ": " +
                       (silent ? "no sign of life in time" : error.message())));
}

void HttpCall::End(const Status& status) {
  if (ended_) return;
  const auto on_end = std::move(callbacks_.on_end);
  Close();
  if (on_end) on_end(status);
}

}  // namespace lambdadnn
