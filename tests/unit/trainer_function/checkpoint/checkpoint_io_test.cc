// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/checkpoint/checkpoint_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/objectstore/memory_object_store.h"
#include "common/protocol/object_header.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/virtual_runtime.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr int64_t kParameters = 4 * kDefaultBlockElements + 100;

class CheckpointIo : public testing::Test {
 protected:
  CheckpointIo() {
    request_.job.uid = "uid";
    request_.store.prefix = "p";
    request_.plan.parameters = kParameters;
    request_.plan.aggregation.shards = 3;
    request_.checkpoint_keep = 2;
  }

  static ParameterState Example(int64_t version) {
    ParameterState state = ParameterState::Zero({0, kParameters}, 2);
    for (size_t i = 0; i < state.weights.size(); ++i) {
      state.weights[i] = static_cast<float>(version) + static_cast<float>(i);
      state.vectors[0][i] = -state.weights[i];
      state.vectors[1][i] = state.weights[i] * 2;
    }
    return state;
  }

  Range Shard(int shard) const {
    return ShardRange(request_.plan.blocks(), request_.plan.aggregation.shards, shard);
  }
  Status WriteParts(int64_t iteration) {
    const ParameterState state = Example(iteration);
    for (int shard = 0; shard < request_.plan.aggregation.shards; ++shard)
      LDNN_RETURN_IF_ERROR(WriteCheckpointPart(context_, iteration, shard, Shard(shard), state));
    return OkStatus();
  }
  Status WriteAll(int64_t iteration) {
    LDNN_RETURN_IF_ERROR(WriteParts(iteration));
    return CompleteCheckpoint(context_, iteration, CheckpointManifest{});
  }
  Status Read(const CheckpointReference& reference, ParameterState* state) {
    LDNN_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(store_, reference));
    return ReadCheckpoint(store_, reference, manifest, state);
  }
  std::vector<int64_t> Iterations() {
    std::vector<int64_t> iterations;
    const auto found = ListCheckpoints(memory_, "p").value();
    for (const auto& reference : found) iterations.push_back(reference.iteration);
    return iterations;
  }

  VirtualRuntime time_;
  MemoryObjectStore memory_;
  FaultyObjectStore store_{memory_, time_.runtime, StoreFaults{}};
  Interrupt interrupt_{time_.runtime, time_.clock.Now() + std::chrono::seconds(100)};
  SliceRequest request_;
  PhaseMeter phases_{time_.clock, {}, {}};
  RoleContext context_{time_.runtime, store_, interrupt_, request_, nullptr,
                       nullptr,       [] {},  phases_,    {}};
};

TEST_F(CheckpointIo, EveryRangeIsRestoredFromPartsThatWereCutOtherwise) {
  ASSERT_TRUE(WriteAll(10).ok());
  const ParameterState whole = Example(10);
  for (const Range range : {Range{0, kParameters}, Range{0, 1}, Range{kParameters - 1, kParameters},
                            Range{kDefaultBlockElements - 5, 3 * kDefaultBlockElements + 5}}) {
    ParameterState state = ParameterState::Zero(range, 2);
    ASSERT_TRUE(Read(CheckpointAt(request_, 10), &state).ok());
    for (int64_t i = range.begin; i < range.end; ++i) {
      const auto from = static_cast<size_t>(i);
      const auto to = static_cast<size_t>(i - range.begin);
      ASSERT_EQ(state.weights[to], whole.weights[from]);
      ASSERT_EQ(state.vectors[0][to], whole.vectors[0][from]);
      ASSERT_EQ(state.vectors[1][to], whole.vectors[1][from]);
    }
  }
}

TEST_F(CheckpointIo, WeightsAloneAreReadWithoutTheState) {
  ASSERT_TRUE(WriteAll(10).ok());
  ParameterState state = ParameterState::Zero({0, kParameters}, 0);
  const auto manifest = ReadManifest(memory_, CheckpointAt(request_, 10)).value();
  uint64_t asked = 0;
  store_.SetScript([&](StoreOperation operation, std::string_view, bool done) {
    if (operation == StoreOperation::kGet && !done) ++asked;
    return OkStatus();
  });
  ASSERT_TRUE(ReadCheckpoint(store_, CheckpointAt(request_, 10), manifest, &state).ok());
  EXPECT_EQ(state.weights, Example(10).weights);
  EXPECT_EQ(asked, 3u);
}

