// SPDX-License-Identifier: Apache-2.0
// Over sockets of this machine.
#include "trainer_function/transport/direct_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/objectstore/memory_object_store.h"
#include "common/protocol/exchange_peers.h"
#include "tests/support/deaf_peer.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/object_frame.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/peer/tcp_network.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Role kFirstRole = {RoleKind::kWorker, 0, {}};
const Role kSecondRole = {RoleKind::kWorker, 1, {}};
const Role kRootRole = {RoleKind::kServer, 0, {1, 0, 0}};
constexpr PeerId kFirst = {RoleKind::kWorker, 0};
constexpr PeerId kServer = {RoleKind::kServer, 0};

const ExchangeObjectName kFourthGradient = {ObjectKind::kGradient, 4, 0, 1, 0};
const ExchangeObjectName kFifthWeights = {ObjectKind::kWeights, 5, 1, 1, 0};
constexpr Range kLastTen = {kDefaultBlockElements, kDefaultBlockElements + 10};
constexpr Duration kPatience = std::chrono::seconds(30);

// One function's part of a slice, over a store of which every request is counted.
struct DirectPart {
  DirectPart(Runtime& runtime, TcpNetwork& network, MemoryObjectStore& memory,
             const SliceRequest& request)
      : store(memory, runtime, StoreFaults{}),
        interrupt(runtime, runtime.clock.Now() + kPatience),
        stored(runtime, store, interrupt,
               {request.store.prefix, request.plan.revision, request.incarnation}, request.job.uid,
               request.plan.block_elements) {
    store.SetScript([this](StoreOperation, std::string_view, bool done) {
      if (!done) ++requests;
      const std::lock_guard lock(mutex);
      return answer;
    });
    direct.emplace(runtime, PeerAccess{&network, DerivePeerKeys("key").handshake}, request,
                   interrupt, stored);
  }
  void Answer(const Status& status) {
    const std::lock_guard lock(mutex);
    answer = status;
  }

  std::atomic<int> requests{0};
  std::mutex mutex;
  Status answer;
  FaultyObjectStore store;
  Interrupt interrupt;
  StoreTransport stored;
  std::optional<DirectTransport> direct;
};

// Two workers and a root that has both shards.
class DirectTransportTest : public testing::Test {
 protected:
  SliceRequest RequestOf(const Role& role, bool connects, int attempt) {
    SliceRequest request;
    request.job.uid = "uid";
    request.store.prefix = "p";
    request.plan.revision = 2;
    request.incarnation = 3;
    request.plan.aggregation.layers = {1, 2};
    request.plan.aggregation.shards = 2;
    request.plan.aggregation.transport = TransportKind::kDirect;
    request.plan.functions = 2;
    request.plan.parameters = 2 * kDefaultBlockElements;
    request.roles = {{role, attempt}};
    request.invocation = MakeInvocationId(request);
    for (const Role& other : RolesToDial(request.plan.aggregation, role)) {
      if (connects) request.peers.push_back({other, AddressOf(root_network_)});
    }
    return request;
  }
  static std::string AddressOf(const std::unique_ptr<TcpNetwork>& network) {
    return "127.0.0.1:" + std::to_string(network->port());
  }
  std::unique_ptr<TcpNetwork> Open() {
    return TcpNetwork::Listen(runtime_, "127.0.0.1", 0, std::nullopt).value();
  }
  std::unique_ptr<DirectPart> Make(const Role& role, const std::unique_ptr<TcpNetwork>& network,
                                   bool connects = true, int attempt = 1) {
    return std::make_unique<DirectPart>(runtime_, *network, memory_,
                                        RequestOf(role, connects, attempt));
  }
  void MakeAll() {
    root_ = Make(kRootRole, root_network_);
    first_ = Make(kFirstRole, first_network_);
    second_ = Make(kSecondRole, second_network_);
    ASSERT_TRUE(Await([&] {
      const SlicePeers& peers = root_->direct->peers();
      return peers.IsConnected(kFirst) && peers.IsConnected({RoleKind::kWorker, 1}) &&
             first_->direct->peers().IsConnected(kServer) &&
             second_->direct->peers().IsConnected(kServer);
    }));
  }
  bool Await(const std::function<bool()>& condition) {
    const Instant end = runtime_.clock.Now() + kPatience;
    while (!condition() && runtime_.clock.Now() < end)
      runtime_.clock.SleepFor(std::chrono::milliseconds(1));
    return condition();
  }
  Status Push(DirectPart& part, const ExchangeObjectName& name) {
    TransferMetadata metadata;
    metadata.elements = elements_;
    metadata.samples = 7;
    return part.direct->Push(name, metadata, AsBytes(std::span<const float>(values_)));
  }
  std::vector<float> Pull(DirectPart& part, const ExchangeObjectName& name) {
    const auto received = part.direct->Pull(name, elements_);
    EXPECT_TRUE(received.ok()) << received.status().ToString();
    if (!received.ok()) return {};
    EXPECT_EQ(received->header.samples, 7);
    const auto values = received->values<float>();
    return {values.begin(), values.end()};
  }
  size_t Stored() { return ListAll(memory_, "p/").value().size(); }

