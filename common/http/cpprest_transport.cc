// SPDX-License-Identifier: Apache-2.0
// HttpTransport over cpprestsdk. The only file that includes it.
#define _TURN_OFF_PLATFORM_STRING
#include <cpprest/http_client.h>
#include <cpprest/streams.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <map>
#include <mutex>

#include "common/base/text.h"
#include "common/http/http_transport.h"
#include "common/http/tls_material.h"

namespace lambdadnn {
namespace {

// Bodies go to and come from cpprest in pieces of this size.
constexpr size_t kChunkBytes = 1 << 20;
// An answer of unknown length, as API servers give, is mostly small: room for it grows from this.
constexpr size_t kFirstBytes = 16 << 10;
// Of cpprest, per process: they only move bytes, callers wait on their own threads.
constexpr size_t kThreads = 4;

// A request body read straight from the caller's pieces.
class PiecesBuffer final : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  // The pieces outlive the buffer's use.
  explicit PiecesBuffer(std::span<const ByteView> pieces)
      : streambuf_state_manager(std::ios_base::in), pieces_(pieces) {
    for (const ByteView piece : pieces) left_ += piece.size();
  }

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  utility::size64_t size() const override { return 0; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return left_; }
  bool acquire(uint8_t*& pointer, size_t& count) override {
    pointer = nullptr;
    count = 0;
    return false;
  }
  void release(uint8_t*, size_t) override {}
  pos_type getpos(std::ios_base::openmode) const override { return Nowhere(); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return Nowhere(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return Nowhere();
  }

 protected:
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  pplx::task<int_type> _putc(uint8_t) override { return pplx::task_from_result(traits::eof()); }
  pplx::task<size_t> _putn(const uint8_t*, size_t) override {
    return pplx::task_from_result<size_t>(0);
  }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}
  pplx::task<size_t> _getn(uint8_t* target, size_t count) override {
    return pplx::task_from_result(Take(target, count, true));
  }
  size_t _scopy(uint8_t* target, size_t count) override { return Take(target, count, false); }
  pplx::task<int_type> _bumpc() override { return pplx::task_from_result(_sbumpc()); }
  int_type _sbumpc() override {
    uint8_t byte = 0;
    return Take(&byte, 1, true) == 1 ? static_cast<int_type>(byte) : traits::eof();
  }
  pplx::task<int_type> _getc() override { return pplx::task_from_result(_sgetc()); }
  int_type _sgetc() override {
    uint8_t byte = 0;
    return Take(&byte, 1, false) == 1 ? static_cast<int_type>(byte) : traits::eof();
  }
  pplx::task<int_type> _nextc() override {
    _sbumpc();
    return _getc();
  }
  pplx::task<int_type> _ungetc() override { return pplx::task_from_result(traits::eof()); }

 private:
  static pos_type Nowhere() { return static_cast<pos_type>(traits::eof()); }

  size_t Take(uint8_t* target, size_t count, bool advance) {
    size_t piece = piece_;
    size_t offset = offset_;
    size_t taken = 0;
    while (taken < count && piece < pieces_.size()) {
      const size_t part = std::min(count - taken, pieces_[piece].size() - offset);
      if (part > 0) std::memcpy(target + taken, pieces_[piece].data() + offset, part);
      taken += part;
      offset += part;
      if (offset == pieces_[piece].size()) {
        ++piece;
        offset = 0;
      }
    }
    if (advance) {
      piece_ = piece;
      offset_ = offset;
      left_ -= taken;
    }
    return taken;
  }

