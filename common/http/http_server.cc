// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_server.h"

#include <sys/stat.h>

#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <list>
#include <mutex>
#include <set>

#include "common/http/http_exchange.h"
#include "common/http/tls_stream.h"

namespace lambdadnn {
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace net = boost::asio;
using boost::system::error_code;

namespace {

using AnyStream = TlsStream<net::generic::stream_protocol>;

// After a refusal the peer's bytes are read for this long, or this many, so that closing does not
// reset the connection before the peer has read the answer.
constexpr double kLingerSeconds = 1;
constexpr size_t kLingerBytes = 1024 * 1024;
constexpr double kAcceptPauseSeconds = 0.1;  // out of descriptors: do not spin

// Tasks that run body sources. Ended ones are joined when the next one starts.
class StreamTasks {
 public:
  StreamTasks(Runtime& runtime, int limit) : runtime_(runtime), limit_(limit) {}

  bool Spawn(std::function<void()> body) {
    std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const Entry& entry) { return entry.ended->load(); });
    if (stopped_ || static_cast<int>(entries_.size()) >= limit_) return false;
    auto ended = std::make_shared<std::atomic<bool>>(false);
    auto task = runtime_.executor.Spawn("http-stream", [body = std::move(body), ended]() mutable {
      body();
      body = nullptr;
      *ended = true;
    });
    entries_.push_back({std::move(ended), std::move(task)});
    return true;
  }

  // Starts no more, and waits outside the lock: the io task may be in Spawn() while streams wait
  // for it.
  void StopAndJoin() {
    std::list<Entry> entries;
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
      entries.swap(entries_);
    }
    entries.clear();
  }

 private:
  struct Entry {
    std::shared_ptr<std::atomic<bool>> ended;
    std::unique_ptr<Task> task;
  };
  Runtime& runtime_;
  const int limit_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::list<Entry> entries_;
};

}  // namespace

class HttpSession;

struct HttpServer::State {
  State(Runtime& state_runtime, HttpServerHandler& state_handler,
        const HttpServerLimits& state_limits)
      : runtime(state_runtime),
        handler(state_handler),
        limits(state_limits),
        streams(state_runtime, state_limits.streams),
        retry(io) {}

  template <typename Acceptor>
  void Accept(Acceptor& acceptor);
  void Begin();
  void End();

  Runtime& runtime;
  HttpServerHandler& handler;
  const HttpServerLimits limits;
  net::io_context io{1};
  net::executor_work_guard<net::io_context::executor_type> work{io.get_executor()};
  std::optional<net::ssl::context> tls;
  std::optional<net::ip::tcp::acceptor> tcp;
  std::optional<net::local::stream_protocol::acceptor> local;
  std::set<HttpSession*> sessions;  // of the io task alone
  StreamTasks streams;
  net::steady_timer retry;
  std::atomic<int> active_replies{0};
  std::atomic<bool> ended{false};
  std::unique_ptr<Task> io_task;
};

