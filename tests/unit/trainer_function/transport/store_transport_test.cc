// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/store_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>

#include "common/objectstore/memory_object_store.h"
#include "common/plan/collective_cost.h"
#include "tests/support/borrowed_store.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/system_runtime.h"
#include "tests/support/virtual_runtime.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr Range kElements = {16384, 16384 + 10};
const ExchangeObjectName kName = {ObjectKind::kGradient, 7, 1, 2, 3};

class StoreTransportTest : public testing::Test {
 protected:
  Status PushExample(StoreTransport& transport) {
    TransferMetadata metadata;
    metadata.elements = kElements;
    metadata.samples = 5;
    metadata.loss_sum = 2.5;
    metadata.stop_at = 9;
    return transport.Push(kName, metadata, AsBytes(std::span<const float>(values_)));
  }

  VirtualRuntime time_;
  MemoryObjectStore memory_;
  FaultyObjectStore store_{memory_, time_.runtime, StoreFaults{}};
  Interrupt interrupt_{time_.runtime, time_.clock.Now() + std::chrono::seconds(100)};
  StoreTransport transport_{time_.runtime, store_, interrupt_,
                            {"p", 2, 4},   "uid",  kDefaultBlockElements};
  std::vector<float> values_ = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
};

TEST_F(StoreTransportTest, WhatIsPushedIsPulled) {
  ASSERT_TRUE(PushExample(transport_).ok());
  const ReceivedObject received = transport_.Pull(kName, kElements).value();
  EXPECT_EQ(received.header.samples, 5);
  EXPECT_EQ(received.header.loss_sum, 2.5);
  EXPECT_EQ(received.header.stop_at, 9);
  EXPECT_EQ(received.header.base_version, 7);
  EXPECT_TRUE(std::ranges::equal(received.values<float>(), values_));
}

// Told with what the version after it is made of, and with nothing else.
TEST_F(StoreTransportTest, ASkippedCheckpointIsToldWithTheVersionBefore) {
  for (const int64_t skipped : {0, 7, 8, 9}) {
    TransferMetadata metadata;
    metadata.elements = kElements;
    metadata.skipped_checkpoint = skipped;
    ASSERT_TRUE(transport_.Push(kName, metadata, AsBytes(std::span<const float>(values_))).ok());
    EXPECT_EQ(transport_.Pull(kName, kElements)->header.skips_checkpoint, skipped == 8) << skipped;
  }
}

TEST_F(StoreTransportTest, NormsAreOneDoubleABlock) {
  const Range elements = {0, 2 * kDefaultBlockElements + 1};
  const ExchangeObjectName name = {ObjectKind::kNorms, 7, 2, 0, 0};
  const std::vector<double> norms = {1.5, 2.5, 3.5};
  TransferMetadata metadata;
  metadata.elements = elements;
  ASSERT_TRUE(transport_.Push(name, metadata, std::as_bytes(std::span(norms))).ok());
  const ReceivedObject received = transport_.Pull(name, elements).value();
  EXPECT_TRUE(std::ranges::equal(received.values<double>(), norms));
}

TEST_F(StoreTransportTest, APullWaitsForItsObject) {
  int asked = 0;
  store_.SetScript([&](StoreOperation operation, std::string_view, bool done) {
    if (operation == StoreOperation::kGet && !done && ++asked == 20) {
      EXPECT_TRUE(PushExample(transport_).ok());
    }
    return OkStatus();
  });
  EXPECT_TRUE(transport_.Pull(kName, kElements).ok());
  EXPECT_EQ(asked, 20);
  EXPECT_GT(time_.clock.Now(), Instant{});
}

TEST_F(StoreTransportTest, WhatNeverComesIsReportedByNameAtTheDeadline) {
  const Status status = transport_.Pull(kName, kElements).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(),
              HasSubstr("gradient of iteration 7, shard 2, from server layer 1 index 3"));
  EXPECT_THAT(status.message(), HasSubstr("p/x/r2.i4/7/g1/s2/3"));
  EXPECT_NEAR(ToSeconds(time_.clock.Now().time_since_epoch()), 100, 1);
}

TEST_F(StoreTransportTest, AnAbortEndsAPull) {
  interrupt_.Abort();
  EXPECT_EQ(transport_.Pull(kName, kElements).status().code(), StatusCode::kCancelled);
}

