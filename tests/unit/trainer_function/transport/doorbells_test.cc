// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/doorbells.h"

#include <gtest/gtest.h>

#include "common/objectstore/memory_object_store.h"
#include "common/protocol/exchange_peers.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/memory_network.h"
#include "trainer_function/transport/store_transport.h"

namespace lambdadnn {
namespace {

using std::chrono::milliseconds;

const Role kFirstWorker = {RoleKind::kWorker, 0, {}};
const Role kSecondWorker = {RoleKind::kWorker, 1, {}};
const Role kRoot = {RoleKind::kServer, 0, {1, 0, 0}};

// Of iteration 4.
const ExchangeObjectName kGradientOfFirst = {ObjectKind::kGradient, 4, 0, 1, 0};
const ExchangeObjectName kNewWeights = {ObjectKind::kWeights, 5, 1, 1, 0};
constexpr Range kTenElements = {0, 10};

// Two workers and a root that has both shards.
class DoorbellsTest : public testing::Test {
 protected:
  SliceRequest RequestOf(const Role& role) {
    SliceRequest request;
    request.job.uid = "uid";
    request.plan.revision = 2;
    request.incarnation = 3;
    request.plan.aggregation.layers = {1, 2};
    request.plan.aggregation.shards = 2;
    request.plan.functions = 2;
    request.plan.aggregation.placement = placement_;
    request.plan.aggregation.spread = placement_ == Placement::kWorkers ? 2 : 1;
    request.roles = RolesOf(request.plan.aggregation, {role, 1});
    request.invocation = MakeInvocationId(request);
    for (const Role& other : RolesToDial(request.plan.aggregation, role)) {
      request.peers.push_back({other, other.Name()});
    }
    return request;
  }
  std::unique_ptr<Doorbells> Make(MemoryNetwork& network, const Role& role) {
    return std::make_unique<Doorbells>(
        time_.runtime, PeerAccess{&network, DerivePeerKeys("key").handshake}, RequestOf(role));
  }

