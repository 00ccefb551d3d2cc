// SPDX-License-Identifier: Apache-2.0
// Channels over real sockets on the loopback.
#include "trainer_function/peer/tcp_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/deaf_peer.h"
#include "tests/support/object_frame.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/peer/peer_channel.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr PeerId kFirstWorker = {RoleKind::kWorker, 0};
constexpr PeerId kFirstServer = {RoleKind::kServer, 0};
constexpr Duration kPatience = std::chrono::seconds(30);

// Counts, and lets the test wait for them.
class CountedPeers final : public PeerListener {
 public:
  explicit CountedPeers(Executor& executor) : monitor_(executor.NewMonitor()) {}
  void OnDoorbell(const PeerId&, const ExchangeObjectName&) override { Add(&doorbells_); }
  Status OnPull(const PeerId&, const ExchangeObjectName&) override { return OkStatus(); }
  Status OnObject(const PeerId&, PeerObject object) override {
    {
      const MonitorLock lock(*monitor_);
      digests_.insert(Xxh3(object.bytes));
      EXPECT_EQ(object.payload_xxh3, Xxh3(ByteView(object.bytes).subspan(kObjectHeaderBytes)));
    }
    Add(&objects_);
    return OkStatus();
  }
  void OnDone(const PeerId&) override {}
  void OnConnected(const PeerId&) override { Add(&connected_); }
  void OnLost(const PeerId&) override { Add(&lost_); }
  bool AwaitDoorbells(int count, Clock& clock) { return Await(doorbells_, count, clock); }
  bool AwaitObjects(int count, Clock& clock) { return Await(objects_, count, clock); }
  // Of the objects that have come.
  std::set<uint64_t> Digests() {
    const MonitorLock lock(*monitor_);
    return digests_;
  }
  bool AwaitConnected(int count, Clock& clock) { return Await(connected_, count, clock); }
  bool AwaitLost(int count, Clock& clock) { return Await(lost_, count, clock); }

 private:
  void Add(int* count) {
    const MonitorLock lock(*monitor_);
    ++*count;
    monitor_->NotifyAll();
  }
  bool Await(const int& count, int wanted, Clock& clock) {
    const Instant end = clock.Now() + kPatience;
    const MonitorLock lock(*monitor_);
    while (count < wanted && clock.Now() < end) monitor_->WaitUntil(end);
    return count >= wanted;
  }
  const std::unique_ptr<Monitor> monitor_;
  std::set<uint64_t> digests_;
  int doorbells_ = 0;
  int objects_ = 0;
  int connected_ = 0;
  int lost_ = 0;
};