TEST_F(StoreTransportTest, ATornReadIsFetchedAgain) {
  ASSERT_TRUE(PushExample(transport_).ok());
  const std::string key = "p/x/r2.i4/7/g1/s2/3";
  const Bytes whole = memory_.Get(key).value();
  for (const size_t size : {size_t{0}, size_t{100}, kObjectHeaderBytes, whole.size() - 1}) {
    ASSERT_TRUE(memory_.Put(key, ByteView(whole).first(size)).ok());
    int asked = 0;
    store_.SetScript([&](StoreOperation, std::string_view, bool done) {
      if (!done && ++asked == 3) {
        EXPECT_TRUE(memory_.Put(key, whole).ok());
      }
      return OkStatus();
    });
    EXPECT_TRUE(transport_.Pull(kName, kElements).ok()) << size;
    EXPECT_EQ(asked, 3);
  }
}

// Every way in which the object under the key can be another one than asked for.
struct Wrong {
  const char* what;
  std::function<void(ObjectHeader&)> change;
};

class WrongObject : public StoreTransportTest, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongObject, IsNeverUsedAndReportedInTheEnd) {
  ASSERT_TRUE(PushExample(transport_).ok());
  const std::string key = "p/x/r2.i4/7/g1/s2/3";
  Bytes bytes = memory_.Get(key).value();
  ObjectHeader header = DecodeHeader(bytes).value();
  GetParam().change(header);
  EncodeHeader(header, bytes);  // with a valid checksum
  ASSERT_TRUE(memory_.Put(key, bytes).ok());
  int asked = 0;
  store_.SetScript([&](StoreOperation, std::string_view, bool done) {
    if (!done) ++asked;
    return OkStatus();
  });
  const Status status = transport_.Pull(kName, kElements).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(key));
  EXPECT_EQ(asked, kMaxWrongFetches);
}

INSTANTIATE_TEST_SUITE_P(
    Each, WrongObject,
    testing::Values(Wrong{"job", [](ObjectHeader& h) { h.job ^= 1; }},
                    Wrong{"revision", [](ObjectHeader& h) { h.plan_revision = 1; }},
                    Wrong{"incarnation", [](ObjectHeader& h) { h.incarnation = 3; }},
                    Wrong{"iteration", [](ObjectHeader& h) { h.iteration = 6; }},
                    Wrong{"kind", [](ObjectHeader& h) { h.kind = ObjectKind::kWeights; }},
                    Wrong{"shard", [](ObjectHeader& h) { h.shard = 1; }},
                    Wrong{"layer", [](ObjectHeader& h) { h.layer = 0; }},
                    Wrong{"rank", [](ObjectHeader& h) { h.rank = 2; }},
                    Wrong{"elements", [](ObjectHeader& h) { h.elements.begin = 0; }},
                    Wrong{"length", [](ObjectHeader& h) { h.payload_bytes = 36; }},
                    Wrong{"checksum", [](ObjectHeader& h) { h.payload_xxh3 ^= 1; }}),
    [](const auto& test) { return std::string(test.param.what); });

// Gives hints at the given times.
class HintingStore final : public BorrowedStore {
 public:
  HintingStore(VirtualRuntime& time, ObjectStore& inner) : BorrowedStore(inner), time_(time) {}

  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    ++asked_;
    if (before_get_) before_get_();
    return BorrowedStore::Get(key, range);
  }
  std::unique_ptr<ArrivalWatch> Watch(std::string_view) override {
    return std::make_unique<ScriptedWatch>(*this);
  }

  std::vector<Duration> hints_;        // ascending, since the clock's begin
  std::function<void()> before_hint_;  // what the hint is about
  std::function<void()> before_get_;
  int asked_ = 0;

 private:
  class ScriptedWatch final : public ArrivalWatch {
   public:
    explicit ScriptedWatch(HintingStore& store) : store_(store) {}
    bool Wait(Duration at_most) override {
      const Duration now = store_.time_.clock.Now().time_since_epoch();
      if (next_ == store_.hints_.size() || store_.hints_[next_] > now + at_most) {
        store_.time_.clock.SleepFor(at_most);
        return false;
      }
      store_.time_.clock.SleepFor(store_.hints_[next_++] - now);
      if (store_.before_hint_) store_.before_hint_();
      return true;
    }

   private:
    HintingStore& store_;
    size_t next_ = 0;
  };

  VirtualRuntime& time_;
};

class HintedPull : public StoreTransportTest {
 protected:
  HintingStore hinting_{time_, memory_};
  Interrupt patient_{time_.runtime, time_.clock.Now() + kMaxPollWait};
  StoreTransport hinted_{time_.runtime, hinting_, patient_,
                         {"p", 2, 4},   "uid",    kDefaultBlockElements};
};

