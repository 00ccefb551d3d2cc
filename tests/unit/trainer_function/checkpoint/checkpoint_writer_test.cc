// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/checkpoint/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/objectstore/memory_object_store.h"
#include "tests/support/borrowed_store.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/gate.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr int kShards = 3;
constexpr int64_t kElements = 3 * kDefaultBlockElements;

// Keeps where in memory parts of checkpoints lie when they are written.
class PlacesOfParts final : public BorrowedStore {
 public:
  using BorrowedStore::BorrowedStore;
  using BorrowedStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override {
    if (parts.size() > 1) {
      const std::lock_guard lock(mutex_);
      for (const ByteView part : parts.subspan(1)) places_.insert(part.data());
    }
    return BorrowedStore::Put(key, parts, options);
  }
  std::set<const std::byte*> places() {
    const std::lock_guard lock(mutex_);
    return places_;
  }

 private:
  std::mutex mutex_;
  std::set<const std::byte*> places_;
};

class CheckpointWriterTest : public testing::Test {
 protected:
  CheckpointWriterTest() {
    request_.job.uid = "uid";
    request_.store.prefix = "p";
    request_.plan.parameters = kElements;
    request_.plan.aggregation.shards = kShards;
    request_.checkpoint_keep = 10;
    Fill(0);
  }

  // What iterations do to the state.
  void Fill(float value) {
    for (float& weight : state_.weights) weight = value;
    for (float& momentum : state_.vectors[0]) momentum = -value;
  }
  // The value that Fill had for all of the checkpoint's elements; -1 = there is no such checkpoint.
  float Written(int64_t iteration) {
    const CheckpointReference reference = CheckpointAt(request_, iteration);
    const auto manifest = ReadManifest(memory_, reference);
    if (!manifest.ok()) return -1;
    ParameterState read = ParameterState::Zero({0, kElements}, 1);
    if (!ReadCheckpoint(memory_, reference, *manifest, &read).ok()) return -1;
    for (size_t i = 0; i < read.weights.size(); ++i) {
      if (read.weights[i] != read.weights[0] || read.vectors[0][i] != -read.weights[0]) return -1;
    }
    return read.weights[0];
  }
  // Every write of a checkpoint, in order, and what of it `hold` says waits for the gate.
  void WatchWrites(std::function<bool(std::string_view key)> hold) {
    store_.SetScript(
        [this, hold = std::move(hold)](StoreOperation operation, std::string_view key, bool done) {
          if (operation != StoreOperation::kPut) return OkStatus();
          if (!done && hold(key)) {
            EXPECT_TRUE(gate_.Pass()) << key;
          }
          const std::lock_guard lock(mutex_);
          if (done) written_.emplace_back(key);
          return OkStatus();
        });
  }
  std::vector<std::string> written() {
    const std::lock_guard lock(mutex_);
    return written_;
  }

  SystemClock clock_;
  ThreadExecutor executor_;
  SeededRandom random_{1};
  Runtime runtime_{clock_, executor_, random_};
  MemoryObjectStore memory_;
  PlacesOfParts places_{memory_};
  FaultyObjectStore store_{places_, runtime_, StoreFaults{}};
  Interrupt interrupt_{runtime_, clock_.Now() + std::chrono::seconds(60)};
  SliceRequest request_;
  PhaseMeter phases_{clock_, {}, {}};
  RoleContext context_{runtime_, store_, interrupt_, request_, nullptr,
                       nullptr,  [] {},  phases_,    {}};
  ParameterState state_ = ParameterState::Zero({0, kElements}, 1);
  Gate gate_;
  std::mutex mutex_;
  std::vector<std::string> written_;
};

TEST_F(CheckpointWriterTest, WhatIsWrittenIsTheStateAtTheEdge) {
  WatchWrites([](std::string_view) { return true; });
  CheckpointWriter writer(context_, {0, kShards}, state_);
  EXPECT_FALSE(writer.busy());
  Fill(1);
  ASSERT_TRUE(writer.Begin(10, state_).ok());
  writer.Complete({});
  // Iterations go on.
  for (const int value : {2, 3, 4}) Fill(static_cast<float>(value));
  EXPECT_TRUE(writer.busy());
  EXPECT_EQ(writer.completed(), -1);
  EXPECT_TRUE(written().empty());
  gate_.Open();
  ASSERT_TRUE(writer.Wait().ok());
  EXPECT_FALSE(writer.busy());
  EXPECT_EQ(writer.completed(), 10);
  EXPECT_GT(writer.longest_seconds(), 0);
  EXPECT_EQ(Written(10), 1);
}

