// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/tcp_network.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "common/base/endpoint.h"
#include "common/base/text.h"
#include "trainer_function/peer/psk_tls.h"
#include "trainer_function/peer/tls_session.h"

namespace lambdadnn {
namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

namespace {

constexpr long long kMostPort = 65535;
constexpr size_t kReadBytes = size_t{64} << 10;
// In one call: as many as Boost.Asio hands to the kernel.
constexpr size_t kMostBuffers = 64;
// Plain bytes that are encrypted for one call.
constexpr size_t kEncryptedBytes = size_t{64} << 10;
constexpr const char* kHandshaking = "making a TLS handshake, which needs the same job's key";
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);  // out of descriptors

Result<tcp::endpoint> ParseAddress(const std::string& address) {
  const std::optional<HostAndPort> parts = SplitHostAndPort(address);
  error_code error = net::error::invalid_argument;
  net::ip::address ip;
  if (parts.has_value() && parts->port.has_value()) ip = net::ip::make_address(parts->host, error);
  // Without brackets nobody can tell where an address of IPv6 ends.
  if (!error && ip.is_v6() && !parts->bracketed) error = net::error::invalid_argument;
  const long long port = error ? 0 : ParseInteger(*parts->port).value_or(0);
  if (error || port < 1 || port > kMostPort) {
    return InvalidArgumentError("'" + address + "' is no address and port");
  }
  return tcp::endpoint(ip, static_cast<uint16_t>(port));
}

}  // namespace

class TcpConnection;

struct TcpNetwork::State {
  explicit State(Runtime& the_runtime) : runtime(the_runtime) {}
  void AcceptNext();

  Runtime& runtime;
  // Of the io task. Before `io`, whose end lets go of what uses them.
  std::unique_ptr<PskTls> tls;  // null = plain text
  Accept accept;
  std::set<TcpConnection*> connections;
  net::io_context io{1};
  net::executor_work_guard<net::io_context::executor_type> work{io.get_executor()};
  tcp::acceptor acceptor{io};
  std::unique_ptr<Task> task;
};

// Belongs to the io task.
class TcpConnection final : public Connection, public std::enable_shared_from_this<TcpConnection> {
 public:
  TcpConnection(TcpNetwork::State& network, tcp::socket socket)
      : network_(network), socket_(std::move(socket)) {
    network_.connections.insert(this);
  }
  ~TcpConnection() override { network_.connections.erase(this); }

  void Connect(const std::string& address, std::shared_ptr<ConnectionHandler> handler) {
    handler_ = std::move(handler);
    Result<tcp::endpoint> endpoint = ParseAddress(address);
    if (!endpoint.ok()) return FailLater(endpoint.status());
    if (network_.connections.size() > kMostConnections) {
      return FailLater(ResourceExhaustedError("this function has too many connections"));
    }
    socket_.async_connect(*endpoint, [self = shared_from_this()](error_code error) {
      if (self->IsOver()) return;
      if (error) return self->Fail("connecting", error);
      self->Begin(TlsSession::Side::kClient);
    });
  }

  void Accepted(std::shared_ptr<ConnectionHandler> handler) {
    handler_ = std::move(handler);
    Begin(TlsSession::Side::kServer);
  }

  void Send(SharedFrame frame) override {
    if (IsOver()) return;
    unsent_bytes_ += frame.size();
    const ByteView begin(*frame.begin);
    unsent_.emplace_back(std::move(frame.begin), begin);
    if (!frame.rest.bytes.empty()) unsent_.push_back(std::move(frame.rest));
    if (is_open_) Write();
  }

  size_t UnsentBytes() const override { return unsent_bytes_; }