class TcpNetworkTest : public testing::TestWithParam<bool> {
 protected:
  std::optional<PeerSecret> TlsOf(std::string_view key) const {
    if (!GetParam()) return std::nullopt;
    return DerivePeerKeys(key).tls;
  }
  std::unique_ptr<TcpNetwork> Open(const std::optional<PeerSecret>& tls) {
    return TcpNetwork::Listen(runtime_, "127.0.0.1", 0, tls).value();
  }
  PeerChannelOptions OptionsOf(const PeerId& id) {
    PeerChannelOptions options;
    options.self.kind = id.kind;
    options.self.rank = id.rank;
    options.self.invocation = "u." + id.Name();
    options.key = DerivePeerKeys("key").handshake;
    return options;
  }
  PeerChannelOptions ServerOptions() {
    PeerChannelOptions options = OptionsOf(kFirstServer);
    options.expected = {kFirstWorker};
    return options;
  }
  PeerChannelOptions WorkerOptions(const TcpNetwork& server) {
    PeerChannelOptions options = OptionsOf(kFirstWorker);
    options.dialed = {{kFirstServer, "127.0.0.1:" + std::to_string(server.port())}};
    return options;
  }
  // Of the worker, once it has counted one.
  std::string AwaitRefusal(const PeerChannel& worker) {
    const Instant end = runtime_.clock.Now() + kPatience;
    while (worker.Counts().refused == 0 && runtime_.clock.Now() < end) {
      runtime_.clock.SleepFor(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(worker.Counts().opened, 0);
    return worker.LastRefusal();
  }

  SystemRuntime runtime_;
  CountedPeers worker_heard_{runtime_.executor};
  CountedPeers server_heard_{runtime_.executor};
};

TEST_P(TcpNetworkTest, CarriesDoorbellsBothWays) {
  const auto server_network = Open(TlsOf("key"));
  const auto worker_network = Open(TlsOf("key"));
  PeerChannel server(runtime_, *server_network, server_heard_, ServerOptions());
  auto worker = std::make_unique<PeerChannel>(runtime_, *worker_network, worker_heard_,
                                              WorkerOptions(*server_network));
  ASSERT_TRUE(worker_heard_.AwaitConnected(1, runtime_.clock)) << worker->LastRefusal();
  ASSERT_TRUE(server_heard_.AwaitConnected(1, runtime_.clock));
  for (int i = 0; i < 1000; ++i) {
    worker->Send({kFirstServer}, FrameType::kDoorbell, EncodeObjectName({}));
    server.Send({kFirstWorker}, FrameType::kDoorbell, EncodeObjectName({}));
  }
  EXPECT_TRUE(server_heard_.AwaitDoorbells(1000, runtime_.clock));
  EXPECT_TRUE(worker_heard_.AwaitDoorbells(1000, runtime_.clock));
  worker.reset();
  EXPECT_TRUE(server_heard_.AwaitLost(1, runtime_.clock));
}

TEST_P(TcpNetworkTest, CarriesLargeObjectsBothWays) {
  const auto server_network = Open(TlsOf("key"));
  const auto worker_network = Open(TlsOf("key"));
  constexpr size_t kMost = size_t{6} << 20;
  PeerChannelOptions server_options = ServerOptions();
  PeerChannelOptions worker_options = WorkerOptions(*server_network);
  server_options.most_object_bytes = worker_options.most_object_bytes = kMost;
  PeerChannel server(runtime_, *server_network, server_heard_, server_options);
  PeerChannel worker(runtime_, *worker_network, worker_heard_, worker_options);
  ASSERT_TRUE(worker_heard_.AwaitConnected(1, runtime_.clock)) << worker.LastRefusal();
  ASSERT_TRUE(server_heard_.AwaitConnected(1, runtime_.clock));
  std::set<uint64_t> digests;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{65535}, size_t{1} << 20, kMost - kObjectHeaderBytes}) {
    Bytes payload(size);
    for (size_t i = 0; i < size; ++i) payload[i] = static_cast<std::byte>(i * 31 + size);
    const auto frame =
        std::make_shared<const Bytes>(EncodeObjectFrame(Bytes(kObjectHeaderBytes), payload));
    digests.insert(Xxh3(ObjectOfFrame(*frame)));
    worker.Send({kFirstServer}, frame);
    server.Send({kFirstWorker}, frame);
  }
  ASSERT_TRUE(server_heard_.AwaitObjects(5, runtime_.clock));
  ASSERT_TRUE(worker_heard_.AwaitObjects(5, runtime_.clock));
  EXPECT_EQ(server_heard_.Digests(), digests);
  EXPECT_EQ(worker_heard_.Digests(), digests);
}

TEST_P(TcpNetworkTest, AddressesMayBeOfIPv6) {
  auto server_network = TcpNetwork::Listen(runtime_, "::1", 0, TlsOf("key"));
  if (!server_network.ok()) GTEST_SKIP() << "no IPv6: " << server_network.status().ToString();
  const auto worker_network = Open(TlsOf("key"));
  PeerChannelOptions options = WorkerOptions(**server_network);
  options.dialed.front().address = "[::1]:" + std::to_string((*server_network)->port());
  PeerChannel server(runtime_, **server_network, server_heard_, ServerOptions());
  PeerChannel worker(runtime_, *worker_network, worker_heard_, options);
  ASSERT_TRUE(worker_heard_.AwaitConnected(1, runtime_.clock)) << worker.LastRefusal();
  worker.Send({kFirstServer}, FrameType::kDoorbell, EncodeObjectName({}));
  EXPECT_TRUE(server_heard_.AwaitDoorbells(1, runtime_.clock));
}

// As a pod's "::", which serves both families.
TEST_P(TcpNetworkTest, TheUnspecifiedIPv6AddressServesBothFamilies) {
  auto server_network = TcpNetwork::Listen(runtime_, "::", 0, TlsOf("key"));
  if (!server_network.ok()) GTEST_SKIP() << "no IPv6: " << server_network.status().ToString();
  const PeerChannel server(runtime_, **server_network, server_heard_, ServerOptions());
  const auto worker_network = Open(TlsOf("key"));
  const PeerChannel worker(runtime_, *worker_network, worker_heard_,
                           WorkerOptions(**server_network));
  EXPECT_TRUE(worker_heard_.AwaitConnected(1, runtime_.clock)) << worker.LastRefusal();
}