TEST_F(CheckpointIo, WithoutAllPartsThereIsNoManifest) {
  const ParameterState state = Example(10);
  ASSERT_TRUE(WriteCheckpointPart(context_, 10, 0, Shard(0), state).ok());
  ASSERT_TRUE(WriteCheckpointPart(context_, 10, 2, Shard(2), state).ok());
  EXPECT_EQ(CompleteCheckpoint(context_, 10, CheckpointManifest{}).code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(Iterations().empty());
}

TEST_F(CheckpointIo, TheManifestWaitsForTheLastPart) {
  const ParameterState state = Example(10);
  ASSERT_TRUE(WriteCheckpointPart(context_, 10, 0, Shard(0), state).ok());
  ASSERT_TRUE(WriteCheckpointPart(context_, 10, 2, Shard(2), state).ok());
  int misses = 0;
  store_.SetScript([&](StoreOperation operation, std::string_view key, bool done) {
    if (operation == StoreOperation::kGet && !done && key.ends_with("s1") && ++misses == 5) {
      RoleContext other = context_;
      EXPECT_TRUE(WriteCheckpointPart(other, 10, 1, Shard(1), state).ok());
    }
    return OkStatus();
  });
  EXPECT_TRUE(CompleteCheckpoint(context_, 10, CheckpointManifest{}).ok());
  EXPECT_EQ(Iterations(), (std::vector<int64_t>{10}));
}

TEST_F(CheckpointIo, APartOfAnotherIncarnationIsNotTaken) {
  ASSERT_TRUE(WriteParts(10).ok());
  const std::string key = CheckpointPartKey(context_.scope(), 10, 1);
  Bytes bytes = memory_.Get(key).value();
  ObjectHeader header = DecodeHeader(bytes).value();
  header.incarnation = 7;
  EncodeHeader(header, bytes);
  ASSERT_TRUE(memory_.Put(key, bytes).ok());
  EXPECT_EQ(CompleteCheckpoint(context_, 10, CheckpointManifest{}).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(Iterations().empty());
}

TEST_F(CheckpointIo, TornPartsAreDetectedOnReading) {
  ASSERT_TRUE(WriteAll(10).ok());
  const std::string key = CheckpointPartKey(context_.scope(), 10, 1);
  const Bytes whole = memory_.Get(key).value();
  // In the header, the weights, the state.
  for (const size_t at : {size_t{9}, kObjectHeaderBytes + 3, whole.size() - 1}) {
    Bytes torn = whole;
    torn[at] ^= std::byte{4};
    ASSERT_TRUE(memory_.Put(key, torn).ok());
    ParameterState state = ParameterState::Zero({0, kParameters}, 2);
    const Status status = Read(CheckpointAt(request_, 10), &state);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(key));
  }
}

TEST_F(CheckpointIo, AReadThatArrivesTornIsRepeated) {
  ASSERT_TRUE(WriteAll(10).ok());
  const std::string key = CheckpointPartKey(context_.scope(), 10, 1);
  const Bytes whole = memory_.Get(key).value();
  Bytes torn = whole;
  torn[kObjectHeaderBytes] ^= std::byte{4};
  ASSERT_TRUE(memory_.Put(key, torn).ok());
  int asked = 0;
  store_.SetScript([&](StoreOperation operation, std::string_view of, bool done) {
    if (operation == StoreOperation::kGet && done && of == key && ++asked == 1) {
      EXPECT_TRUE(memory_.Put(key, whole).ok());
    }
    return OkStatus();
  });
  ParameterState state = ParameterState::Zero({0, kParameters}, 2);
  EXPECT_TRUE(Read(CheckpointAt(request_, 10), &state).ok());
  EXPECT_EQ(asked, 2);
}

TEST_F(CheckpointIo, AnotherOptimizerOrModelIsSaid) {
  ASSERT_TRUE(WriteAll(10).ok());
  ParameterState three = ParameterState::Zero({0, kParameters}, 3);
  EXPECT_EQ(Read(CheckpointAt(request_, 10), &three).code(), StatusCode::kFailedPrecondition);
  ParameterState longer = ParameterState::Zero({0, kParameters + 1}, 0);
  EXPECT_EQ(Read(CheckpointAt(request_, 10), &longer).code(), StatusCode::kFailedPrecondition);
}

TEST_F(CheckpointIo, TheNewestAreKeptAndOlderOnesGoWhole) {
  for (const int64_t iteration : {5, 9, 10, 20}) ASSERT_TRUE(WriteAll(iteration).ok());
  EXPECT_EQ(Iterations(), (std::vector<int64_t>{20, 10}));
  EXPECT_EQ(ListAll(memory_, "p/").value().size(), 8u) << "no part is left behind";
}

TEST_F(CheckpointIo, ALateWriterDeletesNothingOfItsSuccessors) {
  request_.incarnation = 3;
  for (const int64_t iteration : {5, 9}) ASSERT_TRUE(WriteAll(iteration).ok());
  request_.incarnation = 2;  // was cut off, goes on
  for (const int64_t iteration : {10, 20, 30}) ASSERT_TRUE(WriteAll(iteration).ok());
  EXPECT_EQ(Iterations(), (std::vector<int64_t>{30, 20, 9, 5}));
}

// A fall-back to 10 says that 20 and 30 could not be read: they must not take the places of what is
// kept, nor come back.
TEST_F(CheckpointIo, WhatAnEarlierIncarnationWroteBeyondGoesAndCountsForNothing) {
  request_.checkpoint_keep = 3;
  for (const int64_t iteration : {10, 20, 30}) ASSERT_TRUE(WriteAll(iteration).ok());
  request_.checkpoint_keep = 1;
  request_.incarnation = 1;
  request_.start = CheckpointReference{"p", 10, request_.plan.revision, 0};
  ASSERT_TRUE(WriteAll(15).ok());
  EXPECT_EQ(Iterations(), (std::vector<int64_t>{15}));
}

TEST_F(CheckpointIo, TheStartIsNotDeletedUnderThoseWhoStillReadIt) {
  request_.checkpoint_keep = 2;
  ASSERT_TRUE(WriteAll(10).ok());
  request_.incarnation = 1;
  request_.start = CheckpointReference{"p", 10, request_.plan.revision, 0};
  ASSERT_TRUE(WriteAll(10).ok());
  EXPECT_EQ(Iterations(), (std::vector<int64_t>{10, 10}));
}

// Functions of plan 1 that were cut off complete 8 after plan 2 has begun at 0. If those of plan 2
// are lost, plan 3 begins at 8, also when they are only cut off and complete 9.
TEST_F(CheckpointIo, ANewPlanLeavesALaterCheckpointOfTheOldOneUntilItHasOneOfItsOwn) {
  request_.checkpoint_keep = 1;
  ASSERT_TRUE(WriteAll(8).ok());
  request_.plan.revision = 2;
  request_.incarnation = 1;
  request_.start = CheckpointReference{"p", 0, 1, 0};
  for (const int64_t iteration : {5, 9}) ASSERT_TRUE(WriteAll(iteration).ok());
  EXPECT_EQ(Iterations(), (std::vector<int64_t>{9, 8}));

  request_.incarnation = 2;
  request_.start = CheckpointReference{"p", 9, 2, 1};
  ASSERT_TRUE(WriteAll(12).ok());
  EXPECT_EQ(Iterations(), (std::vector<int64_t>{12}));
}

// The process dies before or after any operation of the store: complete or absent, never between.
TEST_F(CheckpointIo, IsCompleteOrAbsentWhereverTheWriterDies) {
  ASSERT_TRUE(WriteAll(10).ok());
  ASSERT_TRUE(WriteAll(20).ok());
  int64_t complete = 0;
  for (int die_at = 0;; ++die_at) {
    int operation = 0;
    bool died = false;
    store_.SetScript([&](StoreOperation, std::string_view, bool) -> Status {
      died = died || operation++ >= die_at;
      return died ? InternalError("dead") : OkStatus();
    });
    const bool survived = WriteAll(30).ok();
    store_.SetScript(nullptr);
    const auto newest = FindNewestCheckpoint(memory_, "p").value();
    ASSERT_TRUE(newest.has_value());
    ParameterState state = ParameterState::Zero({0, kParameters}, 2);
    ASSERT_TRUE(Read(*newest, &state).ok()) << die_at;
    EXPECT_EQ(state.weights, Example(newest->iteration).weights);
    if (newest->iteration == 30) ++complete;
    if (survived) break;
    // As before, for the next place.
    ASSERT_TRUE(DeletePrefix(memory_, "p/checkpoints/30/").ok());
    ASSERT_TRUE(WriteAll(10).ok());
  }
  EXPECT_GT(complete, 1) << "some deaths came after the manifest";
}

}  // namespace
}  // namespace lambdadnn
