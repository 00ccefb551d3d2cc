// SPDX-License-Identifier: Apache-2.0
// Connections between functions as an interface: TCP with TLS in production (tcp_network.h), links
// that break, stall and deliver late in the simulator. What is said over them is peer_channel.h's.
//
// A network has one task, which makes all calls to handlers, one after another; Post and After
// bring other work there. Connection's methods are called on that task alone. Nothing may block it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/shared_bytes.h"
#include "common/base/status.h"

namespace lambdadnn {

// What is sent as a whole: bytes of its own, and then bytes that lie elsewhere, which are sent from
// there. Both may be shared.
struct SharedFrame {
  SharedFrame(SharedBytes its_begin) : begin(std::move(its_begin)) {}
  SharedFrame(SharedBytes its_begin, SharedView its_rest)
      : begin(std::move(its_begin)), rest(std::move(its_rest)) {}
  size_t size() const { return begin->size() + rest.bytes.size(); }

  SharedBytes begin;
  SharedView rest;  // owned, if any
};

// An ordered stream of bytes to another process and back.
class Connection {
 public:
  virtual ~Connection() = default;
  // Sent after all that was sent before. Nothing after Close or OnClosed.
  virtual void Send(SharedFrame frame) = 0;
  // Of these, what the other side has not taken yet.
  virtual size_t UnsentBytes() const = 0;
  // Ends it at once; its handler is not called again.
  virtual void Close() = 0;
};

class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // Bytes may be sent from now on.
  virtual void OnOpen() = 0;
  // Where the next bytes may be written, so that nobody has to copy them there; empty = anywhere.
  // Valid until the next call.
  virtual MutableByteView Room() { return {}; }
  // They may lie at the begin of the last Room().
  virtual void OnBytes(ByteView bytes) = 0;
  // It could not be opened, or has ended; the last call.
  virtual void OnClosed(const Status& why) = 0;
};

class Network {
 public:
  // The handler of a connection that another process opens; null = it is closed.
  using Accept =
      std::function<std::shared_ptr<ConnectionHandler>(const std::shared_ptr<Connection>&)>;

  virtual ~Network() = default;
  // Runs `work` soon on the network's task. From any task.
  virtual void Post(std::function<void()> work) = 0;
  // The same after some time.
  virtual void After(Duration time, std::function<void()> work) = 0;

  // On the network's task alone:
  // From now on connections are accepted; null = all are closed at once, as at the beginning.
  virtual void Serve(Accept accept) = 0;
  // Opens a connection to "host:port", an address and no name. The handler is told later, never
  // within the call.
  virtual std::shared_ptr<Connection> Dial(const std::string& address,
                                           std::shared_ptr<ConnectionHandler> handler) = 0;
};

}  // namespace lambdadnn
