// SPDX-License-Identifier: Apache-2.0
#include "tests/support/strict_s3_server.h"

#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <limits>

namespace lambdadnn {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

constexpr size_t kMaxHeaderBytes = 16 << 10;

StrictS3Request FromBeast(const http::request<http::string_body>& message) {
  StrictS3Request request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    request.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request.body = message.body();
  return request;
}

std::string HttpDate(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(time));
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

}  // namespace

struct StrictS3Server::Network {
  asio::io_context context;
  tcp::acceptor acceptor{context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::map<int, std::unique_ptr<tcp::socket>> sockets;  // guarded by mutex_
};

StrictS3Server::StrictS3Server(Runtime& runtime, const StrictS3Options& options)
    : runtime_(runtime),
      service_(runtime.clock, options),
      network_(std::make_unique<Network>()),
      port_(network_->acceptor.local_endpoint().port()) {
  accepting_ = runtime_.executor.Spawn("s3-accept", [this] { Accept(); });
}

StrictS3Server::~StrictS3Server() {
  stopping_ = true;
  ::shutdown(network_->acceptor.native_handle(), SHUT_RDWR);
  accepting_->Join();
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, socket] : network_->sockets) {
      ::shutdown(socket->native_handle(), SHUT_RDWR);
    }
  }
  tasks_.clear();
}

void StrictS3Server::SetFaults(const StrictS3Faults& faults) {
  const std::lock_guard lock(mutex_);
  faults_ = faults;
}

bool StrictS3Server::Happens(double StrictS3Faults::* fault) {
  const std::lock_guard lock(mutex_);
  const double probability = faults_.*fault;
  if (probability <= 0 || runtime_.random.Uniform() >= probability) return false;
  ++injected_;
  return true;
}

Duration StrictS3Server::RandomDelay() {
  const std::lock_guard lock(mutex_);
  return FromSeconds(runtime_.random.Uniform() * faults_.max_delay_seconds);
}

void StrictS3Server::Accept() {
  for (int id = 0;; ++id) {
    auto socket = std::make_unique<tcp::socket>(network_->context);
    boost::system::error_code error;
    network_->acceptor.accept(*socket, error);
    if (stopping_) return;
    if (error) continue;
    socket->set_option(tcp::no_delay(true), error);
    ++connections_;
    {
      const std::lock_guard lock(mutex_);
      network_->sockets[id] = std::move(socket);
    }
    tasks_.push_back(runtime_.executor.Spawn("s3-connection", [this, id] { Serve(id); }));
  }
}

void StrictS3Server::Serve(int connection) {
  tcp::socket* socket = nullptr;
  {
    const std::lock_guard lock(mutex_);
    socket = network_->sockets[connection].get();
  }
  beast::flat_buffer buffer;
  boost::system::error_code error;
  for (;;) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(std::numeric_limits<uint64_t>::max());
    parser.header_limit(kMaxHeaderBytes);
    http::read(*socket, buffer, parser, error);
    if (error) break;
    ++requests_;
    const StrictS3Request request = FromBeast(parser.get());
    if (Happens(&StrictS3Faults::delay)) runtime_.clock.SleepFor(RandomDelay());
    HttpResponse reply;
    if (Happens(&StrictS3Faults::refuse)) {
      reply.status = 503;
      reply.body = ToBytes("<Error><Code>SlowDown</Code><Message>injected</Message></Error>");
    } else {
      reply = service_.Handle(request);
      if (Happens(&StrictS3Faults::lose_reply)) break;
    }
    std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " x\r\n";
    for (const auto& [name, value] : reply.fields) head += name + ": " + value + "\r\n";
    head += "Date: " + HttpDate(runtime_.clock.Wall()) + "\r\n";
    if (reply.status != 204) {
      head += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
    }
    head += "\r\n";
    asio::write(*socket, asio::buffer(head), error);
    if (error) break;
    if (request.method != "HEAD" && !reply.body.empty()) {
      const bool cut = Happens(&StrictS3Faults::cut_body);
      asio::write(*socket,
                  asio::buffer(reply.body.data(), cut ? reply.body.size() / 2 : reply.body.size()),
                  error);
      if (cut || error) break;
    }
    if (Happens(&StrictS3Faults::stale_close)) break;
  }
  ::shutdown(socket->native_handle(), SHUT_RDWR);
}

}  // namespace lambdadnn