  void Close() override {
    handler_ = nullptr;
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  bool IsOver() const { return handler_ == nullptr; }

  void Fail(const char* doing, error_code error) {
    End(UnavailableError(std::string(doing) + ": " + error.message()));
  }

  void End(const Status& why) {
    const std::shared_ptr<ConnectionHandler> handler = std::move(handler_);
    Close();
    if (handler != nullptr) handler->OnClosed(why);
  }

  void FailLater(Status why) {
    net::post(network_.io, [self = shared_from_this(), why = std::move(why)] { self->End(why); });
  }

  void Begin(TlsSession::Side side) {
    error_code ignored;
    // A doorbell must not wait for more to send.
    socket_.set_option(tcp::no_delay(true), ignored);
    if (network_.tls == nullptr) {
      Open();
    } else {
      dials_ = side == TlsSession::Side::kClient;
      tls_.emplace(dials_ ? network_.tls->client() : network_.tls->server(), side);
      plain_.resize(kReadBytes);
      Decrypt({});
    }
    if (!IsOver()) Read();
  }

  void Open() {
    is_open_ = true;
    const std::shared_ptr<ConnectionHandler> handler = handler_;
    handler->OnOpen();
    if (!IsOver()) Write();
  }

  void Read() {
    auto done = [self = shared_from_this()](error_code error, size_t bytes) {
      if (self->IsOver()) return;
      if (error) return self->Fail(self->is_open_ ? "reading" : kHandshaking, error);
      const ByteView read = self->into_.first(bytes);
      self->tls_.has_value() ? self->Decrypt(read) : self->Deliver(read);
      if (!self->IsOver()) self->Read();
    };
    into_ = tls_.has_value() ? MutableByteView(read_) : RoomOr(read_);
    socket_.async_read_some(net::buffer(into_.data(), into_.size()), std::move(done));
  }

  // Where plain bytes are read to.
  MutableByteView RoomOr(Bytes& own) {
    const MutableByteView room = handler_->Room();
    return room.empty() ? MutableByteView(own) : room;
  }

  void Deliver(ByteView plain) {
    const std::shared_ptr<ConnectionHandler> handler = handler_;
    handler->OnBytes(plain);
  }

  void Decrypt(ByteView encrypted) {
    tls_->Receive(encrypted);
    if (!is_open_ && !TakeHandshake()) return;
    while (!IsOver()) {
      const MutableByteView into = RoomOr(plain_);
      const Result<size_t> bytes = tls_->Read(into);
      if (!bytes.ok()) return End(bytes.status().WithContext("reading"));
      if (*bytes == 0) break;
      Deliver(into.first(*bytes));
    }
    // TLS itself may have had something to say.
    if (!IsOver()) Write();
  }

  // Whether it is over, and this connection open.
  bool TakeHandshake() {
    const Result<bool> done = tls_->Handshake();
    if (!done.ok()) {
      End(done.status().WithContext(kHandshaking));
      return false;
    }
    if (*done && dials_ && !PskTls::IsShared(tls_->native_handle())) {
      End(UnauthenticatedError("it does not have this job's key"));
      return false;
    }
    *done ? Open() : Write();
    return *done && !IsOver();
  }

  // As much as the kernel takes with one call, or of TLS all that is encrypted for one; then the
  // rest.
  void Write() {
    if (writes_) return;
    auto done = [self = shared_from_this()](error_code error, size_t bytes) {
      if (self->IsOver()) return;
      if (error) return self->Fail("writing", error);
      self->Took(self->tls_.has_value() ? self->encrypted_ : bytes);
      self->writes_ = false;
      self->Write();
    };
    if (tls_.has_value()) {
      if (const Status encrypted = Encrypt(); !encrypted.ok()) return End(encrypted);
      if (sending_.empty()) return;
      writes_ = true;
      return net::async_write(socket_, net::buffer(sending_), std::move(done));
    }
    if (unsent_.empty()) return;
    writes_ = true;
    std::vector<net::const_buffer> buffers;
    for (size_t i = 0; i < std::min(unsent_.size(), kMostBuffers); ++i) {
      buffers.push_back(net::buffer(unsent_[i].bytes.data(), unsent_[i].bytes.size()) +
                        (i == 0 ? taken_of_first_ : 0));
    }
    socket_.async_write_some(buffers, std::move(done));
  }

  // What is sent next: what TLS has to say itself, and, from when this is open, some of what waits.
  Status Encrypt() {
    encrypted_ = 0;
    size_t begin = taken_of_first_;
    for (size_t i = 0; is_open_ && i < unsent_.size() && encrypted_ < kEncryptedBytes; ++i) {
      const ByteView rest = unsent_[i].bytes.subspan(begin);
      const ByteView some = rest.first(std::min(rest.size(), kEncryptedBytes - encrypted_));
      LDNN_RETURN_IF_ERROR(tls_->Write(some));
      encrypted_ += some.size();
      begin = 0;
    }
    sending_.clear();
    std::swap(sending_, tls_->outgoing());
    return OkStatus();
  }

  void Took(size_t bytes) {
    unsent_bytes_ -= bytes;
    taken_of_first_ += bytes;
    while (!unsent_.empty() && taken_of_first_ >= unsent_.front().bytes.size()) {
      taken_of_first_ -= unsent_.front().bytes.size();
      unsent_.pop_front();
    }
  }

  TcpNetwork::State& network_;
  tcp::socket socket_;
  std::optional<TlsSession> tls_;
  bool dials_ = false;
  std::shared_ptr<ConnectionHandler> handler_;  // null = it is over
  bool is_open_ = false;
  Bytes read_ = Bytes(kReadBytes);
  MutableByteView into_;  // of the read that is under way
  Bytes plain_;           // of what was read, with TLS
  Bytes sending_;         // with TLS
  size_t encrypted_ = 0;  // of what waits, within that
  std::deque<SharedView> unsent_;
  size_t taken_of_first_ = 0;
  size_t unsent_bytes_ = 0;
  bool writes_ = false;
};

void TcpNetwork::State::AcceptNext() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (error == net::error::operation_aborted || !acceptor.is_open()) return;
    if (error) {
      auto timer = std::make_shared<net::steady_timer>(io, kAcceptPause);
      timer->async_wait([this, timer](error_code) {
        if (acceptor.is_open()) AcceptNext();
      });
      return;
    }
    if (accept != nullptr && connections.size() < kMostConnections) {
      const auto connection = std::make_shared<TcpConnection>(*this, std::move(socket));
      if (auto handler = accept(connection)) connection->Accepted(std::move(handler));
    }
    AcceptNext();
  });
}

