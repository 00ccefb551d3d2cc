// SPDX-License-Identifier: Apache-2.0
// HttpTransport over cpprestsdk. The only file that includes it.
#define _TURN_OFF_PLATFORM_STRING  // NOLINT: its name for a switch of its own
#include <cpprest/http_client.h>
#include <cpprest/streams.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "common/base/text.h"
#include "common/http/http_transport.h"
#include "common/http/request_errors.h"
#include "common/http/tls_material.h"

namespace lambdadnn {
namespace {

// Bodies go to and come from cpprest in pieces of this size.
constexpr size_t kChunkBytes = 1 << 20;
// Of cpprest, per process: it only moves bytes, callers wait on their own threads. There is one,
// and requests are cancelled on it alone: cpprest closes the connection of a request that is
// cancelled or times out on whichever thread finds out, and asio crashes when that is another than
// the one which reads or writes on.
constexpr size_t kThreads = 1;

void CancelRequest(const pplx::cancellation_token_source& request) {
  boost::asio::post(crossplat::threadpool::shared_instance().service(),
                    [request] { request.cancel(); });
}

// Bytes of bodies that a request has sent and received so far.
using MovedBytes = std::shared_ptr<std::atomic<uint64_t>>;

// A stream that is read or written once, from its begin to its end.
class OneWayBuffer : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  using streambuf_state_manager::streambuf_state_manager;

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  utility::size64_t size() const override { return 0; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
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

 private:
  static pos_type Nowhere() { return static_cast<pos_type>(traits::eof()); }
};

// A request body read straight from the caller's pieces.
class PiecesBuffer final : public OneWayBuffer {
 public:
  // The pieces outlive the buffer's use. What was taken is added to `moved`.
  PiecesBuffer(std::span<const ByteView> pieces, MovedBytes moved)
      : OneWayBuffer(std::ios_base::in), pieces_(pieces), moved_(std::move(moved)) {
    for (const ByteView piece : pieces) left_ += piece.size();
  }

  size_t in_avail() const override { return left_; }

 protected:
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
      *moved_ += taken;
    }
    return taken;
  }

  const std::span<const ByteView> pieces_;
  const MovedBytes moved_;
  size_t piece_ = 0;
  size_t offset_ = 0;
  size_t left_ = 0;
};

// What arrives of a body, up to a limit; then it ends the request and takes nothing more. cpprest's
// own buffer takes all that a server sends, however slowly it is read. A write never fails: cpprest
// would wait for another of its threads then, and a few such answers would stop them all.
class BoundedBody final : public OneWayBuffer {
 public:
  // What was taken is added to `moved`. `request` is the one to end.
  BoundedBody(uint64_t limit, MovedBytes moved, pplx::cancellation_token_source request)
      : OneWayBuffer(std::ios_base::out),
        moved_(std::move(moved)),
        request_(std::move(request)),
        limit_(limit) {}

  // Once the status is known; never raises it.
  void Lower(uint64_t limit) {
    {
      const std::lock_guard lock(mutex_);
      limit_ = std::min(limit_, limit);
      if (bytes_.size() <= limit_) return;
      bytes_.resize(limit_);
      exceeded_ = true;
    }
    CancelRequest(request_);
  }
  void Reserve(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_.reserve(std::min(bytes, limit_));  // not touched, so that it costs nothing yet
  }
  bool exceeded() const {
    const std::lock_guard lock(mutex_);
    return exceeded_;
  }
  // The received body. No more bytes are accepted.
  Bytes Take() {
    const std::lock_guard lock(mutex_);
    return std::move(bytes_);
  }

  size_t in_avail() const override { return 0; }

 protected:
  pplx::task<int_type> _putc(uint8_t byte) override {
    Add(&byte, 1);
    return pplx::task_from_result<int_type>(byte);
  }
  pplx::task<size_t> _putn(const uint8_t* bytes, size_t count) override {
    Add(bytes, count);
    return pplx::task_from_result(count);
  }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }
  pplx::task<int_type> _bumpc() override { return pplx::task_from_result(traits::eof()); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return pplx::task_from_result(traits::eof()); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return pplx::task_from_result(traits::eof()); }
  pplx::task<int_type> _ungetc() override { return pplx::task_from_result(traits::eof()); }

 private:
  void Add(const uint8_t* bytes, size_t count) {
    {
      const std::lock_guard lock(mutex_);
      if (exceeded_) return;
      const auto* const begin = reinterpret_cast<const std::byte*>(bytes);
      const uint64_t taken = std::min<uint64_t>(count, limit_ - bytes_.size());
      bytes_.insert(bytes_.end(), begin, begin + taken);
      *moved_ += taken;
      if (taken == count) return;
      exceeded_ = true;
    }
    CancelRequest(request_);
  }

  const MovedBytes moved_;
  const pplx::cancellation_token_source request_;
  mutable std::mutex mutex_;
  uint64_t limit_;
  Bytes bytes_;
  bool exceeded_ = false;
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

