// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/pod_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/backends/kubernetes/pods_fixture.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class PodIndexTest : public OfPods {};

TEST_F(PodIndexTest, SaysWhyItKnowsNothingYet) {
  refusal_ = PermissionDeniedError("may not list pods");
  Start();
  EXPECT_EQ(pods_->CheckSynced().code(), StatusCode::kUnavailable);
  EXPECT_THAT(pods_->CheckSynced().message(), testing::HasSubstr("may not list pods"));
  refusal_ = OkStatus();
  RunFor(60);
  EXPECT_TRUE(pods_->CheckSynced().ok());
}

TEST_F(PodIndexTest, FindsPodsByJobGroupAndInstance) {
  Start();
  const Json first = MakePod("a", "job-1");
  MakePod("b", "job-2");
  EXPECT_THAT(pods_->PodsOf(Job("job-1"), ""), SizeIs(1));
  EXPECT_THAT(pods_->PodsOf(Job("job-1"), "workers"), SizeIs(1));
  EXPECT_THAT(pods_->PodsOf(Job("job-1"), "servers"), IsEmpty());
  EXPECT_THAT(pods_->PodsOf(Job("job-3"), ""), IsEmpty());
  ASSERT_NE(pods_->PodOf(Job("job-1"), UidOf(first) + ".0"), nullptr);
  EXPECT_EQ(pods_->PodOf(Job("job-2"), UidOf(first) + ".0"), nullptr);
}

TEST_F(PodIndexTest, PodsOfAUsersMakingAreNoFunctions) {
  Start();
  MakePod("by-hand", "job-1", false);
  MakePod("elsewhere", "job-1", true, "other");
  EXPECT_THAT(pods_->PodsOf(Job("job-1"), ""), IsEmpty());
}

TEST_F(PodIndexTest, APodThatIsGoneIsForgottenAndThenTold) {
  Start();
  MakePod("a", "job-1");
  const ObjectName name{"team", "a"};
  EXPECT_TRUE(pods_->Knows(name));
  EXPECT_THAT(gone_, IsEmpty());
  DeletePod("a");
  EXPECT_FALSE(pods_->Knows(name));
  EXPECT_EQ(pods_->Get(name), nullptr);
  EXPECT_THAT(gone_, ElementsAre(name));
}

TEST_F(PodIndexTest, ADeletedPodIsOverdueAMinuteAfterItsGrace) {
  Start();
  MakePod("a", "job-1");
  Do([&] {
    const Json held = {{"metadata", {{"finalizers", {"test/kubelet"}}}}};
    ASSERT_TRUE(server_.Patch(PodType(), {"team", "a"}, held, Subresource::kNone).ok());
  });
  EXPECT_FALSE(pods_->IsOverdue(*pods_->Get({"team", "a"})));
  DeletePod("a");
  const auto deleted = pods_->Get({"team", "a"});
  ASSERT_NE(deleted, nullptr);
  EXPECT_FALSE(pods_->IsOverdue(*deleted));
  RunFor(55);
  EXPECT_FALSE(pods_->IsOverdue(*deleted));
  RunFor(60);
  EXPECT_TRUE(pods_->IsOverdue(*deleted));
}

}  // namespace
}  // namespace lambdadnn