  SystemRuntime runtime_;
  MemoryObjectStore memory_;
  std::vector<float> values_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  Range elements_ = kLastTen;
  std::unique_ptr<TcpNetwork> root_network_ = Open();
  std::unique_ptr<TcpNetwork> first_network_ = Open();
  std::unique_ptr<TcpNetwork> second_network_ = Open();
  std::unique_ptr<DirectPart> root_;
  std::unique_ptr<DirectPart> first_;
  std::unique_ptr<DirectPart> second_;
};

TEST_F(DirectTransportTest, WhatIsPushedIsHeldForItsReadersUntilItIsDiscarded) {
  MakeAll();
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok());
  EXPECT_EQ(Pull(*first_, kFifthWeights), values_);
  EXPECT_EQ(Pull(*second_, kFifthWeights), values_);
  EXPECT_EQ(Pull(*second_, kFifthWeights), values_);
  ASSERT_TRUE(root_->direct->Discard(std::array{kFifthWeights}).ok());
  EXPECT_EQ(root_->requests + first_->requests + second_->requests, 0);
  EXPECT_EQ(second_->direct->peers().Counts().objects, 2);
}

TEST_F(DirectTransportTest, AReaderMayAskBeforeThePush) {
  MakeAll();
  std::vector<float> pulled;
  std::thread reader([&] { pulled = Pull(*root_, kFourthGradient); });
  runtime_.clock.SleepFor(std::chrono::milliseconds(20));
  ASSERT_TRUE(Push(*first_, kFourthGradient).ok());
  reader.join();
  EXPECT_EQ(pulled, values_);
  EXPECT_EQ(root_->requests + first_->requests, 0);
}

TEST_F(DirectTransportTest, WithoutAConnectionItGoesThroughTheStore) {
  root_ = Make(kRootRole, root_network_);
  first_ = Make(kFirstRole, first_network_, false);
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok());
  ASSERT_TRUE(Push(*first_, kFourthGradient).ok());
  EXPECT_EQ(Stored(), 2u);
  EXPECT_EQ(Pull(*first_, kFifthWeights), values_);
  EXPECT_EQ(Pull(*root_, kFourthGradient), values_);
  EXPECT_EQ(root_->requests, 2) << "one to write, one to read";
  ASSERT_TRUE(root_->direct->Discard(std::array{kFifthWeights}).ok());
  ASSERT_TRUE(first_->direct->Discard(std::array{kFourthGradient}).ok());
  EXPECT_EQ(Stored(), 0u);
}

TEST_F(DirectTransportTest, AReaderThatIsLostFindsInTheStoreWhatIsHeldForIt) {
  MakeAll();
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok());
  EXPECT_EQ(Pull(*second_, kFifthWeights), values_);
  EXPECT_EQ(Stored(), 0u);
  first_.reset();
  EXPECT_TRUE(Await([&] { return Stored() == 1; }));
  first_ = Make(kFirstRole, first_network_, false);
  EXPECT_EQ(Pull(*first_, kFifthWeights), values_);
  ASSERT_TRUE(root_->direct->Discard(std::array{kFifthWeights}).ok());
  EXPECT_EQ(Stored(), 0u);
}

TEST_F(DirectTransportTest, AWaitingReaderGoesOnInTheStoreWhenItsWriterIsLost) {
  MakeAll();
  std::vector<float> pulled;
  std::thread reader([&] { pulled = Pull(*root_, kFourthGradient); });
  runtime_.clock.SleepFor(std::chrono::milliseconds(20));
  first_.reset();
  // Another function in its place, which the root does not know yet.
  first_ = Make(kFirstRole, first_network_, false);
  ASSERT_TRUE(Push(*first_, kFourthGradient).ok());
  reader.join();
  EXPECT_EQ(pulled, values_);
  EXPECT_GT(root_->requests, 0);
}

TEST_F(DirectTransportTest, AnotherFunctionInTheSameRoleIsServedAnew) {
  MakeAll();
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok());
  EXPECT_EQ(Pull(*first_, kFifthWeights), values_);
  const auto later_network = Open();
  const auto later = Make(kFirstRole, later_network, true, 2);
  EXPECT_EQ(Pull(*later, kFifthWeights), values_);
  // The first one is not told that it was replaced, and might be lost.
  EXPECT_TRUE(Await([&] { return Stored() == 1; }));
}