  const std::span<const ByteView> pieces_;
  size_t piece_ = 0;
  size_t offset_ = 0;
  size_t left_ = 0;
};

// "https://host:port" of an absolute URL.
std::string OriginOf(const web::uri& uri) {
  std::string origin = uri.scheme() + "://" + uri.host();
  if (uri.port() > 0) origin += ":" + std::to_string(uri.port());
  return origin;
}

bool IsOwnHost(const std::string& name, const std::string& value, const web::uri& uri) {
  return name.size() == 4 && FindField({{name, value}}, "host") == value &&
         (value == uri.host() || value == uri.host() + ":" + std::to_string(uri.port()));
}

// A failed handshake, whose error code is OpenSSL's packed one.
Status TlsError(const std::string& origin, const std::error_code& code) {
  const auto packed = static_cast<unsigned long>(static_cast<unsigned int>(code.value()));
  const int reason = ERR_GET_REASON(packed);
  const char* const text = ERR_reason_error_string(packed);
  const std::string what = "TLS with " + origin + " failed: " + (text == nullptr ? "?" : text);
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return FailedPreconditionError(
        what +
        "; name a file (PEM) with the certificate authority that signed the server's "
        "certificate, and the host as it stands in that certificate");
  }
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
    return FailedPreconditionError(
        what + "; the server does not speak TLS on this port, write http:// or another port");
  }
  return UnavailableError(what);
}

Status TransportError(const std::string& origin, const std::string& what,
                      const std::error_code& code) {
  if (what.find("SSL handshake") != std::string::npos) return TlsError(origin, code);
  if (code == std::errc::timed_out) {
    return UnavailableError("no answer from " + origin + " in time (" + what + ")");
  }
  return UnavailableError("no answer from " + origin + ": " + what +
                          "; is the server running and the endpoint right?");
}

// Whether the failure is what a server leaves that had closed a kept-alive connection.
bool MayBeStaleConnection(const std::error_code& code) {
  return code == std::errc::connection_aborted || code == std::errc::connection_reset ||
         code == std::errc::broken_pipe || code == std::errc::host_unreachable ||
         code == std::errc::not_connected || code == std::errc::bad_file_descriptor;
}

// Ends one request early: by its cancellation or after its total time.
class EarlyEnd {
 public:
  explicit EarlyEnd(const HttpRequest& request)
      : cancellation_(request.cancellation.get()),
        timer_(crossplat::threadpool::shared_instance().service()) {
    if (cancellation_ != nullptr) {
      subscription_ = cancellation_->Subscribe([source = source_] { source.cancel(); });
    }
    if (request.total_seconds <= 0) return;
    timer_.expires_after(
        std::chrono::nanoseconds(static_cast<int64_t>(request.total_seconds * 1e9)));
    timer_.async_wait(
        [source = source_, expired = expired_](const boost::system::error_code& code) {
          if (code) return;
          *expired = true;
          source.cancel();
        });
  }
  ~EarlyEnd() {
    if (cancellation_ != nullptr) cancellation_->Unsubscribe(subscription_);
  }
  EarlyEnd(const EarlyEnd&) = delete;
  EarlyEnd& operator=(const EarlyEnd&) = delete;

  void Now() { source_.cancel(); }
  pplx::cancellation_token token() const { return source_.get_token(); }
  // Why the request ended early; nullopt when it did not.
  std::optional<Status> Reason(const HttpRequest& request) const {
    const std::string what = request.method + " " + request.url;
    if (cancellation_ != nullptr && cancellation_->cancelled()) {
      return CancelledError(what + " was ended by its caller");
    }
    if (!*expired_) return std::nullopt;
    return UnavailableError("no whole answer to " + what + " within " +
                            FormatDouble(request.total_seconds) + " s");
  }

 private:
  HttpCancellation* const cancellation_;
  const pplx::cancellation_token_source source_;
  const std::shared_ptr<std::atomic<bool>> expired_ = std::make_shared<std::atomic<bool>>(false);
  boost::asio::steady_timer timer_;
  int subscription_ = 0;
};

class CpprestTransport final : public HttpTransport {
 public:
  CpprestTransport(const HttpTransportOptions& options, std::shared_ptr<TlsMaterial> tls)
      : options_(options), tls_(std::move(tls)) {}