  Placement placement_ = Placement::kDedicated;
  VirtualRuntime time_;
  MemoryWire wire_{time_.clock};
  MemoryNetwork first_network_{wire_, kFirstWorker.Name()};
  MemoryNetwork second_network_{wire_, kSecondWorker.Name()};
  MemoryNetwork root_network_{wire_, kRoot.Name()};
  std::unique_ptr<Doorbells> root_ = Make(root_network_, kRoot);
  std::unique_ptr<Doorbells> first_ = Make(first_network_, kFirstWorker);
  std::unique_ptr<Doorbells> second_ = Make(second_network_, kSecondWorker);
};

TEST_F(DoorbellsTest, WritersAreExpectedToRingOnceTheyAreConnected) {
  EXPECT_FALSE(root_->Expects(kGradientOfFirst));
  wire_.Run(milliseconds(10));
  EXPECT_TRUE(root_->Expects(kGradientOfFirst));
  EXPECT_TRUE(first_->Expects(kNewWeights));
  first_.reset();
  wire_.Run(milliseconds(10));
  EXPECT_FALSE(root_->Expects(kGradientOfFirst));
}

TEST_F(DoorbellsTest, WhoIsMissedForLongIsNotReached) {
  EXPECT_EQ(first_->peers().Unreached(milliseconds(0)), 1);
  wire_.Run(milliseconds(10));
  EXPECT_EQ(first_->peers().Unreached(milliseconds(0)), 0);
  EXPECT_EQ(root_->peers().Unreached(milliseconds(0)), 0) << "it connects to nobody";
  root_.reset();
  wire_.Run(milliseconds(1000));
  EXPECT_EQ(first_->peers().Unreached(milliseconds(2000)), 0) << "it may be replaced";
  wire_.Run(milliseconds(1100));
  EXPECT_EQ(first_->peers().Unreached(milliseconds(2000)), 1);
  root_ = Make(root_network_, kRoot);
  wire_.Run(milliseconds(1100));
  EXPECT_EQ(first_->peers().Unreached(milliseconds(2000)), 0);
}

TEST_F(DoorbellsTest, WhoIsDoneIsNotMissed) {
  wire_.Run(milliseconds(10));
  root_->SayDone();
  wire_.Run(milliseconds(10));
  root_.reset();
  wire_.Run(milliseconds(1000));
  EXPECT_EQ(first_->peers().Unreached(milliseconds(0)), 0);
  root_ = Make(root_network_, kRoot);
  wire_.Run(milliseconds(1100));
  root_.reset();
  wire_.Run(milliseconds(1000));
  EXPECT_EQ(first_->peers().Unreached(milliseconds(0)), 1) << "another, that was not done";
}

TEST_F(DoorbellsTest, EveryReaderIsToldAndNobodyElse) {
  wire_.Run(milliseconds(10));
  root_->Ring(kNewWeights);
  first_->Ring(kGradientOfFirst);
  wire_.Run(milliseconds(10));
  EXPECT_TRUE(first_->Watch(kNewWeights)->Wait(milliseconds(5)));
  EXPECT_TRUE(second_->Watch(kNewWeights)->Wait(milliseconds(5)));
  EXPECT_TRUE(root_->Watch(kGradientOfFirst)->Wait(milliseconds(5)));
  EXPECT_EQ(root_->peers().Counts().sent, 2);
  EXPECT_EQ(first_->peers().Counts().received, 1);
  EXPECT_EQ(second_->peers().Counts().received, 1);
}

TEST_F(DoorbellsTest, AWaitEndsOnceForEachRing) {
  wire_.Run(milliseconds(10));
  const auto watch = first_->Watch(kNewWeights);
  const Instant before = time_.clock.Now();
  EXPECT_FALSE(watch->Wait(milliseconds(50)));
  EXPECT_EQ(time_.clock.Now() - before, Duration(milliseconds(50)));
  root_->Ring(kNewWeights);
  root_->Ring(kNewWeights);
  ExchangeObjectName other = kNewWeights;
  other.shard = 0;
  root_->Ring(other);
  wire_.Run(milliseconds(10));
  EXPECT_TRUE(watch->Wait(milliseconds(50))) << "rung twice, heard once";
  EXPECT_FALSE(watch->Wait(milliseconds(50)));
  EXPECT_TRUE(first_->Watch(other)->Wait(milliseconds(50))) << "rung before it was waited for";
}

// Two workers, each with the root of a shard.
TEST_F(DoorbellsTest, WorkersThatServeRingEachOther) {
  placement_ = Placement::kWorkers;
  first_.reset();
  second_.reset();
  first_ = Make(first_network_, kFirstWorker);
  second_ = Make(second_network_, kSecondWorker);
  wire_.Run(milliseconds(100));
  ASSERT_EQ(first_->peers().Unreached({}) + second_->peers().Unreached({}), 0);
  const int host = HostOf(RequestOf(kFirstWorker).plan.aggregation, {1, 0, 1});
  Doorbells& serves = host == 0 ? *first_ : *second_;
  Doorbells& other = host == 0 ? *second_ : *first_;
  EXPECT_TRUE(other.Expects(kNewWeights));
  // Norms of the shard are read by the other root, weights by the worker beside it.
  const ExchangeObjectName norms = {ObjectKind::kNorms, 4, 1, 1, 0};
  serves.Ring(kNewWeights);
  serves.Ring(norms);
  wire_.Run(milliseconds(10));
  EXPECT_EQ(serves.peers().Counts().sent, 2);
  EXPECT_TRUE(other.Watch(kNewWeights)->Wait(milliseconds(5)));
  EXPECT_TRUE(other.Watch(norms)->Wait(milliseconds(5)));
  EXPECT_FALSE(other.Watch(norms)->Wait(milliseconds(5))) << "its reader has heard it";
}

TEST(RungNames, EveryReaderOfANameHearsARing) {
  VirtualRuntime time;
  RungNames names(time.runtime);
  const ExchangeObjectName doorbell = {ObjectKind::kNorms, 4, 1, 1, 0};
  names.Ring(doorbell);
  EXPECT_TRUE(names.Watch(doorbell, 2)->Wait(milliseconds(5))) << "the first one";
  EXPECT_TRUE(names.Watch(doorbell, 2)->Wait(milliseconds(5))) << "who began after it had ended";
  EXPECT_FALSE(names.Watch(doorbell, 2)->Wait(milliseconds(5)));
}

TEST_F(DoorbellsTest, AWaitEndsWhenItsWriterIsLost) {
  wire_.Run(milliseconds(10));
  const auto of_first = root_->Watch(kGradientOfFirst);
  second_.reset();
  wire_.Run(milliseconds(10));
  EXPECT_FALSE(of_first->Wait(milliseconds(50)));
  first_.reset();
  wire_.Run(milliseconds(10));
  EXPECT_TRUE(of_first->Wait(milliseconds(50)));
  EXPECT_FALSE(of_first->Wait(milliseconds(50))) << "once";
}

TEST_F(DoorbellsTest, OnlyTheWriterItselfIsBelieved) {
  wire_.Run(milliseconds(10));
  second_->Ring(kGradientOfFirst);
  wire_.Run(milliseconds(10));
  EXPECT_EQ(root_->peers().Counts().received, 1);
  EXPECT_FALSE(root_->Watch(kGradientOfFirst)->Wait(milliseconds(50)));
}

TEST_F(DoorbellsTest, WhatNobodyWaitsForIsForgottenFromTheOldestOn) {
  wire_.Run(milliseconds(10));
  const auto count = static_cast<int64_t>(kMostRung) + 10;
  for (int64_t version = 1; version <= count; ++version) {
    root_->Ring({ObjectKind::kWeights, version, 1, 1, 0});
    wire_.Run(milliseconds(1));
  }
  wire_.Run(milliseconds(10));
  const auto heard = [&](int64_t version) {
    return first_->Watch({ObjectKind::kWeights, version, 1, 1, 0})->Wait(milliseconds(1));
  };
  EXPECT_FALSE(heard(10));
  EXPECT_TRUE(heard(11));
  EXPECT_TRUE(heard(count));
}

// A reader's pull over a store that counts questions.
class RungPullTest : public DoorbellsTest {
 protected:
  StoreTransport TransportOf(Doorbells* bells) {
    return {time_.runtime, store_, interrupt_, {"p", 2, 3}, "uid", kDefaultBlockElements, bells};
  }
  Status Push(Doorbells* bells) {
    TransferMetadata metadata;
    metadata.elements = kTenElements;
    StoreTransport transport = TransportOf(bells);
    return transport.Push(kGradientOfFirst, metadata, AsBytes(std::span<const float>(values_)));
  }
  // Questions for the object until it was there; `push_at` pushes at that one.
  int QuestionsOf(StoreTransport& transport, int push_at) {
    int asked = 0;
    store_.SetScript([&](StoreOperation operation, std::string_view, bool done) {
      if (operation == StoreOperation::kGet && !done && ++asked == push_at) {
        EXPECT_TRUE(Push(nullptr).ok());
      }
      return OkStatus();
    });
    EXPECT_TRUE(transport.Pull(kGradientOfFirst, kTenElements).ok());
    store_.SetScript(nullptr);
    return asked;
  }

