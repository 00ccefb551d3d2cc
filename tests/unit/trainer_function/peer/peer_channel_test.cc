// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/peer_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/memory_network.h"
#include "tests/support/object_frame.h"

namespace lambdadnn {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr PeerId kWorker = {RoleKind::kWorker, 3};
constexpr PeerId kServer = {RoleKind::kServer, 0};

SharedBytes ObjectFrame(size_t payload) {
  return std::make_shared<const Bytes>(
      EncodeObjectFrame(Bytes(kObjectHeaderBytes), Bytes(payload)));
}

// What a channel tells its role, as text.
struct Heard final : PeerListener {
  void OnDoorbell(const PeerId& from, const ExchangeObjectName& doorbell) override {
    all.push_back(from.Name() + " rings " + std::to_string(doorbell.iteration));
  }
  Status OnPull(const PeerId& from, const ExchangeObjectName& name) override {
    all.push_back(from.Name() + " pulls " + std::to_string(name.iteration));
    return name.iteration < 0 ? InvalidArgumentError("none of its business") : OkStatus();
  }
  Status OnObject(const PeerId& from, PeerObject object) override {
    all.push_back(from.Name() + " sends " + std::to_string(object.bytes.size()) + " bytes");
    return OkStatus();
  }
  void OnDone(const PeerId& peer) override { all.push_back(peer.Name() + " is done"); }
  void OnConnected(const PeerId& peer) override { all.push_back(peer.Name() + " is there"); }
  void OnLost(const PeerId& peer) override { all.push_back(peer.Name() + " is lost"); }
  std::vector<std::string> Take() { return std::exchange(all, {}); }
  std::vector<std::string> all;
};

class PeerChannelTest : public testing::Test {
 protected:
  PeerChannelOptions OptionsOf(const PeerId& id) {
    PeerChannelOptions options;
    options.self.job = 7;
    options.self.kind = id.kind;
    options.self.rank = id.rank;
    options.self.invocation = "u." + id.Name();
    options.key = DerivePeerKeys("key").handshake;
    return options;
  }
  PeerChannelOptions WorkerOptions() {
    PeerChannelOptions options = OptionsOf(kWorker);
    options.dialed = {{kServer, "10.0.0.1:8444"}};
    return options;
  }
  PeerChannelOptions ServerOptions() {
    PeerChannelOptions options = OptionsOf(kServer);
    options.expected = {kWorker, {RoleKind::kWorker, 4}};
    return options;
  }
  std::unique_ptr<PeerChannel> Worker(PeerChannelOptions options) {
    return std::make_unique<PeerChannel>(time_.runtime, worker_network_, worker_heard_,
                                         std::move(options));
  }
  std::unique_ptr<PeerChannel> Server(PeerChannelOptions options) {
    return std::make_unique<PeerChannel>(time_.runtime, server_network_, server_heard_,
                                         std::move(options));
  }
  // The refusal that either side counts when the two cannot come together.
  std::string RefusalOf(const PeerChannelOptions& worker, const PeerChannelOptions& server) {
    const auto both = std::pair(Worker(worker), Server(server));
    wire_.Run(milliseconds(100));
    EXPECT_THAT(worker_heard_.Take(), IsEmpty());
    EXPECT_THAT(server_heard_.Take(), IsEmpty());
    EXPECT_EQ(both.first->Counts().opened + both.second->Counts().opened, 0);
    EXPECT_GT(both.first->Counts().refused, 0);
    return both.first->LastRefusal() + "; " + both.second->LastRefusal();
  }