TEST_F(HintedPull, FindsTheObjectWhenItComesWithOneMiss) {
  hinting_.hints_ = {FromSeconds(0.0031)};
  hinting_.before_hint_ = [&] { EXPECT_TRUE(PushExample(transport_).ok()); };
  ASSERT_TRUE(hinted_.Pull(kName, kElements).ok());
  EXPECT_EQ(hinting_.asked_, 2);
  EXPECT_EQ(time_.clock.Now().time_since_epoch(), FromSeconds(0.0031));
}

TEST_F(HintedPull, AsksNowAndThenForAnObjectThatComesWithoutAHint) {
  hinting_.before_get_ = [&] {
    if (hinting_.asked_ != 6) return;
    EXPECT_TRUE(PushExample(transport_).ok());
  };
  EXPECT_TRUE(hinted_.Pull(kName, kElements).ok());
  EXPECT_EQ(hinting_.asked_, 6);
}

TEST_F(HintedPull, VainHintsDoNotBreakTheBoundOfMisses) {
  for (const double first : {0.0, 1e-4, 0.01, 1.0, 60.0}) {
    hinting_.asked_ = 0;
    hinting_.hints_.clear();
    const Duration now = time_.clock.Now().time_since_epoch();
    for (int i = 0; i < 1000; ++i) {
      hinting_.hints_.push_back(now + FromSeconds(first + i * 1e-4));
    }
    Interrupt interrupt(time_.runtime, time_.clock.Now() + kMaxPollWait);
    StoreTransport transport(time_.runtime, hinting_, interrupt, {"p", 2, 4}, "uid",
                             kDefaultBlockElements);
    EXPECT_EQ(transport.Pull(kName, kElements).status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_LE(hinting_.asked_, kMaxMissesPerObject) << first;
    EXPECT_GT(hinting_.asked_, 10) << first;
  }
}

TEST_F(HintedPull, AnAbortEndsTheWaitForAHint) {
  hinting_.hints_ = {FromSeconds(0.5)};
  hinting_.before_hint_ = [&] { patient_.Abort(); };
  EXPECT_EQ(hinted_.Pull(kName, kElements).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(time_.clock.Now().time_since_epoch(), FromSeconds(0.5));
}

// However many objects are waited for.
TEST(StorePulls, AskForSoManyObjectsAtOnce) {
  SystemRuntime runtime;
  MemoryObjectStore memory;
  FaultyObjectStore store(memory, runtime, StoreFaults{});
  std::atomic<int> asking{0};
  std::atomic<int> most{0};
  store.SetScript([&](StoreOperation operation, std::string_view, bool done) {
    if (operation != StoreOperation::kGet) return OkStatus();
    if (done) {
      --asking;
    } else {
      const int now = ++asking;
      int before = most;
      while (before < now && !most.compare_exchange_weak(before, now)) continue;
      runtime.clock.SleepFor(std::chrono::milliseconds(20));
    }
    return OkStatus();
  });
  Interrupt interrupt(runtime, runtime.clock.Now() + std::chrono::seconds(60));
  StoreTransport transport(runtime, store, interrupt, {"p", 2, 4}, "uid", kDefaultBlockElements);
  std::vector<ExchangeObjectName> names(kWaitingPulls, kName);
  std::vector<std::unique_ptr<Task>> pulls;
  for (int i = 0; i < kWaitingPulls; ++i) {
    names[static_cast<size_t>(i)].index = i;
    pulls.push_back(runtime.executor.Spawn("pull", [&, i] {
      EXPECT_TRUE(transport.Pull(names[static_cast<size_t>(i)], kElements).ok());
    }));
  }
  const std::vector<float> values(10);
  for (const ExchangeObjectName& name : names) {
    TransferMetadata metadata;
    metadata.elements = kElements;
    EXPECT_TRUE(transport.Push(name, metadata, AsBytes(std::span<const float>(values))).ok());
  }
  pulls.clear();  // joins
  EXPECT_EQ(most, kTransferThreads);
}

TEST_F(StoreTransportTest, DiscardDeletesExactlyTheNamed) {
  ASSERT_TRUE(PushExample(transport_).ok());
  ExchangeObjectName other = kName;
  other.index = 4;
  EXPECT_TRUE(transport_.Discard(std::span(&other, 1)).ok());
  EXPECT_TRUE(memory_.Get("p/x/r2.i4/7/g1/s2/3").ok());
  EXPECT_TRUE(transport_.Discard(std::span(&kName, 1)).ok());
  EXPECT_EQ(ListAll(memory_, "").value().size(), 0u);
}

}  // namespace
}  // namespace lambdadnn