TEST_F(DirectTransportTest, AFunctionInAnothersPlaceFindsTheWeightsThatAreHeld) {
  MakeAll();
  ExchangeObjectName next = kFifthWeights;
  next.iteration = 6;
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok());
  ASSERT_TRUE(Push(*root_, next).ok());
  // The one before is still there, and the root waits for its gradient.
  std::vector<float> pulled;
  std::thread reader([&] { pulled = Pull(*root_, kFourthGradient); });
  const auto later_network = Open();
  const auto later = Make(kFirstRole, later_network, true, 2);
  const auto found = later->direct->FindWeights();
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_THAT(*found, ElementsAre(WeightsShard{5, 1}, WeightsShard{6, 1}));
  ASSERT_TRUE(Push(*later, kFourthGradient).ok());
  reader.join();
  EXPECT_EQ(pulled, values_);
}

TEST_F(DirectTransportTest, AFunctionInAnothersPlaceFindsInTheStoreWhatItsRootsHold) {
  MakeAll();
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok());
  first_.reset();
  ASSERT_TRUE(Await([&] { return Stored() == 1; }));
  // Nothing listens there.
  SliceRequest request = RequestOf(kFirstRole, true, 2);
  request.peers.front().address = AddressOf(Open());
  first_ = std::make_unique<DirectPart>(runtime_, *first_network_, memory_, request);
  const auto found = first_->direct->FindWeights();
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_THAT(*found, ElementsAre(WeightsShard{5, 1}));
}

TEST_F(DirectTransportTest, NothingIsKeptForWhoIsDone) {
  MakeAll();
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok());
  EXPECT_EQ(Pull(*first_, kFifthWeights), values_);
  first_->direct->SayDone();
  ASSERT_TRUE(first_->direct->Finish().ok());
  first_.reset();
  ASSERT_TRUE(Await([&] { return !root_->direct->peers().IsConnected(kFirst); }));
  ExchangeObjectName next = kFifthWeights;
  next.iteration = 6;
  ASSERT_TRUE(Push(*root_, next).ok());
  EXPECT_EQ(Pull(*second_, next), values_);
  EXPECT_EQ(root_->requests, 0);
}

TEST_F(DirectTransportTest, FinishWaitsForTheOthers) {
  MakeAll();
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok());
  std::atomic<bool> finished = false;
  std::thread root([&] {
    EXPECT_TRUE(root_->direct->Finish().ok());
    finished = true;
  });
  EXPECT_EQ(Pull(*first_, kFifthWeights), values_);
  first_->direct->SayDone();
  ASSERT_TRUE(first_->direct->Finish().ok());
  runtime_.clock.SleepFor(std::chrono::milliseconds(50));
  EXPECT_FALSE(finished) << "the second one may still want it";
  EXPECT_EQ(Pull(*second_, kFifthWeights), values_);
  second_->direct->SayDone();
  ASSERT_TRUE(second_->direct->Finish().ok());
  root.join();
}

TEST_F(DirectTransportTest, AStoreThatRefusesEndsTheSlice) {
  MakeAll();
  root_->Answer(PermissionDeniedError("no"));
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok()) << "nobody needs the store yet";
  first_.reset();
  ASSERT_TRUE(Await([&] { return root_->requests > 0; }));
  const Status status = root_->direct->Finish();
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status.ToString();
  EXPECT_FALSE(root_->direct->Pull(kFourthGradient, kLastTen).ok());
}

// Its pulls come, its signs of life as well, and nothing is ever taken out of its socket.
TEST_F(DirectTransportTest, AReaderThatNeverReadsIsMetInTheStore) {
  root_ = Make(kRootRole, root_network_);
  second_ = Make(kSecondRole, second_network_);
  values_.assign(kDefaultBlockElements, 0.5f);
  elements_ = {kDefaultBlockElements, 2 * kDefaultBlockElements};
  const SliceRequest request = RequestOf(kFirstRole, true, 1);
  PeerHello self;
  self.job = Xxh3(AsBytes(request.job.uid));
  self.plan_revision = request.plan.revision;
  self.incarnation = request.incarnation;
  self.invocation = request.invocation;
  // Far more than buffers of the kernel and the bound of what a reader may have asked for.
  const DeafPeer deaf(root_network_->port(), self, DerivePeerKeys("key").handshake, kFifthWeights,
                      200);
  ASSERT_TRUE(Await([&] {
    const SlicePeers& peers = root_->direct->peers();
    return peers.IsConnected(kFirst) && peers.IsConnected({RoleKind::kWorker, 1});
  }));
  ASSERT_TRUE(Push(*root_, kFifthWeights).ok());
  EXPECT_EQ(Stored(), 0u);
  ASSERT_TRUE(Await([&] { return Stored() == 1; }));
  EXPECT_EQ(root_->direct->peers().Counts().unread, 1);
  EXPECT_EQ(Pull(*second_, kFifthWeights), values_) << "others are not in its way";
  first_ = Make(kFirstRole, first_network_);
  EXPECT_EQ(Pull(*first_, kFifthWeights), values_);
  EXPECT_EQ(first_->direct->peers().Counts().objects, 0) << "it is not let in yet";
  ASSERT_TRUE(root_->direct->Discard(std::array{kFifthWeights}).ok());
  EXPECT_EQ(Stored(), 0u);
}