  Result<HttpResponse> Send(const HttpRequest& request) override;

 private:
  struct Failure {
    Status status;
    bool stale = false;  // no part of an answer came; the connection may have been an old one
  };

  std::shared_ptr<web::http::client::http_client> ClientFor(const web::uri& uri);
  // nullopt: `response` is there.
  std::optional<Failure> SendOnce(const HttpRequest& request, const web::uri& uri,
                                  HttpResponse* response);
  Status ReadBody(const HttpRequest& request, const web::http::http_response& reply,
                  HttpResponse* response);

  const HttpTransportOptions options_;
  const std::shared_ptr<TlsMaterial> tls_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<web::http::client::http_client>> clients_;
};

std::shared_ptr<web::http::client::http_client> CpprestTransport::ClientFor(const web::uri& uri) {
  const std::string origin = OriginOf(uri);
  const std::lock_guard lock(mutex_);
  auto& client = clients_[origin];
  if (client == nullptr) {
    web::http::client::http_client_config config;
    config.set_timeout(
        std::chrono::microseconds(static_cast<int64_t>(options_.inactivity_seconds * 1'000'000)));
    config.set_chunksize(kChunkBytes);
    config.set_max_redirects(0);
    config.set_validate_certificates(!options_.insecure_skip_verify);
    config.set_ssl_context_callback([tls = tls_](boost::asio::ssl::context& context) {
      tls->Install(context.native_handle());
    });
    if (!options_.proxy_url.empty()) config.set_proxy(web::web_proxy(web::uri(options_.proxy_url)));
    client = std::make_shared<web::http::client::http_client>(web::uri(origin), config);
  }
  return client;
}

Result<HttpResponse> CpprestTransport::Send(const HttpRequest& request) {
  web::uri uri;
  try {
    uri = web::uri(request.url);
  } catch (const std::exception& error) {
    return InvalidArgumentError("'" + request.url + "' is not a URL: " + error.what());
  }
  if ((uri.scheme() != "http" && uri.scheme() != "https") || uri.host().empty()) {
    return InvalidArgumentError("'" + request.url +
                                "' is not a URL that begins with http:// or "
                                "https:// and a host");
  }
  HttpResponse response;
  std::optional<Failure> failure = SendOnce(request, uri, &response);
  // Once, with a new request (cpprest does not rewind the body of the first) on a new connection:
  // others in the pool may be as old.
  if (failure && failure->stale && request.repeatable) {
    {
      const std::lock_guard lock(mutex_);
      clients_.erase(OriginOf(uri));
    }
    response = {};
    failure = SendOnce(request, uri, &response);
  }
  if (failure) return std::move(failure->status);
  return response;
}

std::optional<CpprestTransport::Failure> CpprestTransport::SendOnce(const HttpRequest& request,
                                                                    const web::uri& uri,
                                                                    HttpResponse* response) {
  const std::string origin = OriginOf(uri);
  bool answered = false;
  EarlyEnd end(request);
  try {
    web::http::http_request message(request.method);
    message.set_request_uri(uri.resource());
    size_t body_bytes = 0;
    for (const ByteView piece : request.body) body_bytes += piece.size();
    if (body_bytes > 0 || request.method == "PUT" || request.method == "POST") {
      const concurrency::streams::streambuf<uint8_t> buffer(
          std::make_shared<PiecesBuffer>(request.body));
      message.set_body(buffer.create_istream(), body_bytes, "application/octet-stream");
    }
    for (const auto& [name, value] : request.fields) {
      // cpprest writes the URL's own host by itself. Set by us, it would also be compared, port and
      // all, with the server's certificate.
      if (IsOwnHost(name, value, uri)) continue;
      message.headers()[name] = value;
    }
    // cpprest takes the name that the certificate must hold from this field.
    if (!options_.server_name.empty()) message.headers()["Host"] = options_.server_name;
    web::http::http_response reply = ClientFor(uri)->request(message, end.token()).get();
    answered = true;
    response->status = reply.status_code();
    for (const auto& [name, value] : reply.headers()) response->fields.emplace_back(name, value);
    Status status = ReadBody(request, reply, response);
    if (status.ok()) return std::nullopt;
    end.Now();
    try {
      reply.content_ready().wait();
    } catch (const std::exception&) {
      // It was just cancelled; waiting only keeps the caller's pieces valid until then.
    }
    return Failure{std::move(status)};
  } catch (const web::http::http_exception& error) {
    if (const std::optional<Status> reason = end.Reason(request)) return Failure{*reason};
    return Failure{TransportError(origin, error.what(), error.error_code()),
                   !answered && MayBeStaleConnection(error.error_code())};
  } catch (const std::exception& error) {
    if (const std::optional<Status> reason = end.Reason(request)) return Failure{*reason};
    return Failure{TransportError(origin, error.what(), {})};
  }
}