TEST_F(CheckpointWriterTest, PartsAreWrittenAtOnceAndTheManifestAfterThem) {
  std::atomic<int> begun{0};
  Gate all;
  WatchWrites([&](std::string_view key) {
    if (key.ends_with(".json")) return false;
    // Each part waits until the others have begun.
    if (++begun == kShards) all.Open();
    EXPECT_TRUE(all.Pass());
    return false;
  });
  CheckpointWriter writer(context_, {0, kShards}, state_);
  ASSERT_TRUE(writer.Begin(10, state_).ok());
  writer.Complete({});
  ASSERT_TRUE(writer.Wait().ok());
  ASSERT_EQ(written().size(), kShards + 1u);
  EXPECT_THAT(written().back(), HasSubstr("manifest.json"));
}

TEST_F(CheckpointWriterTest, OneIsWrittenAtATimeInOneBufferThatIsKept) {
  WatchWrites([](std::string_view key) { return key.find("/10/") != std::string_view::npos; });
  CheckpointWriter writer(context_, {0, kShards}, state_);
  Fill(1);
  ASSERT_TRUE(writer.Begin(10, state_).ok());
  writer.Complete({});
  Fill(2);
  // The next one waits for the first.
  const auto next = executor_.Spawn("next", [&] {
    EXPECT_TRUE(writer.Begin(20, state_).ok());
    writer.Complete({});
    EXPECT_TRUE(writer.Wait().ok());
  });
  EXPECT_TRUE(written().empty());
  gate_.Open();
  next->Join();
  EXPECT_EQ(Written(10), 1);
  EXPECT_EQ(Written(20), 2);
  ASSERT_EQ(written().size(), 2u * (kShards + 1));
  for (int i = 0; i < 2 * (kShards + 1); ++i) {
    EXPECT_THAT(written()[static_cast<size_t>(i)], HasSubstr(i <= kShards ? "/10/" : "/20/"));
  }
  EXPECT_EQ(places_.places().size(), 2u * kShards) << "weights and momentum of each shard, once";
  EXPECT_FALSE(places_.places().contains(AsBytes(std::span<const float>(state_.weights)).data()));
}

TEST_F(CheckpointWriterTest, AFailedWriteIsToldAndLeavesNoCheckpoint) {
  for (const char* const what : {"s1", "manifest.json"}) {
    store_.SetScript([what](StoreOperation operation, std::string_view key, bool done) {
      const bool fails = operation == StoreOperation::kPut && !done && key.ends_with(what);
      return fails ? PermissionDeniedError("not allowed") : OkStatus();
    });
    CheckpointWriter writer(context_, {0, kShards}, state_);
    ASSERT_TRUE(writer.Begin(10, state_).ok());
    writer.Complete({});
    const Status failed = writer.Wait();
    EXPECT_EQ(failed.code(), StatusCode::kPermissionDenied) << what;
    EXPECT_THAT(failed.message(), HasSubstr("writing checkpoint "));
    EXPECT_THAT(failed.message(), HasSubstr(what));
    EXPECT_EQ(writer.Check(), failed) << what;
    EXPECT_EQ(writer.Begin(20, state_), failed) << what;
    EXPECT_EQ(writer.completed(), -1) << what;
    EXPECT_EQ(Written(10), -1) << what;
  }
}

TEST_F(CheckpointWriterTest, CheckingDoesNotWait) {
  WatchWrites([](std::string_view) { return true; });
  CheckpointWriter writer(context_, {0, kShards}, state_);
  ASSERT_TRUE(writer.Begin(10, state_).ok());
  EXPECT_TRUE(writer.Check().ok());
  EXPECT_TRUE(writer.busy());
  gate_.Open();
  EXPECT_TRUE(writer.Wait().ok());
  EXPECT_EQ(Written(10), -1) << "a root that does not lead writes no manifest";
}

// A slice that is aborted does not wait for the parts of roots that are gone.
TEST_F(CheckpointWriterTest, AnAbortEndsTheWaitForPartsOfOthers) {
  CheckpointWriter writer(context_, {0, 1}, state_);
  ASSERT_TRUE(writer.Begin(10, state_).ok());
  writer.Complete({});
  interrupt_.Abort();
  EXPECT_EQ(writer.Wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(Written(10), -1);
}

}  // namespace
}  // namespace lambdadnn