// A root that says what the test tells it to.
class FakeRoot final : public PeerListener {
 public:
  FakeRoot(Runtime& runtime, TcpNetwork& network, const SliceRequest& request)
      : peers_(runtime, {&network, DerivePeerKeys("key").handshake}, request, *this) {
    peers_.Open();
  }
  std::vector<SharedBytes> answers;  // to one pull after the other
  std::vector<ExchangeObjectName> found;
  std::atomic<int> pulls{0};

 private:
  void OnDoorbell(const PeerId&, const ExchangeObjectName&) override {}
  Status OnPull(const PeerId& from, const ExchangeObjectName&) override {
    const auto number = static_cast<size_t>(pulls++);
    peers_.Send({from}, answers[std::min(number, answers.size() - 1)]);
    return OkStatus();
  }
  Status OnFind(const PeerId& from) override {
    peers_.Send({from}, FrameType::kFound, EncodeObjectNames(found));
    return OkStatus();
  }
  void OnConnected(const PeerId&) override {}
  void OnLost(const PeerId&) override {}
  SlicePeers peers_;
};

class WrongObjects : public DirectTransportTest {
 protected:
  SharedBytes Frame(const ExchangeCodec& codec) {
    TransferMetadata metadata;
    metadata.elements = kLastTen;
    metadata.samples = 7;
    const ByteView payload = AsBytes(std::span<const float>(values_));
    return std::make_shared<const Bytes>(
        EncodeObjectFrame(codec.EncodedHeaderOf(kFifthWeights, metadata, payload), payload));
  }
};

TEST_F(WrongObjects, AreAskedForAgainAndReportedInTheEnd) {
  const SliceRequest request = RequestOf(kRootRole, true, 1);
  const SharedBytes good = Frame(ExchangeCodec(request));
  Bytes torn = *good;
  torn.back() ^= std::byte{1};
  SliceRequest older = request;
  older.incarnation = 2;
  FakeRoot root(runtime_, *root_network_, request);
  root.answers = {std::make_shared<const Bytes>(torn), Frame(ExchangeCodec(older)), good};
  first_ = Make(kFirstRole, first_network_);
  EXPECT_EQ(Pull(*first_, kFifthWeights), values_);
  EXPECT_EQ(root.pulls, 3);
  root.answers = {std::make_shared<const Bytes>(torn)};
  const Status status = first_->direct->Pull(kFifthWeights, kLastTen).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.ToString();
  EXPECT_EQ(first_->requests, 0);
}

TEST_F(WrongObjects, ThatAreFoundButNotItsOwnEndTheConnection) {
  FakeRoot root(runtime_, *root_network_, RequestOf(kRootRole, true, 1));
  root.found = {kFifthWeights, kFourthGradient};
  first_ = Make(kFirstRole, first_network_);
  const auto found = first_->direct->FindWeights();
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_THAT(*found, IsEmpty());
  EXPECT_GT(first_->direct->peers().Counts().lost, 0);
}

TEST_F(WrongObjects, ThatAreNoObjectsEndTheConnection) {
  const SliceRequest request = RequestOf(kRootRole, true, 1);
  FakeRoot root(runtime_, *root_network_, request);
  root.answers = {std::make_shared<const Bytes>(EncodeObjectFrame(Bytes(kObjectHeaderBytes), {}))};
  first_ = Make(kFirstRole, first_network_);
  std::thread reader([&] {
    EXPECT_EQ(first_->direct->Pull(kFifthWeights, kLastTen).status().code(),
              StatusCode::kCancelled);
  });
  EXPECT_TRUE(Await([&] { return first_->direct->peers().Counts().lost > 0; }));
  first_->interrupt.Abort();
  reader.join();
}

}  // namespace
}  // namespace lambdadnn