Status TransportError(const std::string& origin, const std::string& what,
                      const std::error_code& code) {
  if (what.find("SSL handshake") != std::string::npos) {
    // Its error code is OpenSSL's packed one.
    return TlsFailed(origin, static_cast<unsigned int>(code.value()));
  }
  return code == std::errc::timed_out ? NoAnswerInTime(origin, what) : NoAnswer(origin, what);
}

// Whether the failure is what a server leaves that had closed a kept-alive connection.
bool MayBeStaleConnection(const std::error_code& code) {
  return code == std::errc::connection_aborted || code == std::errc::connection_reset ||
         code == std::errc::broken_pipe || code == std::errc::host_unreachable ||
         code == std::errc::not_connected || code == std::errc::bad_file_descriptor;
}

// Ends a request when its total time is over, which grows with what moves. Made by a shared_ptr;
// its timer's handler holds it.
class Deadline : public std::enable_shared_from_this<Deadline> {
 public:
  Deadline(const HttpRequest& request, pplx::cancellation_token_source source)
      : seconds_(request.total_seconds),
        bytes_per_second_(request.lowest_bytes_per_second),
        source_(std::move(source)),
        timer_(crossplat::threadpool::shared_instance().service()) {}

  void Start() {
    if (seconds_ <= 0) return;
    const std::lock_guard lock(mutex_);
    Wait();
  }
  void Stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    timer_.cancel();
  }
  bool expired() const { return expired_; }
  const MovedBytes& moved() const { return moved_; }

 private:
  using SteadyClock = std::chrono::steady_clock;

  SteadyClock::time_point End() const {
    const double more = bytes_per_second_ == 0 ? 0
                                               : static_cast<double>(moved_->load()) /
                                                     static_cast<double>(bytes_per_second_);
    return start_ + std::chrono::nanoseconds(static_cast<int64_t>((seconds_ + more) * 1e9));
  }
  void Wait() {  // with the mutex
    timer_.expires_at(End());
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& code) {
      if (!code) self->Look();
    });
  }
  void Look() {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      if (End() > SteadyClock::now()) return Wait();
      expired_ = true;
    }
    CancelRequest(source_);
  }

  const double seconds_;
  const uint64_t bytes_per_second_;
  const pplx::cancellation_token_source source_;
  const SteadyClock::time_point start_ = SteadyClock::now();
  const MovedBytes moved_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::atomic<bool> expired_{false};
  std::mutex mutex_;
  bool stopped_ = false;
  boost::asio::steady_timer timer_;
};

// Ends one request early: by its cancellation or after its total time.
class EarlyEnd {
 public:
  explicit EarlyEnd(const HttpRequest& request)
      : cancellation_(request.cancellation.get()),
        deadline_(std::make_shared<Deadline>(request, source_)) {
    if (cancellation_ != nullptr) {
      subscription_ = cancellation_->Subscribe([source = source_] { CancelRequest(source); });
    }
    deadline_->Start();
  }
  ~EarlyEnd() {
    deadline_->Stop();
    if (cancellation_ != nullptr) cancellation_->Unsubscribe(subscription_);
  }
  EarlyEnd(const EarlyEnd&) = delete;
  EarlyEnd& operator=(const EarlyEnd&) = delete;

  void Now() { CancelRequest(source_); }
  pplx::cancellation_token token() const { return source_.get_token(); }
  const pplx::cancellation_token_source& source() const { return source_; }
  const MovedBytes& moved() const { return deadline_->moved(); }
  // Why the request ended early; nullopt when it did not.
  std::optional<Status> Reason(const HttpRequest& request) const {
    if (cancellation_ != nullptr && cancellation_->cancelled()) return EndedByCaller(request);
    if (!deadline_->expired()) return std::nullopt;
    return TookTooLong(request);
  }