Result<std::unique_ptr<TcpNetwork>> TcpNetwork::Listen(Runtime& runtime, const std::string& address,
                                                       int port,
                                                       const std::optional<PeerSecret>& tls) {
  error_code error;
  const net::ip::address ip = net::ip::make_address(address, error);
  if (error || port < 0 || port > kMostPort) {
    return InvalidArgumentError("cannot listen on " + address + " port " + std::to_string(port) +
                                ": give an IP address and a port from 0 to 65535");
  }
  auto state = std::make_unique<State>(runtime);
  if (tls.has_value()) state->tls = std::make_unique<PskTls>(*tls);
  const tcp::endpoint endpoint(ip, static_cast<uint16_t>(port));
  tcp::acceptor& acceptor = state->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error) {
    return UnavailableError("cannot listen for other functions on " + address + " port " +
                            std::to_string(port) + ": " + error.message() +
                            "; choose another port");
  }
  return std::unique_ptr<TcpNetwork>(new TcpNetwork(std::move(state)));
}

TcpNetwork::TcpNetwork(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->AcceptNext();
  state_->task = state_->runtime.executor.Spawn("peer-network", [this] { state_->io.run(); });
}

TcpNetwork::~TcpNetwork() {
  net::post(state_->io, [this] {
    error_code ignored;
    state_->acceptor.close(ignored);
    state_->accept = nullptr;
    for (TcpConnection* connection : std::set<TcpConnection*>(state_->connections)) {
      connection->Close();
    }
    // Not when all work has ended: timers may have been set for long.
    state_->io.stop();
  });
  state_->task->Join();
}

int TcpNetwork::port() const {
  error_code ignored;
  return state_->acceptor.local_endpoint(ignored).port();
}

void TcpNetwork::Post(std::function<void()> work) { net::post(state_->io, std::move(work)); }

void TcpNetwork::After(Duration time, std::function<void()> work) {
  auto timer = std::make_shared<net::steady_timer>(state_->io, time);
  timer->async_wait([timer, work = std::move(work)](error_code error) {
    if (!error) work();
  });
}

void TcpNetwork::Serve(Accept accept) { state_->accept = std::move(accept); }

std::shared_ptr<Connection> TcpNetwork::Dial(const std::string& address,
                                             std::shared_ptr<ConnectionHandler> handler) {
  auto connection = std::make_shared<TcpConnection>(*state_, tcp::socket(state_->io));
  connection->Connect(address, std::move(handler));
  return connection;
}

}  // namespace lambdadnn