  MemoryObjectStore memory_;
  FaultyObjectStore store_{memory_, time_.runtime, StoreFaults{}};
  Interrupt interrupt_{time_.runtime, time_.clock.Now() + std::chrono::hours(1)};
  std::vector<float> values_ = std::vector<float>(10);
};

TEST_F(RungPullTest, APushRingsAndTheReaderAsksOnce) {
  wire_.Run(milliseconds(10));
  ASSERT_TRUE(Push(first_.get()).ok());
  wire_.Run(milliseconds(10));
  StoreTransport transport = TransportOf(root_.get());
  const Instant before = time_.clock.Now();
  EXPECT_EQ(QuestionsOf(transport, 0), 1);
  EXPECT_EQ(time_.clock.Now(), before) << "at once";
}

TEST_F(RungPullTest, APushThatFailsDoesNotRing) {
  wire_.Run(milliseconds(10));
  store_.SetScript(
      [](StoreOperation, std::string_view, bool) { return ResourceExhaustedError("full"); });
  EXPECT_FALSE(Push(first_.get()).ok());
  EXPECT_EQ(first_->peers().Counts().sent, 0);
}

TEST_F(RungPullTest, ALostDoorbellCostsOneQuestionAndNoIteration) {
  wire_.Run(milliseconds(10));
  StoreTransport transport = TransportOf(root_.get());
  const Instant before = time_.clock.Now();
  EXPECT_EQ(QuestionsOf(transport, 2), 2) << "the first without a doorbell is in vain";
  EXPECT_EQ(time_.clock.Now() - before, 2 * kMinRungGap);
}

TEST_F(RungPullTest, WithoutAConnectionItPolls) {
  StoreTransport transport = TransportOf(root_.get());
  EXPECT_EQ(QuestionsOf(transport, 20), 20);
  EXPECT_LT(time_.clock.Now() - Instant{}, Duration(milliseconds(100)));
}

TEST_F(RungPullTest, DoorbellsForWhatIsNotThereAreNotHeardForEver) {
  wire_.Run(milliseconds(10));
  StoreTransport transport = TransportOf(root_.get());
  int asked = 0;
  store_.SetScript([&](StoreOperation operation, std::string_view, bool done) {
    if (operation == StoreOperation::kGet && done) {
      if (++asked == 20) return CancelledError("enough");
      first_->Ring(kGradientOfFirst);
      wire_.Run(milliseconds(2));
    }
    return OkStatus();
  });
  const Instant before = time_.clock.Now();
  EXPECT_FALSE(transport.Pull(kGradientOfFirst, kTenElements).ok());
  EXPECT_GT(time_.clock.Now() - before, Duration(std::chrono::seconds(60)))
      << "after the first false ones, gaps grow as if nobody rang";
}

}  // namespace
}  // namespace lambdadnn
