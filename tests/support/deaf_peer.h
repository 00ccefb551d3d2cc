// SPDX-License-Identifier: Apache-2.0
// A function that connects, shows who it is, gives signs of life, asks for an object so many times
// every 20 ms, and never reads what it is sent. Over a socket without TLS, on a thread of its own.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "trainer_function/peer/handshake.h"

namespace lambdadnn {

class DeafPeer {
 public:
  // Connects to this port of 127.0.0.1.
  DeafPeer(int port, PeerHello self, const PeerSecret& key, ExchangeObjectName wanted, int pulls)
      : thread_([=, this, self = std::move(self)] { Run(port, self, key, wanted, pulls); }) {}
  ~DeafPeer() {
    stop_ = true;
    thread_.join();
  }
  DeafPeer(const DeafPeer&) = delete;
  DeafPeer& operator=(const DeafPeer&) = delete;

 private:
  using Socket = boost::asio::ip::tcp::socket;

  static bool Say(Socket& socket, const Bytes& bytes) {
    boost::system::error_code error;
    boost::asio::write(socket, boost::asio::buffer(bytes), error);
    return !error;
  }

  void Run(int port, const PeerHello& self, const PeerSecret& key, const ExchangeObjectName& wanted,
           int pulls) {
    boost::asio::io_context io;
    Socket socket(io);
    boost::system::error_code error;
    socket.connect({boost::asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)}, error);
    PeerHandshake handshake(HandshakeSide::kDialer, key, self,
                            [](const PeerHello&) { return OkStatus(); });
    if (error || !Say(socket, handshake.Begin())) return;
    FrameReader reader;
    while (!handshake.done()) {
      std::array<std::byte, 4096> buffer{};
      const size_t bytes = socket.read_some(boost::asio::buffer(buffer), error);
      const auto frames = reader.Read(ByteView(buffer).first(bytes));
      if (error || !frames.ok()) return;
      for (const Frame& frame : *frames) {
        const auto answer = handshake.Take(frame);
        if (!answer.ok() || (!answer->empty() && !Say(socket, *answer))) return;
      }
    }
    const Bytes pull = EncodeFrame(FrameType::kPull, EncodeObjectName(wanted));
    bool open = true;
    while (!stop_ && open) {
      open = Say(socket, EncodeFrame(FrameType::kPing, {}));
      for (int i = 0; i < pulls && open; ++i) open = Say(socket, pull);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    while (!stop_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace lambdadnn
