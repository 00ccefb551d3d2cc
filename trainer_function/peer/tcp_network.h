// SPDX-License-Identifier: Apache-2.0
// The network of a function: one port, on which the other functions of its job connect, over TLS
// 1.3 with a pre-shared key or in plain text. One task of the executor serves all connections.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "trainer_function/peer/network.h"
#include "trainer_function/peer/peer_key.h"

namespace lambdadnn {

// Connections at once, of others' and of own; what is beyond is closed.
inline constexpr int kMostConnections = 4096;

class TcpNetwork final : public Network {
 public:
  // Listens at once; `runtime` outlives it. Port 0 picks a free one. `tls`: PeerKeys::tls; none =
  // plain text, which whoever is on the way can read and change. kUnavailable names the address and
  // why, kInvalidArgument: no address.
  static Result<std::unique_ptr<TcpNetwork>> Listen(Runtime& runtime, const std::string& address,
                                                    int port, const std::optional<PeerSecret>& tls);
  // Closes all connections without telling their handlers, and joins the task.
  ~TcpNetwork() override;
  TcpNetwork(const TcpNetwork&) = delete;
  TcpNetwork& operator=(const TcpNetwork&) = delete;

  int port() const;

  void Post(std::function<void()> work) override;
  void After(Duration time, std::function<void()> work) override;
  void Serve(Accept accept) override;
  std::shared_ptr<Connection> Dial(const std::string& address,
                                   std::shared_ptr<ConnectionHandler> handler) override;

 private:
  friend class TcpConnection;  // of tcp_network.cc
  struct State;
  explicit TcpNetwork(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lambdadnn
