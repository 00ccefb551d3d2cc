// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/collective/stop_agreement.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

// What `from` writes, `to` reads.
void Pass(const StopAgreement& from, StopAgreement& to) {
  TransferMetadata metadata;
  from.Mark(&metadata);
  ObjectHeader header;
  header.stop_at = metadata.stop_at;
  header.stop_is_final = metadata.stop_is_final;
  to.Observe(header);
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

TEST(StopAgreement, TheLastIterationIsAnEndAsWell) {
  StopAgreement root(100, 0);
  root.Request();
  root.Answer(100);
  EXPECT_EQ(root.end(), 100);
  EXPECT_TRUE(root.is_final());
}

}  // namespace
}  // namespace lambdadnn
