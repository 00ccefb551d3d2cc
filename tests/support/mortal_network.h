// SPDX-License-Identifier: Apache-2.0
// A network of a function that may be killed: from then on nothing is sent or heard, and all of its
// connections end, as the kernel ends those of a dead process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer_function/peer/network.h"

namespace lambdadnn {

class MortalNetwork final : public Network {
 public:
  // `lives` is asked before each frame is sent and each time that bytes have come; false once =
  // false from then on. `inner` outlives this.
  MortalNetwork(Network& inner, std::function<bool()> lives)
      : state_(std::make_shared<State>(State{inner, std::move(lives), {}, false})) {}

  void Post(std::function<void()> work) override { state_->inner.Post(std::move(work)); }
  void After(Duration time, std::function<void()> work) override {
    state_->inner.After(time, std::move(work));
  }
  void Serve(Accept accept) override {
    if (accept == nullptr) return state_->inner.Serve(nullptr);
    state_->inner.Serve([state = state_, accept](const std::shared_ptr<Connection>& connection)
                            -> std::shared_ptr<ConnectionHandler> {
      if (!state->Lives()) return nullptr;
      auto own = std::make_shared<MortalConnection>(state);
      own->inner = connection;
      own->handler = accept(own);
      state->connections.push_back(own);
      return own->handler == nullptr ? nullptr : own;
    });
  }
  std::shared_ptr<Connection> Dial(const std::string& address,
                                   std::shared_ptr<ConnectionHandler> handler) override {
    auto own = std::make_shared<MortalConnection>(state_);
    own->handler = std::move(handler);
    own->inner = state_->inner.Dial(address, own);
    state_->connections.push_back(own);
    return own;
  }

 private:
  class MortalConnection;
  struct State {
    bool Lives() {
      if (dead || lives()) return !dead;
      dead = true;
      for (const auto& each : connections) {
        if (const auto connection = each.lock()) connection->inner->Close();
      }
      return false;
    }

    Network& inner;
    std::function<bool()> lives;
    std::vector<std::weak_ptr<MortalConnection>> connections;
    bool dead;
  };
  class MortalConnection final : public Connection, public ConnectionHandler {
   public:
    explicit MortalConnection(std::shared_ptr<State> state) : state_(std::move(state)) {}
    void Send(SharedFrame frame) override {
      if (state_->Lives()) inner->Send(std::move(frame));
    }
    size_t UnsentBytes() const override { return inner->UnsentBytes(); }
    void Close() override {
      handler = nullptr;
      inner->Close();
    }
    void OnOpen() override {
      if (handler != nullptr && state_->Lives()) handler->OnOpen();
    }
    void OnBytes(ByteView bytes) override {
      if (handler != nullptr && state_->Lives()) handler->OnBytes(bytes);
    }
    void OnClosed(const Status& why) override {
      if (handler != nullptr) std::exchange(handler, nullptr)->OnClosed(why);
    }

    std::shared_ptr<Connection> inner;
    std::shared_ptr<ConnectionHandler> handler;

   private:
    const std::shared_ptr<State> state_;
  };

  const std::shared_ptr<State> state_;
};

}  // namespace lambdadnn
