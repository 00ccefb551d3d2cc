// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/peers_condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

// A job that runs, with slices of two workers.
class PeersConditionTest : public testing::Test {
 protected:
  PeersConditionTest() {
    snapshot_.observed.instances_known = true;
    status_.phase = "Running";
    status_.plan.emplace();
  }
  void Tell(const std::string& worker, std::optional<int64_t> unreached) {
    FunctionInstance& instance = snapshot_.observed.instances[worker].instance;
    instance.uid = worker;
    instance.peer_address = "10.0.0.7:8444";
    SliceFact& slice = snapshot_.observed.slices[worker];
    slice.instance_uid = worker;
    slice.last.emplace().unreached_peers = unreached;
  }
  std::optional<Condition> Now() { return PeersConditionOf(snapshot_, status_); }

  TestSnapshot snapshot_;
  JobStatus status_;
};

TEST_F(PeersConditionTest, WhereAllReachEachOtherThereIsNothingToSay) {
  EXPECT_FALSE(Now().has_value());
  Tell("a", std::nullopt);
  EXPECT_FALSE(Now().has_value()) << "they have just begun";
  Tell("a", 0);
  Tell("b", 0);
  EXPECT_FALSE(Now().has_value());
}

TEST_F(PeersConditionTest, WhoDoesNotReachOthersIsTold) {
  Tell("a", 3);
  Tell("b", 0);
  const Condition condition = Now().value();
  EXPECT_EQ(condition.status, "False");
  EXPECT_EQ(condition.reason, "PeersUnreachable");
  EXPECT_THAT(condition.message, HasSubstr("1 of 2 functions do not reach 3 others at port 8444"));
}

TEST_F(PeersConditionTest, AnEndOfThatIsToldOnce) {
  Tell("a", 1);
  status_.conditions = {Now().value()};
  Tell("a", std::nullopt);
  EXPECT_FALSE(Now().has_value()) << "a new slice has not told yet";
  Tell("a", 0);
  const Condition condition = Now().value();
  EXPECT_EQ(condition.status, "True");
  EXPECT_EQ(condition.reason, "PeersConnected");
}

TEST_F(PeersConditionTest, SlicesThatCannotRunAnyMoreDoNotCount) {
  Tell("a", 1);
  snapshot_.observed.instances["a"].gone.emplace();
  EXPECT_FALSE(Now().has_value());
}

TEST_F(PeersConditionTest, FunctionsWhoseAddressIsNotKnownAreTold) {
  Tell("a", std::nullopt);
  Tell("b", std::nullopt);
  snapshot_.observed.instances["b"].instance.peer_address.clear();
  const Condition condition = Now().value();
  EXPECT_EQ(condition.status, "False");
  EXPECT_EQ(condition.reason, "PeerChannelOff");
  EXPECT_THAT(condition.message,
              HasSubstr("functions whose address is not known: 1 (the operator may not read"));
}

TEST_F(PeersConditionTest, TheSpecMayRuleItOut) {
  snapshot_.job.spec.peer_channel = PeerChannelMode::kNone;
  EXPECT_EQ(Now()->reason, "PeerChannelOff");
  EXPECT_THAT(Now()->message, HasSubstr("spec.peerChannel is None"));
  snapshot_.job.spec.peer_channel = PeerChannelMode::kTls;
  snapshot_.job.spec.addressing = Addressing::kService;
  EXPECT_EQ(Now()->status, "False");
  EXPECT_THAT(Now()->message, HasSubstr("spec.addressing Service"));
  status_.phase = "Starting";
  EXPECT_FALSE(Now().has_value()) << "nothing runs";
}

}  // namespace
}  // namespace lambdadnn