// One connection. Its members belong to the io task; a stream task only calls WritePiece().
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(HttpServer::State& server, net::generic::stream_protocol::socket socket)
      : server_(server),
        stream_(std::move(socket)),
        buffer_(server.limits.header_bytes + kReadAheadBytes) {
    server_.sessions.insert(this);
  }
  ~HttpSession() { server_.sessions.erase(this); }
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  void Run() {
    if (!server_.tls.has_value()) return ReadHeader();
    stream_.expires_after(FromSeconds(server_.limits.header_seconds));
    stream_.AsyncHandshake(*server_.tls, net::ssl::stream_base::server,
                           [self = shared_from_this()](error_code error) {
                             error ? self->Close() : self->ReadHeader();
                           });
  }
  void Close() { stream_.close(); }

 private:
  static constexpr size_t kReadAheadBytes = 64 * 1024;

  void ReadHeader() {
    head_only_ = false;
    parser_.emplace();
    ApplyLimits(server_.limits, *parser_);
    stream_.expires_after(FromSeconds(server_.limits.header_seconds));
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, size_t) { self->OnHeader(error); });
  }

  void OnHeader(error_code error) {
    if (error) return Refuse(error);
    Result<HttpServerRequest> head = DecodeHead(*parser_);
    if (!head.ok()) return Reply(ErrorReply(head.status()), false);
    request_ = *std::move(head);
    head_only_ = request_.method == "HEAD";
    if (std::optional<HttpServerReply> refusal = server_.handler.Admit(request_)) {
      return Reply(*std::move(refusal), parser_->is_done() && parser_->keep_alive());
    }
    stream_.expires_after(FromSeconds(server_.limits.body_seconds));
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
      out_ = "HTTP/1.1 100 Continue\r\n\r\n";
      net::async_write(stream_, net::buffer(out_),
                       [self = shared_from_this()](error_code failure, size_t) {
                         if (!failure) self->ReadBody();
                       });
      return;
    }
    ReadBody();
  }

  void ReadBody() {
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, size_t) { self->OnBody(error); });
  }

  void OnBody(error_code error) {
    if (error) return Refuse(error);
    request_.body = std::move(parser_->get().body());
    const bool keep_alive = parser_->keep_alive();
    Reply(server_.handler.Handle(std::move(request_)), keep_alive);
  }

  // Errors of the protocol are answered; a peer that left or is too slow is not.
  void Refuse(error_code error) {
    if (error.category() != http::make_error_code(http::error::bad_method).category() ||
        error == http::error::end_of_stream || error == http::error::partial_message) {
      return Close();
    }
    Reply(ParseErrorReply(error), false);
  }

  void Reply(HttpServerReply reply, bool keep_alive) {
    if (reply.stream) return StartStream(std::move(reply));
    const bool refused = !keep_alive;
    out_ = EncodeReplyHead(reply, keep_alive);
    if (!head_only_) out_ += reply.body;
    ++server_.active_replies;
    stream_.expires_after(FromSeconds(server_.limits.write_seconds));
    net::async_write(stream_, net::buffer(out_),
                     [self = shared_from_this(), refused](error_code error, size_t) {
                       --self->server_.active_replies;
                       if (error) return self->Close();
                       refused ? self->Linger() : self->ReadHeader();
                     });
  }

  // The length of a reply, or its last chunk, ends it: no close_notify of TLS is needed.
  void Linger() {
    error_code ignored;
    stream_.plain().socket().shutdown(net::socket_base::shutdown_send, ignored);
    stream_.expires_after(FromSeconds(kLingerSeconds));
    Discard();
  }

  void Discard() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this()](error_code error, size_t bytes) {
                              self->discarded_bytes_ += bytes;
                              if (error || self->discarded_bytes_ > kLingerBytes) {
                                return self->Close();
                              }
                              self->Discard();
                            });
  }

  void StartStream(HttpServerReply reply) {
    monitor_ = server_.runtime.executor.NewMonitor();
    std::string encoded_head = EncodeReplyHead(reply, false);
    auto pump = [self = shared_from_this(), source = std::move(reply.stream),
                 head = std::move(encoded_head)]() mutable {
      self->Pump(std::move(head), source);
      // The session must die on the io task, which owns the set of sessions.
      net::io_context& io = self->server_.io;
      source = nullptr;
      net::post(io, [last = std::move(self)] { last->Linger(); });
    };
    ++server_.active_replies;
    if (server_.streams.Spawn(std::move(pump))) return;
    --server_.active_replies;
    Reply(ErrorReply(UnavailableError("too many streams are open; close one and try again")),
          false);
  }

  // On the stream's task.
  void Pump(std::string head, const HttpBodySource& source) {
    bool alive = WritePiece(std::move(head));
    while (alive && !server_.ended) {
      const std::optional<std::string> piece = source();
      if (!piece) {
        WritePiece(std::string(kLastChunk));
        break;
      }
      if (!piece->empty()) alive = WritePiece(EncodeChunk(*piece));
    }
    --server_.active_replies;
  }

  // Has the io task write, and waits until it has: one piece is in memory at a time.
  bool WritePiece(std::string bytes) {
    MonitorLock lock(*monitor_);
    written_.reset();
    net::post(server_.io, [self = shared_from_this(), bytes = std::move(bytes)]() mutable {
      self->out_ = std::move(bytes);
      self->stream_.expires_after(FromSeconds(self->server_.limits.write_seconds));
      net::async_write(self->stream_, net::buffer(self->out_), [self](error_code error, size_t) {
        MonitorLock written_lock(*self->monitor_);
        self->written_ = !error;
        self->monitor_->NotifyAll();
      });
    });
    while (!written_) monitor_->Wait();
    return *written_;
  }

  HttpServer::State& server_;
  AnyStream stream_;
  beast::flat_buffer buffer_;
  std::optional<HttpRequestParser> parser_;
  HttpServerRequest request_;
  bool head_only_ = false;
  std::string out_;
  size_t discarded_bytes_ = 0;
  std::unique_ptr<Monitor> monitor_;
  std::optional<bool> written_;  // under monitor_
};