  VirtualRuntime time_;
  MemoryWire wire_{time_.clock};
  MemoryNetwork worker_network_{wire_, "10.0.0.2:8444"};
  MemoryNetwork server_network_{wire_, "10.0.0.1:8444"};
  Heard worker_heard_;
  Heard server_heard_;
};

TEST_F(PeerChannelTest, OneConnectionCarriesDoorbellsBothWays) {
  const auto server = Server(ServerOptions());
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  EXPECT_THAT(worker_heard_.Take(), ElementsAre("server-0 is there"));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there"));
  worker->Send({kServer}, FrameType::kDoorbell,
               EncodeObjectName({ObjectKind::kGradient, 5, 0, 1, 3}));
  server->Send({kWorker}, FrameType::kDoorbell,
               EncodeObjectName({ObjectKind::kWeights, 6, 1, 1, 0}));
  wire_.Run(milliseconds(10));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 rings 5"));
  EXPECT_THAT(worker_heard_.Take(), ElementsAre("server-0 rings 6"));
  wire_.Run(std::chrono::seconds(60));
  EXPECT_THAT(worker_heard_.Take(), IsEmpty()) << "a quiet connection stays";
  EXPECT_EQ(worker->Counts().opened, 1);
  EXPECT_EQ(worker->Counts().sent, 1);
  EXPECT_EQ(server->Counts().received, 1);
}

TEST_F(PeerChannelTest, ObjectsAreAskedForAndSent) {
  PeerChannelOptions options = WorkerOptions();
  options.most_object_bytes = kObjectHeaderBytes + 8;
  const auto server = Server(ServerOptions());
  const auto worker = Worker(options);
  wire_.Run(milliseconds(10));
  worker_heard_.Take();
  server_heard_.Take();
  worker->Send({kServer}, FrameType::kPull, EncodeObjectName({ObjectKind::kWeights, 6, 1, 1, 0}));
  worker->Send({kServer}, FrameType::kDone, {});
  const auto object = [](size_t payload) {
    return std::make_shared<const Bytes>(
        EncodeObjectFrame(Bytes(kObjectHeaderBytes), Bytes(payload)));
  };
  server->Send({kWorker}, object(8));
  wire_.Run(milliseconds(10));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 pulls 6", "worker-3 is done"));
  EXPECT_THAT(worker_heard_.Take(),
              ElementsAre("server-0 sends " + std::to_string(kObjectHeaderBytes + 8) + " bytes"));
  EXPECT_EQ(worker->Counts().objects, 1);
  EXPECT_EQ(worker->Counts().object_bytes, static_cast<int64_t>(kObjectHeaderBytes) + 8);
  server->Send({kWorker}, object(9));
  wire_.Run(milliseconds(10));
  EXPECT_THAT(worker_heard_.Take(), ElementsAre("server-0 is lost")) << "longer than the plan's";
  wire_.Run(milliseconds(400));
  server_heard_.Take();
  worker->Send({kServer}, object(8));
  wire_.Run(milliseconds(10));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is lost")) << "this one takes none";
}

TEST_F(PeerChannelTest, APeerThatAsksForWhatIsNotItsBusinessIsLost) {
  const auto server = Server(ServerOptions());
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  server_heard_.Take();
  worker->Send({kServer}, FrameType::kPull, EncodeObjectName({ObjectKind::kWeights, -1, 1, 1, 0}));
  wire_.Run(milliseconds(10));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 pulls -1", "worker-3 is lost"));
}

TEST_F(PeerChannelTest, APeerThatStartsLaterIsFound) {
  const auto worker = Worker(WorkerOptions());
  wire_.Run(std::chrono::seconds(30));
  EXPECT_THAT(worker->LastRefusal(), HasSubstr("server-0 at 10.0.0.1:8444"));
  const auto server = Server(ServerOptions());
  wire_.Run(FromSeconds(kMostDialSeconds) + milliseconds(10));
  EXPECT_THAT(worker_heard_.Take(), ElementsAre("server-0 is there"));
}

TEST_F(PeerChannelTest, ADeadPeerIsKnownWithinTwoSeconds) {
  const auto server = Server(ServerOptions());
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  worker_heard_.Take();
  server_heard_.Take();
  // Its machine has gone: no word, no end of the connection.
  wire_.silent.insert(&worker_network_);
  wire_.Run(std::chrono::seconds(2));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is lost"));
  EXPECT_EQ(server->Counts().lost, 1);
  wire_.silent.clear();
  wire_.Run(std::chrono::seconds(4));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there")) << "it connects again";
}

TEST_F(PeerChannelTest, ABrokenConnectionIsMadeAnewAtOnce) {
  const auto server = Server(ServerOptions());
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  worker_network_.last->Break();
  worker->Send({kServer}, FrameType::kDoorbell, EncodeObjectName({}));
  wire_.Run(FromSeconds(kFirstDialSeconds) + milliseconds(10));
  EXPECT_THAT(worker_heard_.Take(),
              ElementsAre("server-0 is there", "server-0 is lost", "server-0 is there"));
  EXPECT_THAT(server_heard_.Take(),
              ElementsAre("worker-3 is there", "worker-3 is lost", "worker-3 is there"));
  EXPECT_EQ(worker->Counts().dropped, 1) << "told nobody";
}

TEST_F(PeerChannelTest, AReaderThatNeverReadsCostsDoorbellsAndNoMemory) {
  const auto server = Server(ServerOptions());
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  worker_network_.last->is_read = false;
  for (int i = 0; i < 10'000; ++i) {
    worker->Send({kServer}, FrameType::kDoorbell, EncodeObjectName({}));
  }
  EXPECT_LE(worker_network_.last->UnsentBytes(), kMostUnsentBytes + 32);
  EXPECT_GT(worker->Counts().dropped, 7'000);
  EXPECT_EQ(worker->Counts().dropped + worker->Counts().sent, 10'000);
}

// Pings pass both ways, and the object does not.
TEST_F(PeerChannelTest, APeerThatLivesButDoesNotReadIsLost) {
  const auto server = Server(ServerOptions());
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  server_heard_.Take();
  worker_network_.last->most_read = 100;
  worker->Send({kServer}, ObjectFrame(1000));
  wire_.Run(FromSeconds(kUnreadSeconds - 1));
  EXPECT_THAT(server_heard_.Take(), IsEmpty());
  EXPECT_EQ(worker->Counts().unread, 0);
  wire_.Run(FromSeconds(1 + 2 * kTickSeconds));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is lost"));
  EXPECT_THAT(worker_heard_.Take(), ElementsAre("server-0 is there", "server-0 is lost"));
  EXPECT_EQ(worker->Counts().unread, 1);
  EXPECT_EQ(worker->Counts().lost, 1);
  wire_.Run(FromSeconds(kUnreadPauseSeconds - 2));
  EXPECT_THAT(worker_heard_.Take(), IsEmpty());
  EXPECT_EQ(worker->Counts().refused, 0) << "it is not even tried";
  wire_.Run(std::chrono::seconds(4));
  EXPECT_THAT(worker_heard_.Take(), ElementsAre("server-0 is there"));
}

TEST_F(PeerChannelTest, WhoDidNotReadIsNotLetInForAWhileButAnotherInItsPlaceIs) {
  const auto server = Server(ServerOptions());
  auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  worker_network_.last->peer.lock()->most_read = 100;
  server->Send({kWorker}, ObjectFrame(1000));
  wire_.Run(FromSeconds(kUnreadSeconds + 5));
  EXPECT_EQ(server->Counts().unread, 1);
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there", "worker-3 is lost"));
  EXPECT_THAT(server->LastRefusal(), HasSubstr("worker-3 did not read what it was sent"));
  worker.reset();
  PeerChannelOptions second = WorkerOptions();
  second.self.attempt = 2;
  worker = Worker(second);
  wire_.Run(milliseconds(10));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there"));
}

TEST_F(PeerChannelTest, NoMoreWaitsForAPeerThanItCanHaveAskedFor) {
  PeerChannelOptions options = WorkerOptions();
  options.most_unsent_bytes = 5000;
  const auto server = Server(ServerOptions());
  const auto worker = Worker(options);
  wire_.Run(milliseconds(10));
  worker_network_.last->most_read = 100;
  const SharedBytes frame = ObjectFrame(1000);
  const size_t fit = 5000 / frame->size();
  for (size_t i = 0; i < fit; ++i) worker->Send({kServer}, frame);
  EXPECT_EQ(worker_network_.last->UnsentBytes(), fit * frame->size());
  EXPECT_EQ(worker->Counts().unread, 0);
  worker->Send({kServer}, frame);
  EXPECT_EQ(worker->Counts().unread, 1);
  EXPECT_THAT(worker_heard_.Take(), ElementsAre("server-0 is there", "server-0 is lost"));
}

TEST_F(PeerChannelTest, WhatIsTakenSlowlyButSteadilyIsRead) {
  const auto server = Server(ServerOptions());
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  worker_network_.last->most_read = 100;
  worker->Send({kServer}, ObjectFrame(10 * kLeastTakenBytes));
  for (int i = 0; i < 9; ++i) {
    wire_.Run(FromSeconds(kUnreadSeconds - 1));
    worker_network_.last->unsent -= kLeastTakenBytes;
  }
  EXPECT_EQ(worker->Counts().lost, 0);
  wire_.Run(FromSeconds(kUnreadSeconds + 1));
  EXPECT_EQ(worker->Counts().unread, 1);
}

TEST_F(PeerChannelTest, OfTwoFunctionsInOneRoleTheLaterOneHasIt) {
  const auto server = Server(ServerOptions());
  PeerChannelOptions second = WorkerOptions();
  second.self.attempt = 2;
  auto first = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there"));
  MemoryNetwork anew(wire_, "10.0.0.3:8444");
  Heard heard;
  const PeerChannel later(time_.runtime, anew, heard, second);
  wire_.Run(milliseconds(10));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there"));
  wire_.Run(std::chrono::seconds(10));
  EXPECT_EQ(later.Counts().lost, 0) << "the older one does not take it back";
  EXPECT_EQ(server->Counts().lost, 1);
  EXPECT_THAT(server_heard_.Take(), IsEmpty());
  EXPECT_THAT(server->LastRefusal(), HasSubstr("a later function has its place"));
}

TEST_F(PeerChannelTest, StrangersAreNotLetIn) {
  PeerChannelOptions other_key = WorkerOptions();
  other_key.key = DerivePeerKeys("another").handshake;
  EXPECT_THAT(RefusalOf(other_key, ServerOptions()), HasSubstr("does not have this job's key"));
  PeerChannelOptions other_job = WorkerOptions();
  other_job.self.job = 8;
  EXPECT_THAT(RefusalOf(other_job, ServerOptions()), HasSubstr("of another job"));
  PeerChannelOptions other_round = WorkerOptions();
  other_round.self.incarnation = 1;
  EXPECT_THAT(RefusalOf(other_round, ServerOptions()), HasSubstr("another round"));
  PeerChannelOptions other_revision = WorkerOptions();
  other_revision.self.plan_revision = 1;
  EXPECT_THAT(RefusalOf(other_revision, ServerOptions()), HasSubstr("another round"));
  PeerChannelOptions other_role = WorkerOptions();
  other_role.self.rank = 9;
  EXPECT_THAT(RefusalOf(other_role, ServerOptions()), HasSubstr("worker-9 has nothing to say"));
  PeerChannelOptions other_server = ServerOptions();
  other_server.self.rank = 1;
  EXPECT_THAT(RefusalOf(WorkerOptions(), other_server), HasSubstr("server-1 has nothing to say"));
}

// A handler that says what the test tells it to.
struct Raw final : ConnectionHandler {
  explicit Raw(Bytes words) : first(std::move(words)) {}
  void OnOpen() override {
    if (!first.empty()) connection->Send(std::make_shared<const Bytes>(first));
  }
  void OnBytes(ByteView) override {}
  void OnClosed(const Status&) override { closed = true; }
  const Bytes first;
  std::shared_ptr<Connection> connection;
  bool closed = false;
};

TEST_F(PeerChannelTest, GarbageAndSilenceEndTheirConnectionAlone) {
  const auto server = Server(ServerOptions());
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  MemoryNetwork outside(wire_, "10.0.0.9:1");
  const auto say = [&](Bytes words) {
    auto raw = std::make_shared<Raw>(std::move(words));
    raw->connection = outside.Dial("10.0.0.1:8444", raw);
    return raw;
  };
  for (const Bytes& words :
       {ToBytes("GET / HTTP/1.1\r\n\r\n"), EncodeFrame(FrameType::kPing, {}),
        EncodeFrame(FrameType::kDoorbell, EncodeObjectName({})), Bytes(100'000, std::byte{0xff})}) {
    const auto raw = say(words);
    wire_.Run(milliseconds(10));
    EXPECT_TRUE(raw->closed);
    raw->connection->Close();
  }
  const auto silent = say({});
  wire_.Run(milliseconds(10));
  EXPECT_FALSE(silent->closed);
  wire_.Run(FromSeconds(kHandshakeSeconds + kTickSeconds));
  EXPECT_TRUE(silent->closed);
  EXPECT_EQ(server->Counts().refused, 5);
  EXPECT_THAT(server->LastRefusal(), HasSubstr("a connection from outside: it did not say who"));
  EXPECT_EQ(server->Counts().lost, 0);
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there"));
}

TEST_F(PeerChannelTest, ManyStrangersAreNotWaitedFor) {
  const auto server = Server(ServerOptions());
  MemoryNetwork outside(wire_, "10.0.0.9:1");
  std::vector<std::shared_ptr<Raw>> strangers;
  for (size_t i = 0; i < kMostStrangers + 10; ++i) {
    strangers.push_back(std::make_shared<Raw>(Bytes()));
    strangers.back()->connection = outside.Dial("10.0.0.1:8444", strangers.back());
  }
  wire_.Run(milliseconds(10));
  EXPECT_EQ(server->Counts().refused, 10);
  wire_.Run(FromSeconds(kHandshakeSeconds + kTickSeconds));
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there"));
}

TEST_F(PeerChannelTest, FramesOfTheHandshakeAfterItsEndEndTheConnection) {
  const auto server = Server(ServerOptions());
  const auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  worker->Send({kServer}, FrameType::kProof, PeerSecret{});
  wire_.Run(milliseconds(10));
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there", "worker-3 is lost"));
}

TEST_F(PeerChannelTest, OnceItIsGoneNobodyIsTold) {
  const auto server = Server(ServerOptions());
  auto worker = Worker(WorkerOptions());
  wire_.Run(milliseconds(10));
  worker.reset();
  worker_heard_.Take();
  wire_.Run(std::chrono::seconds(3));
  EXPECT_THAT(worker_heard_.Take(), IsEmpty());
  EXPECT_THAT(server_heard_.Take(), ElementsAre("worker-3 is there", "worker-3 is lost"));
}

}  // namespace
}  // namespace lambdadnn