TEST_P(TcpNetworkTest, AnotherKeyIsRefused) {
  const auto server_network = Open(TlsOf("key"));
  const auto worker_network = Open(TlsOf("another"));
  const PeerChannel server(runtime_, *server_network, server_heard_, ServerOptions());
  PeerChannelOptions options = WorkerOptions(*server_network);
  options.key = DerivePeerKeys("another").handshake;
  const PeerChannel worker(runtime_, *worker_network, worker_heard_, options);
  EXPECT_THAT(AwaitRefusal(worker), HasSubstr("job's key"));
}

TEST_P(TcpNetworkTest, WhereNobodyServesConnectionsEnd) {
  const auto idle_network = Open(TlsOf("key"));
  const auto worker_network = Open(TlsOf("key"));
  const PeerChannel worker(runtime_, *worker_network, worker_heard_, WorkerOptions(*idle_network));
  EXPECT_THAT(AwaitRefusal(worker), HasSubstr("server-0 at 127.0.0.1:"));
}

TEST_P(TcpNetworkTest, AnAddressThatIsNoneIsRefused) {
  const auto network = Open(TlsOf("key"));
  for (const char* address : {"", "localhost:1", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:70000",
                              "::1:8444", "[::1]", "[::1:8444"}) {
    PeerChannelOptions options = OptionsOf(kFirstWorker);
    options.dialed = {{kFirstServer, address}};
    const PeerChannel worker(runtime_, *network, worker_heard_, options);
    EXPECT_THAT(AwaitRefusal(worker), HasSubstr("is no address and port")) << address;
  }
}

TEST_P(TcpNetworkTest, ListeningFailsInOneSentence) {
  const auto first = Open(TlsOf("key"));
  EXPECT_THAT(TcpNetwork::Listen(runtime_, "127.0.0.1", first->port(), {}).status().message(),
              HasSubstr("choose another port"));
  EXPECT_EQ(TcpNetwork::Listen(runtime_, "nowhere", 0, {}).status().code(),
            StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(PlainAndTls, TcpNetworkTest, testing::Bool(), [](const auto& row) {
  return row.param ? std::string("Tls") : std::string("Plain");
});

class DeafPeerTest : public TcpNetworkTest {};

// It lives, as its pings say, and its socket is never drained.
TEST_P(DeafPeerTest, IsLostOnceItHasTakenNothingForLong) {
  const auto network = Open(std::nullopt);
  PeerChannelOptions options = ServerOptions();
  options.unread_seconds = 0.3;
  PeerChannel server(runtime_, *network, server_heard_, options);
  const PeerChannelOptions worker = WorkerOptions(*network);
  const DeafPeer deaf(network->port(), worker.self, worker.key, {}, 0);
  ASSERT_TRUE(server_heard_.AwaitConnected(1, runtime_.clock));
  // More than the buffers of the kernel take.
  const auto frame = std::make_shared<const Bytes>(
      EncodeObjectFrame(Bytes(kObjectHeaderBytes), Bytes(size_t{32} << 20)));
  server.Send({kFirstWorker}, frame);
  ASSERT_TRUE(server_heard_.AwaitLost(1, runtime_.clock));
  EXPECT_EQ(server.Counts().unread, 1);
  EXPECT_EQ(server.Counts().lost, 1);
  const PeerChannelOptions other = WorkerOptions(*network);
  const auto again = Open(std::nullopt);
  const PeerChannel same(runtime_, *again, worker_heard_, other);
  AwaitRefusal(same);
  EXPECT_EQ(server.Counts().opened, 1) << "not let in again yet";
}

INSTANTIATE_TEST_SUITE_P(Plain, DeafPeerTest, testing::Values(false));

using TlsAndPlainTest = TcpNetworkTest;

TEST_P(TlsAndPlainTest, DoNotMix) {
  const auto server_network = Open(DerivePeerKeys("key").tls);
  const auto worker_network = Open(std::nullopt);
  const bool server_is_tls = GetParam();
  TcpNetwork& serving = server_is_tls ? *server_network : *worker_network;
  TcpNetwork& dialing = server_is_tls ? *worker_network : *server_network;
  const PeerChannel server(runtime_, serving, server_heard_, ServerOptions());
  const PeerChannel worker(runtime_, dialing, worker_heard_, WorkerOptions(serving));
  EXPECT_THAT(AwaitRefusal(worker), HasSubstr("server-0 at 127.0.0.1:"));
  EXPECT_EQ(server.Counts().opened, 0);
}

INSTANTIATE_TEST_SUITE_P(ServerIs, TlsAndPlainTest, testing::Bool());

}  // namespace
}  // namespace lambdadnn