template <typename Acceptor>
void HttpServer::State::Accept(Acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](error_code error, auto socket) {
    if (error == net::error::operation_aborted || !acceptor.is_open()) return;
    if (error) {
      retry.expires_after(FromSeconds(kAcceptPauseSeconds));
      retry.async_wait([this, &acceptor](error_code stopped) {
        if (!stopped) Accept(acceptor);
      });
      return;
    }
    if (static_cast<int>(sessions.size()) < limits.connections) {
      std::make_shared<HttpSession>(*this, net::generic::stream_protocol::socket(std::move(socket)))
          ->Run();
    }
    Accept(acceptor);
  });
}

void HttpServer::State::Begin() {
  if (tcp) Accept(*tcp);
  if (local) Accept(*local);
  io_task = runtime.executor.Spawn("http-server", [this] { io.run(); });
}

void HttpServer::State::End() {
  ended = true;
  net::post(io, [this] {
    error_code ignored;
    retry.cancel();
    if (tcp) tcp->close(ignored);
    if (local) local->close(ignored);
    for (HttpSession* session : std::set<HttpSession*>(sessions)) session->Close();
  });
  streams.StopAndJoin();
  work.reset();
  // Sessions whose stream ended after the loop above linger; no task waits for them.
  net::post(io, [this] {
    for (HttpSession* session : std::set<HttpSession*>(sessions)) session->Close();
  });
  io_task->Join();
}

HttpServer::HttpServer(std::shared_ptr<State> state) : state_(std::move(state)) { state_->Begin(); }

HttpServer::~HttpServer() { state_->End(); }

int HttpServer::ActiveReplies() const { return state_->active_replies; }

int HttpServer::port() const {
  error_code ignored;
  return state_->tcp ? state_->tcp->local_endpoint(ignored).port() : 0;
}

Status HttpServerLimits::Validate() const {
  if (header_bytes < 1024 || body_bytes == 0 || connections < 1 || streams < 1 ||
      header_seconds <= 0 || body_seconds <= 0 || write_seconds <= 0) {
    return InvalidArgumentError(
        "HTTP server limits must be positive, with headers of at least 1024 bytes");
  }
  return OkStatus();
}