 private:
  HttpCancellation* const cancellation_;
  const pplx::cancellation_token_source source_;
  const std::shared_ptr<Deadline> deadline_;
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
  // `kept` is null when the request hands its body on. Not `whole`: some of the body is left.
  static Status ReadBody(const HttpRequest& request, const web::http::http_response& reply,
                         BoundedBody* kept, HttpResponse* response, bool* whole);
  static Status HandOn(const HttpRequest& request, const web::http::http_response& reply,
                       uint64_t limit, HttpResponse* response, uint64_t* total);
  // No later request uses the connections that there are to this origin.
  void Forget(const web::uri& uri);

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
    Forget(uri);
    response = {};
    failure = SendOnce(request, uri, &response);
  }
  if (failure) return std::move(failure->status);
  return response;
}

void CpprestTransport::Forget(const web::uri& uri) {
  const std::lock_guard lock(mutex_);
  clients_.erase(OriginOf(uri));
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
          std::make_shared<PiecesBuffer>(request.body, end.moved()));
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
    std::shared_ptr<BoundedBody> kept;
    if (!request.on_body) {
      kept = std::make_shared<BoundedBody>(
          std::max(request.max_response_bytes, request.max_error_bytes), end.moved(), end.source());
      message.set_response_stream(concurrency::streams::streambuf<uint8_t>(kept).create_ostream());
    }
    web::http::http_response reply = ClientFor(uri)->request(message, end.token()).get();
    answered = true;
    response->status = reply.status_code();
    for (const auto& [name, value] : reply.headers()) response->fields.emplace_back(name, value);
    bool whole = true;
    Status status = ReadBody(request, reply, kept.get(), response, &whole);
    if (status.ok() && whole) return std::nullopt;
    end.Now();
    try {
      reply.content_ready().wait();
    } catch (const std::exception&) {
      // It was just cancelled; waiting only keeps the caller's pieces valid until then.
    }
    // What is left of the body is still to come on this connection.
    if (!whole) Forget(uri);
    if (status.ok()) return std::nullopt;
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
                                  BoundedBody* kept, HttpResponse* response, bool* whole) {
  if (request.method == "HEAD") return OkStatus();
  const bool fine = response->status / 100 == 2;
  const uint64_t limit = fine ? request.max_response_bytes : request.max_error_bytes;
  const std::optional<long long> length =
      ParseInteger(FindField(response->fields, "Content-Length"));
  if (fine && length && static_cast<uint64_t>(*length) > limit) return AnswerTooLong(request);
  uint64_t total = 0;
  bool exceeded = false;
  if (kept != nullptr) {
    kept->Lower(limit);
    if (length) kept->Reserve(static_cast<uint64_t>(*length));
    try {
      reply.content_ready().wait();
    } catch (const std::exception&) {
      if (!kept->exceeded()) throw;
    }
    exceeded = kept->exceeded();
    response->body = kept->Take();
    total = response->body.size();
  } else {
    LDNN_RETURN_IF_ERROR(HandOn(request, reply, limit, response, &total));
    exceeded = total > limit;
    if (!exceeded) reply.content_ready().wait();  // throws what broke the body
  }
  *whole = !exceeded;
  if (exceeded) return fine ? AnswerTooLong(request) : OkStatus();
  if (length && total != static_cast<uint64_t>(*length)) {
    return AnswerCut(request, total, static_cast<uint64_t>(*length));
  }
  return OkStatus();
}

// Gives pieces to on_body as soon as there is anything; of a refusal keeps the bytes.
Status CpprestTransport::HandOn(const HttpRequest& request, const web::http::http_response& reply,
                                uint64_t limit, HttpResponse* response, uint64_t* total) {
  const bool fine = response->status / 100 == 2;
  Bytes piece(kChunkBytes);
  auto source = reply.body().streambuf();
  while (source.getc().get() != concurrency::streams::char_traits<uint8_t>::eof()) {
    const size_t wanted = std::min(kChunkBytes, source.in_avail());
    const size_t got = source.getn(reinterpret_cast<uint8_t*>(piece.data()), wanted).get();
    if (got == 0) break;
    const uint64_t room = limit - *total;
    *total += got;
    const ByteView taken = ByteView(piece).first(std::min<uint64_t>(got, room));
    if (!fine) response->body.insert(response->body.end(), taken.begin(), taken.end());
    if (*total > limit) break;
    if (fine && !request.on_body(taken)) return EndedByCaller(request);
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
