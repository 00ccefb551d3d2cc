// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/collective/stop_agreement.h"

#include <gtest/gtest.h>

#include "trainer_function/transport/exchange_codec.h"

namespace lambdadnn {
namespace {

// What `from` writes of an iteration, or of the version of its weights, `to` reads.
void Pass(const StopAgreement& from, StopAgreement& to, int64_t iteration = 1) {
  TransferMetadata metadata;
  from.Mark(&metadata);
  const ExchangeCodec codec({"p", 1, 0}, "uid", 16);
  const ExchangeObjectName name = {ObjectKind::kGradient, iteration, 0, 0, 0};
  to.Observe(codec.HeaderOf(name, metadata, {}));
}

TEST(StopAgreement, WithoutARequestThePlanEnds) {
  StopAgreement root(100, 0);
  root.Answer(5);
  EXPECT_EQ(root.end(), 100);
  EXPECT_TRUE(root.is_final());
}

TEST(StopAgreement, ARequestIsAnsweredOneIterationAhead) {
  StopAgreement worker(100, 0);
  StopAgreement root(100, 0);
  StopAgreement leaf(100, 0);
  worker.Request();
  Pass(worker, leaf);  // gradient of iteration 4
  EXPECT_TRUE(leaf.requested());
  Pass(leaf, root);
  EXPECT_EQ(root.end(), 100) << "only the root of shard 0 decides";
  root.Answer(5);      // publishes version 5
  Pass(root, worker);  // worker works on iteration 5
  Pass(worker, leaf);
  for (const StopAgreement* role : {&worker, &root, &leaf}) {
    EXPECT_EQ(role->end(), 6);
    EXPECT_FALSE(role->is_final());
  }
  root.Answer(6);
  EXPECT_EQ(root.end(), 6) << "an answer stands";
}

TEST(StopAgreement, TheTrainingsEndIsFinal) {
  StopAgreement root(100, 0);
  StopAgreement worker(100, 0);
  root.Finish(10);
  root.Request();
  root.Answer(10);
  Pass(root, worker);
  EXPECT_EQ(worker.end(), 11);
  EXPECT_TRUE(worker.is_final());
}

TEST(StopAgreement, ASliceThatEndsBeforeTheTrainingsEndHandsItOn) {
  StopAgreement root(100, 0);
  root.Request();
  root.Answer(9);   // stops at 10
  root.Finish(10);  // the loss of iteration 9 is low enough: over at 11
  EXPECT_EQ(root.end(), 10);
  EXPECT_FALSE(root.is_final());
  EXPECT_EQ(root.pending_stop(), 11);
  StopAgreement next(100, root.pending_stop());  // through the manifest
  EXPECT_EQ(next.end(), 11);
  EXPECT_TRUE(next.is_final());
}

TEST(StopAgreement, ASkippedCheckpointIsKnownToAllRootsBeforeItsVersionIsMade) {
  StopAgreement leader(100, 0);
  StopAgreement worker(100, 0);
  StopAgreement leaf(100, 0);
  StopAgreement root(100, 0);
  const auto round = [&](int64_t version) {
    Pass(leader, worker, version);  // weights
    Pass(worker, leaf, version);    // gradients of the iteration that reads them
    Pass(leaf, root, version);
  };
  leader.SkipCheckpoint(5);
  EXPECT_TRUE(leader.skips_checkpoint(6));
  round(5);
  for (const StopAgreement* role : {&worker, &leaf, &root}) {
    EXPECT_TRUE(role->skips_checkpoint(6));
    EXPECT_FALSE(role->skips_checkpoint(5));
    EXPECT_FALSE(role->skips_checkpoint(7));
  }
  round(6);
  EXPECT_TRUE(root.skips_checkpoint(6));
  EXPECT_FALSE(root.skips_checkpoint(7)) << "each version is told of anew";
  leader.SkipCheckpoint(7);
  round(7);
  EXPECT_TRUE(root.skips_checkpoint(8));
  EXPECT_EQ(root.end(), 100);
}

TEST(StopAgreement, TheLastIterationIsAnEndAsWell) {
  StopAgreement root(100, 0);
  root.Request();
  root.Answer(100);
  EXPECT_EQ(root.end(), 100);
  EXPECT_TRUE(root.is_final());
}

}  // namespace
}  // namespace lambdadnn