Result<std::unique_ptr<HttpServer>> HttpServer::ListenTcp(Runtime& runtime,
                                                          HttpServerHandler& handler,
                                                          const std::string& address, int port,
                                                          const HttpServerLimits& limits,
                                                          const std::optional<TlsIdentity>& tls) {
  LDNN_RETURN_IF_ERROR(limits.Validate());
  error_code error;
  const net::ip::address ip = net::ip::make_address(address, error);
  if (error || port < 0 || port > 65535) {
    return InvalidArgumentError("cannot listen on " + address + " port " + std::to_string(port) +
                                ": give an IP address and a port from 0 to 65535");
  }
  auto state = std::make_shared<State>(runtime, handler, limits);
  if (tls.has_value()) {
    Result<net::ssl::context> context = NewTlsServerContext(*tls);
    if (!context.ok()) return context.status();
    state->tls = *std::move(context);
  }
  const net::ip::tcp::endpoint endpoint(ip, static_cast<uint16_t>(port));
  net::ip::tcp::acceptor acceptor(state->io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error) {
    return UnavailableError("cannot listen on " + address + " port " + std::to_string(port) + ": " +
                            error.message() + "; choose another port");
  }
  state->tcp.emplace(std::move(acceptor));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

Result<std::unique_ptr<HttpServer>> HttpServer::ListenUnix(Runtime& runtime,
                                                           HttpServerHandler& handler,
                                                           const std::string& path,
                                                           const HttpServerLimits& limits) {
  LDNN_RETURN_IF_ERROR(limits.Validate());
  constexpr size_t kMaxPathBytes = 107;  // sun_path with its final zero
  if (path.empty() || path.size() > kMaxPathBytes) {
    return InvalidArgumentError("cannot listen on socket '" + path + "': its path must have 1 to " +
                                std::to_string(kMaxPathBytes) + " bytes; choose a shorter one");
  }
  auto state = std::make_shared<State>(runtime, handler, limits);
  error_code error;
  net::local::stream_protocol::acceptor acceptor(state->io);
  acceptor.open(net::local::stream_protocol(), error);
  // No other user may connect, not even between bind and listen.
  if (!error && ::fchmod(acceptor.native_handle(), 0600) != 0) {
    error = error_code(errno, boost::system::system_category());
  }
  if (!error) acceptor.bind(net::local::stream_protocol::endpoint(path), error);
  if (!error && ::chmod(path.c_str(), 0600) != 0) {
    error = error_code(errno, boost::system::system_category());
  }
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error) {
    return UnavailableError("cannot listen on socket " + path + ": " + error.message());
  }
  state->local.emplace(std::move(acceptor));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

std::string ServeBytes(HttpServerHandler& handler, const HttpServerLimits& limits,
                       std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    HttpRequestParser parser;
    parser.eager(true);
    ApplyLimits(limits, parser);
    error_code error;
    // put() stops behind the header; the rest of the message comes with the next calls.
    while (!bytes.empty() && !error && !parser.is_done()) {
      const size_t used = parser.put(net::buffer(bytes.data(), bytes.size()), error);
      bytes.remove_prefix(used);
      if (error == http::error::need_more || used == 0) break;
    }
    if (error && error != http::error::need_more) {
      const HttpServerReply reply = ParseErrorReply(error);
      return out + EncodeReplyHead(reply, false) + reply.body;
    }
    if (!parser.is_header_done()) return out;
    Result<HttpServerRequest> head = DecodeHead(parser);
    if (!head.ok()) {
      const HttpServerReply reply = ErrorReply(head.status());
      return out + EncodeReplyHead(reply, false) + reply.body;
    }
    HttpServerRequest request = *std::move(head);
    const bool head_only = request.method == "HEAD";
    std::optional<HttpServerReply> reply = handler.Admit(request);
    const bool admitted = !reply;
    if (admitted && !parser.is_done()) return out;  // the peer left inside the body
    if (admitted) {
      request.body = std::move(parser.get().body());
      reply = handler.Handle(std::move(request));
    }
    const bool keep_alive = parser.is_done() && parser.keep_alive() && !reply->stream;
    out += EncodeReplyHead(*reply, keep_alive);
    if (!head_only) out += reply->body;
    if (reply->stream) {
      while (const std::optional<std::string> piece = reply->stream()) out += EncodeChunk(*piece);
      out += kLastChunk;
    }
    if (!keep_alive) return out;
  }
  return out;
}

}  // namespace lambdadnn
