// SPDX-License-Identifier: Apache-2.0
// Any bytes on the port of the peer channel, from one that has the job's key (the first byte is
// odd) and from one that has not: its connection ends or goes on, no other one is disturbed, and
// what the role is told encodes to what was said.
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "tests/support/memory_network.h"
#include "trainer_function/peer/handshake.h"
#include "trainer_function/peer/peer_channel.h"

namespace lambdadnn {
namespace {

constexpr PeerId kGood = {RoleKind::kWorker, 0};
constexpr PeerId kFuzzed = {RoleKind::kWorker, 1};
constexpr PeerId kServer = {RoleKind::kServer, 0};
constexpr size_t kMostBytes = 256;
constexpr const char* kAddress = "10.0.0.1:8444";

PeerChannelOptions OptionsOf(const PeerId& id) {
  PeerChannelOptions options;
  options.self.kind = id.kind;
  options.self.rank = id.rank;
  options.self.invocation = "u." + id.Name();
  options.key = DerivePeerKeys("key").handshake;
  if (id == kServer) {
    options.expected = {kGood, kFuzzed};
    options.most_object_bytes = kMostBytes;
  } else {
    options.dialed = {{kServer, kAddress}};
  }
  return options;
}

struct Told final : PeerListener {
  void OnDoorbell(const PeerId&, const ExchangeObjectName& doorbell) override {
    const auto again = DecodeObjectName(EncodeObjectName(doorbell));
    LDNN_CHECK(again.ok() && *again == doorbell, "a doorbell that is told encodes");
    ++doorbells;
  }
  Status OnPull(const PeerId&, const ExchangeObjectName& name) override {
    const auto again = DecodeObjectName(EncodeObjectName(name));
    LDNN_CHECK(again.ok() && *again == name, "a name that is asked for encodes");
    return OkStatus();
  }
  Status OnObject(const PeerId&, PeerObject object) override {
    LDNN_CHECK(object.bytes.size() >= kObjectHeaderBytes && object.bytes.size() <= kMostBytes,
               "an object is as long as the plan's are");
    return OkStatus();
  }
  void OnDone(const PeerId&) override {}
  void OnConnected(const PeerId&) override { ++connected; }
  void OnLost(const PeerId&) override { ++lost; }
  int doorbells = 0;
  int connected = 0;
  int lost = 0;
};

// Shows the key, if it is to, and then says the bytes in two pieces.
struct Speaker final : ConnectionHandler {
  Speaker(bool with_key, ByteView words)
      : handshake(HandshakeSide::kDialer, OptionsOf(kFuzzed).key, OptionsOf(kFuzzed).self,
                  [](const PeerHello&) { return OkStatus(); }),
        shows_key(with_key),
        said(words.begin(), words.end()) {}
  void OnOpen() override { shows_key ? Send(handshake.Begin()) : Say(); }
  void OnBytes(ByteView bytes) override {
    if (handshake.done() || !shows_key) return;
    auto frames = reader.Read(bytes);
    LDNN_CHECK(frames.ok(), "what a channel says is frames");
    for (const Frame& frame : *frames) {
      if (handshake.done()) continue;
      auto answer = handshake.Take(frame);
      LDNN_CHECK(answer.ok(), answer.status().ToString());
      if (!answer->empty()) Send(*std::move(answer));
      if (handshake.done()) Say();
    }
  }
  void OnClosed(const Status&) override {}
  void Send(Bytes bytes) { connection->Send(std::make_shared<const Bytes>(std::move(bytes))); }
  void Say() {
    const auto half = said.begin() + static_cast<ptrdiff_t>(said.size() / 2);
    Send(Bytes(said.begin(), half));
    Send(Bytes(half, said.end()));
  }
  PeerHandshake handshake;
  FrameReader reader;
  const bool shows_key;
  const Bytes said;
  std::shared_ptr<Connection> connection;
};

}  // namespace
}  // namespace lambdadnn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  if (size == 0) return 0;
  VirtualRuntime time;
  MemoryWire wire(time.clock);
  MemoryNetwork server_network(wire, kAddress);
  MemoryNetwork good_network(wire, "10.0.0.2:8444");
  MemoryNetwork fuzzed_network(wire, "10.0.0.3:8444");
  Told server_told;
  Told good_told;
  {
    PeerChannel server(time.runtime, server_network, server_told, OptionsOf(kServer));
    PeerChannel good(time.runtime, good_network, good_told, OptionsOf(kGood));
    const auto speaker =
        std::make_shared<Speaker>(data[0] % 2 == 1, std::as_bytes(std::span(data + 1, size - 1)));
    speaker->connection = fuzzed_network.Dial(kAddress, speaker);
    wire.Run(std::chrono::seconds(4));
    const int before = server_told.doorbells;
    good.Send({kServer}, FrameType::kDoorbell, EncodeObjectName({}));
    wire.Run(std::chrono::milliseconds(10));
    LDNN_CHECK(server_told.doorbells == before + 1, "the other peer's doorbell arrives");
    LDNN_CHECK(good_told.lost == 0 && good_told.connected == 1, "its connection goes on");
    speaker->connection->Close();
    speaker->connection = nullptr;
  }
  wire.Run(std::chrono::seconds(1));
  return 0;
}