Status CpprestTransport::ReadBody(const HttpRequest& request, const web::http::http_response& reply,
                                  HttpResponse* response) {
  if (request.method == "HEAD") return OkStatus();
  const bool streamed = request.on_body && response->status / 100 == 2;
  const std::optional<long long> length =
      ParseInteger(FindField(response->fields, "Content-Length"));
  const auto too_long = [&] {
    return ResourceExhaustedError("the answer to " + request.method + " " + request.url +
                                  " is longer than " + std::to_string(request.max_response_bytes) +
                                  " bytes");
  };
  if (length && static_cast<uint64_t>(*length) > request.max_response_bytes) return too_long();
  Bytes& body = response->body;
  if (length && !streamed) body.reserve(static_cast<size_t>(*length));
  Bytes piece(streamed ? kChunkBytes : 0);
  size_t room = streamed ? kChunkBytes : kFirstBytes;
  auto source = reply.body().streambuf();
  uint64_t total = 0;
  for (;;) {
    size_t wanted =
        length ? std::min<uint64_t>(kChunkBytes, static_cast<uint64_t>(*length) - total) : room;
    room = std::min(2 * room, kChunkBytes);
    if (wanted == 0) break;
    if (streamed) {
      // As soon as there is anything, what there is. A whole body comes in full chunks.
      if (source.getc().get() == concurrency::streams::char_traits<uint8_t>::eof()) break;
      wanted = std::min(wanted, source.in_avail());
    }
    if (!streamed) body.resize(total + wanted);
    std::byte* const target = streamed ? piece.data() : body.data() + total;
    const size_t got = source.getn(reinterpret_cast<uint8_t*>(target), wanted).get();
    if (!streamed) body.resize(total + got);
    if (got == 0) break;
    total += got;
    if (total > request.max_response_bytes) return too_long();
    if (streamed && !request.on_body(ByteView(piece).first(got))) {
      return CancelledError(request.method + " " + request.url + " was ended by its caller");
    }
  }
  reply.content_ready().wait();  // throws what broke the body
  if (length && total != static_cast<uint64_t>(*length)) {
    return UnavailableError("the answer to " + request.method + " " + request.url +
                            " was cut after " + std::to_string(total) + " of " +
                            std::to_string(*length) + " bytes");
  }
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<HttpTransport>> NewHttpTransport(const HttpTransportOptions& options) {
  LDNN_RETURN_IF_ERROR(options.Validate());
  LDNN_ASSIGN_OR_RETURN(std::shared_ptr<TlsMaterial> tls, TlsMaterial::Load(options));
  // Before the first use of cpprest, which would start forty threads.
  static std::once_flag once;
  std::call_once(once, [] { crossplat::threadpool::initialize_with_threads(kThreads); });
  return std::unique_ptr<HttpTransport>(
      std::make_unique<CpprestTransport>(options, std::move(tls)));
}

}  // namespace lambdadnn
