// SPDX-License-Identifier: Apache-2.0
// HttpTransport over sockets and the HTTP parser of Boost.Beast, all on the caller's thread: no
// other thread has to be woken, and no byte of a body of known length is copied on its way.
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "common/base/check.h"
#include "common/base/endpoint.h"
#include "common/http/client_socket.h"
#include "common/http/http_transport.h"
#include "common/http/request_errors.h"
#include "common/http/request_time.h"
#include "common/http/tls_material.h"

namespace lambdadnn {
namespace http = boost::beast::http;
namespace {

constexpr size_t kHeadBytes = size_t{256} << 10;  // longer heads of answers are refused
constexpr size_t kReadBytes = size_t{16} << 10;
// Bodies grow by so much at most: a length that a server only claims takes no memory.
constexpr size_t kGrowBytes = size_t{512} << 10;
// What stands between may forget a silent connection without telling.
constexpr double kMaxIdleSeconds = 30;

using Parser = http::response_parser<http::buffer_body>;

struct Url {
  Endpoint endpoint;
  std::string origin;
  std::string target;
};

Result<Url> ParseUrl(const std::string& text) {
  const size_t scheme = text.find("://");
  const size_t end =
      std::min(text.size(), text.find_first_of("/?", scheme == std::string::npos ? 0 : scheme + 3));
  const Result<Endpoint> endpoint = ParseEndpoint(std::string_view(text).substr(0, end));
  if (!endpoint.ok() || endpoint->scheme.empty()) {
    return InvalidArgumentError("'" + text +
                                "' is not a URL that begins with http:// or "
                                "https:// and a host");
  }
  Url url{.endpoint = *endpoint, .origin = endpoint->Text(), .target = text.substr(end)};
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

Result<std::string> HeadOf(const HttpRequest& request, const Url& url) {
  std::string head = request.method + " " + url.target + " HTTP/1.1\r\n";
  if (FindField(request.fields, "Host").empty()) {
    head += "Host: " + url.endpoint.HostField() + "\r\n";
  }
  for (const auto& [name, value] : request.fields) {
    if ((name + value).find_first_of("\r\n") != std::string::npos) {
      return InvalidArgumentError("the header field '" + name +
                                  "' of a request has a line end in it; take it out");
    }
    head += name + ": " + value + "\r\n";
  }
  size_t bytes = 0;
  for (const ByteView piece : request.body) bytes += piece.size();
  if (bytes > 0 || request.method == "PUT" || request.method == "POST") {
    head += "Content-Length: " + std::to_string(bytes) + "\r\n";
  }
  return head + "\r\n";
}

struct Connection {
  std::unique_ptr<ClientSocket> socket;
  Instant last_used;
  bool reused = false;
};

// Reads one answer. A status that is not OK leaves the connection unusable.
class AnswerReader {
 public:
  AnswerReader(const HttpRequest& request, ClientSocket& socket, RequestTime& time)
      : request_(request), socket_(socket), time_(time) {}

  Status Read(HttpResponse* response) {
    do {
      parser_.emplace();
      LDNN_RETURN_IF_ERROR(ReadHead());
      // Interim answers (100 Continue) come before the one that counts.
    } while (parser_->get().result_int() / 100 == 1);
    const auto& head = parser_->get();
    response->status = static_cast<int>(head.result_int());
    for (const auto& field : head) {
      response->fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    if (request_.method == "HEAD" || parser_->is_done()) return OkStatus();
    fine_ = response->status / 100 == 2;
    limit_ = fine_ ? request_.max_response_bytes : request_.max_error_bytes;
    body_ = &response->body;
    const boost::optional<uint64_t> length = parser_->content_length();
    if (length.has_value()) return ReadLength(*length);
    return ReadUnknownLength();
  }

  // Whether any byte of an answer has come.
  bool begun() const { return begun_; }
  // Whether another request may follow.
  bool keeps_connection() const { return whole_ && parser_->keep_alive() && buffer_.size() == 0; }

 private:
  Status ReadHead() {
    parser_->header_limit(kHeadBytes);
    parser_->body_limit(std::numeric_limits<uint64_t>::max());
    parser_->skip(request_.method == "HEAD");
    while (!parser_->is_header_done()) {
      if (buffer_.size() == 0) LDNN_RETURN_IF_ERROR(Fill());
      boost::system::error_code error;
      buffer_.consume(parser_->put(buffer_.data(), error));
      if (error == http::error::need_more) {
        LDNN_RETURN_IF_ERROR(Fill());
      } else if (error) {
        return socket_.Broken("what it sent is no answer of HTTP: " + error.message());
      }
    }
    return OkStatus();
  }

  // kUnavailable at the end of the connection.
  Status Fill() {
    const auto room = buffer_.prepare(kReadBytes);
    LDNN_ASSIGN_OR_RETURN(const size_t got,
                          socket_.Read({static_cast<std::byte*>(room.data()), room.size()}, time_));
    if (got == 0) return socket_.Broken("it ended the connection");
    begun_ = true;
    buffer_.commit(got);
    return OkStatus();
  }

  // Bytes of the body as they come. False: no more are wanted, and `*status` says why.
  bool Take(ByteView bytes, Status* status) {
    const uint64_t room = limit_ - total_;
    const ByteView taken = bytes.first(std::min<uint64_t>(bytes.size(), room));
    total_ += taken.size();
    time_.Moved(taken.size());
    if (!fine_ || !request_.on_body) {
      body_->insert(body_->end(), taken.begin(), taken.end());
    } else if (!taken.empty() && !request_.on_body(taken)) {
      *status = EndedByCaller(request_);
    }
    if (taken.size() < bytes.size()) {
      whole_ = false;
      if (fine_) *status = AnswerTooLong(request_);
      return false;
    }
    if (status->ok()) *status = time_.Check();
    return status->ok();
  }

  Status ReadLength(uint64_t length) {
    if (fine_ && length > limit_) return AnswerTooLong(request_);
    if (fine_ && request_.on_body) return ReadPieces(length);
    const uint64_t wanted = std::min(length, limit_);
    whole_ = wanted == length;
    body_->reserve(wanted);
    const auto there = static_cast<size_t>(std::min<uint64_t>(wanted, buffer_.size()));
    const auto* const begin = static_cast<const std::byte*>(buffer_.data().data());
    body_->assign(begin, begin + there);
    buffer_.consume(there);
    time_.Moved(there);
    while (body_->size() < wanted) {
      const size_t have = body_->size();
      body_->resize(std::min<uint64_t>(wanted, have + kGrowBytes));
      size_t end = have;
      while (end < body_->size()) {
        LDNN_ASSIGN_OR_RETURN(const size_t got,
                              socket_.Read(MutableByteView(*body_).subspan(end), time_));
        if (got == 0) return AnswerCut(request_, end, length);
        end += got;
        time_.Moved(got);
        LDNN_RETURN_IF_ERROR(time_.Check());
      }
    }
    return OkStatus();
  }

  Status ReadPieces(uint64_t length) {
    Status status;
    while (total_ < length) {
      if (buffer_.size() == 0) {
        if (!Fill().ok()) {
          LDNN_RETURN_IF_ERROR(time_.Check());
          return AnswerCut(request_, total_, length);
        }
      }
      const auto size = static_cast<size_t>(std::min<uint64_t>(buffer_.size(), length - total_));
      const bool more = Take({static_cast<const std::byte*>(buffer_.data().data()), size}, &status);
      buffer_.consume(size);
      if (!more) break;
    }
    return status;
  }

  // Chunks, or all until the connection ends.
  Status ReadUnknownLength() {
    std::array<std::byte, kReadBytes> piece;
    Status status;
    while (!parser_->is_done()) {
      auto& target = parser_->get().body();
      target.data = piece.data();
      target.size = piece.size();
      target.more = true;
      boost::system::error_code error;
      const size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      const size_t produced = piece.size() - target.size;
      if (produced > 0 && !Take(ByteView(piece).first(produced), &status)) return status;
      if (error && error != http::error::need_more && error != http::error::need_buffer) {
        return socket_.Broken("what it sent is no answer of HTTP: " + error.message());
      }
      if (used > 0 || parser_->is_done()) continue;
      const Status filled = Fill();
      if (filled.ok()) continue;
      LDNN_RETURN_IF_ERROR(time_.Check());
      if (parser_->need_eof()) {
        whole_ = false;
        return OkStatus();
      }
      return filled;
    }
    return OkStatus();
  }

  const HttpRequest& request_;
  ClientSocket& socket_;
  RequestTime& time_;
  boost::beast::flat_buffer buffer_{kHeadBytes + kReadBytes};
  std::optional<Parser> parser_;
  bool begun_ = false;
  bool whole_ = true;
  bool fine_ = false;
  uint64_t limit_ = 0;
  uint64_t total_ = 0;
  Bytes* body_ = nullptr;
};

class DataTransport final : public HttpTransport {
 public:
  DataTransport(const HttpTransportOptions& options, std::shared_ptr<TlsMaterial> tls)
      : options_(options), tls_(std::move(tls)) {}
  ~DataTransport() override { SSL_CTX_free(context_); }

  Result<HttpResponse> Send(const HttpRequest& request) override;

 private:
  struct Failure {
    Status status;
    bool stale = false;  // nothing of an answer came on a connection that was used before
  };

  std::optional<Failure> SendOnce(const HttpRequest& request, const Url& url,
                                  const std::string& head, RequestTime& time,
                                  HttpResponse* response);
  Result<Connection> Take(const Url& url, RequestTime& time);
  Result<Connection> Connect(const Url& url, RequestTime& time);
  void GiveBack(const Url& url, Connection connection);
  void Forget(const Url& url);
  SSL_CTX* TlsContext();

  const HttpTransportOptions options_;
  const std::shared_ptr<TlsMaterial> tls_;
  std::mutex mutex_;                                     // guards all below
  std::map<std::string, std::vector<Connection>> idle_;  // by origin, the one used last at the end
  SSL_CTX* context_ = nullptr;                           // once TLS is spoken
};

SSL_CTX* DataTransport::TlsContext() {
  const std::lock_guard lock(mutex_);
  if (context_ != nullptr) return context_;
  context_ = SSL_CTX_new(TLS_client_method());
  LDNN_CHECK(context_ != nullptr, "OpenSSL has no memory");
  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  // A piece of a body may be offered again from elsewhere only if it is the same; and one that was
  // taken in part is offered again from there on.
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  tls_->Install(context_);
  return context_;
}

Result<Connection> DataTransport::Connect(const Url& url, RequestTime& time) {
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ClientSocket> socket,
                        ClientSocket::Connect(url.endpoint, time));
  if (url.endpoint.IsTls()) {
    std::string name = options_.server_name.empty() ? url.endpoint.host : options_.server_name;
    if (options_.insecure_skip_verify) name.clear();
    LDNN_RETURN_IF_ERROR(socket->StartTls(TlsContext(), name, time));
  }
  return Connection{.socket = std::move(socket), .last_used = {}};
}

Result<Connection> DataTransport::Take(const Url& url, RequestTime& time) {
  const Instant oldest = SystemClock().Now() - FromSeconds(kMaxIdleSeconds);
  std::vector<Connection> old;  // closed without the lock
  {
    const std::lock_guard lock(mutex_);
    std::vector<Connection>& idle = idle_[url.origin];
    while (!idle.empty()) {
      Connection last = std::move(idle.back());
      idle.pop_back();
      if (last.last_used >= oldest && last.socket->IsIdle()) {
        last.reused = true;
        return last;
      }
      old.push_back(std::move(last));
    }
  }
  return Connect(url, time);
}

void DataTransport::GiveBack(const Url& url, Connection connection) {
  connection.last_used = SystemClock().Now();
  const std::lock_guard lock(mutex_);
  idle_[url.origin].push_back(std::move(connection));
}

void DataTransport::Forget(const Url& url) {
  std::vector<Connection> old;
  const std::lock_guard lock(mutex_);
  old.swap(idle_[url.origin]);
}

std::optional<DataTransport::Failure> DataTransport::SendOnce(const HttpRequest& request,
                                                              const Url& url,
                                                              const std::string& head,
                                                              RequestTime& time,
                                                              HttpResponse* response) {
  Result<Connection> connection = Take(url, time);
  if (!connection.ok()) return Failure{connection.status()};
  AnswerReader reader(request, *connection->socket, time);
  std::vector<ByteView> pieces = {AsBytes(head)};
  pieces.insert(pieces.end(), request.body.begin(), request.body.end());
  Status status = connection->socket->Write(pieces, time);
  if (status.ok()) status = reader.Read(response);
  if (!status.ok()) {
    if (const Status ended = time.Check(); !ended.ok()) return Failure{ended};
    const bool cut = status.code() == StatusCode::kUnavailable;
    const bool stale = cut && connection->reused && !reader.begun();
    return Failure{status, stale};
  }
  if (reader.keeps_connection()) GiveBack(url, *std::move(connection));
  return std::nullopt;
}

Result<HttpResponse> DataTransport::Send(const HttpRequest& request) {
  LDNN_ASSIGN_OR_RETURN(const Url url, ParseUrl(request.url));
  LDNN_ASSIGN_OR_RETURN(const std::string head, HeadOf(request, url));
  RequestTime time(request, url.origin, options_.inactivity_seconds);
  LDNN_RETURN_IF_ERROR(time.Check());
  HttpResponse response;
  std::optional<Failure> failure = SendOnce(request, url, head, time, &response);
  // Once, on a new connection: others that are kept may be as old.
  if (failure && failure->stale && request.repeatable) {
    Forget(url);
    response = {};
    failure = SendOnce(request, url, head, time, &response);
  }
  if (failure) return std::move(failure->status);
  return response;
}

}  // namespace

Result<std::unique_ptr<HttpTransport>> NewDataTransport(const HttpTransportOptions& options) {
  LDNN_RETURN_IF_ERROR(options.Validate());
  if (!options.proxy_url.empty()) {
    return InvalidArgumentError("the proxy '" + options.proxy_url +
                                "' cannot be used here; name the server itself");
  }
  LDNN_ASSIGN_OR_RETURN(std::shared_ptr<TlsMaterial> tls, TlsMaterial::Load(options));
  return std::unique_ptr<HttpTransport>(std::make_unique<DataTransport>(options, std::move(tls)));
}

}  // namespace lambdadnn
