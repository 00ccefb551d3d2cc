// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/pending_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PendingFunctions : public testing::Test {
 protected:
  void Add(const std::string& group, FunctionPhase phase, const std::string& reason,
           const std::string& message = "") {
    InstanceFact fact;
    fact.instance.uid = std::to_string(observed_.instances.size());
    fact.instance.group = group;
    fact.instance.phase = phase;
    fact.instance.reason = reason;
    fact.instance.message = message;
    observed_.instances[fact.instance.uid] = fact;
  }
  // Since so many seconds.
  void AddUnreachable(const std::string& group, const Status& error, double seconds) {
    Add(group, FunctionPhase::kReady, "");
    InstanceFact& fact = observed_.instances.rbegin()->second;
    fact.instance.name = "pod-" + fact.instance.uid;
    fact.unreachable = error;
    fact.unreachable_since = now_ - FromSeconds(seconds);
  }
  std::optional<PendingObstacle> Unreachable() {
    return FindUnreachable(observed_, {workers_, servers_}, now_);
  }
  std::optional<PendingObstacle> Found() {
    return FindPendingObstacle(observed_, {workers_, servers_});
  }

  const std::string workers_ = WorkersGroupName(2);
  const std::string servers_ = ServersGroupName(2);
  Observations observed_;
  const Instant now_ = Instant{} + FromSeconds(1000);
};

TEST_F(PendingFunctions, WhatJustTakesItsTimeIsNoObstacle) {
  EXPECT_EQ(Found(), std::nullopt);
  Add(workers_, FunctionPhase::kPending, "");
  Add(workers_, FunctionPhase::kPending, "SomethingNew", "of a later platform");
  Add(workers_, FunctionPhase::kReady, "");
  EXPECT_EQ(Found(), std::nullopt);
}

TEST_F(PendingFunctions, TheKubeletsWordsAreMappedWithTheNextStep) {
  const struct {
    const char* said;
    const char* message;
    const char* reason;
    const char* next;
  } cases[] = {
      {"ErrImagePull", "not found", "ImagePullFailed", "imagePullSecrets"},
      {"ImagePullBackOff", "Back-off pulling image \"x\"", "ImagePullFailed", "load the image"},
      {"InvalidImageName", "X", "ImagePullFailed", "image"},
      {"Unschedulable", "0/2 nodes are available: 2 Insufficient memory.", "Unschedulable",
       "add nodes"},
      {"CreateContainerConfigError", "secret \"k\" not found", "FunctionNotCreated", "tried again"},
  };
  for (const auto& [said, message, reason, next] : cases) {
    SCOPED_TRACE(said);
    observed_.instances.clear();
    Add(servers_, FunctionPhase::kPending, said, message);
    ASSERT_TRUE(Found().has_value());
    EXPECT_EQ(ReasonText(Found()->reason), std::string(reason));
    EXPECT_THAT(Found()->message, HasSubstr(std::string(said) + ": " + message));
    EXPECT_THAT(Found()->message, HasSubstr(next));
  }
}

TEST_F(PendingFunctions, MostOfThemDecide) {
  Add(workers_, FunctionPhase::kPending, "Unschedulable", "0/1 nodes are available");
  Add(workers_, FunctionPhase::kPending, "ErrImagePull", "not found");
  Add(servers_, FunctionPhase::kPending, "ImagePullBackOff", "waits");
  EXPECT_EQ(Found()->reason, Reason::kImagePullFailed);
  EXPECT_THAT(Found()->message, HasSubstr("2 functions cannot get their image"));
}

TEST_F(PendingFunctions, OnlyThoseOfThePlanCountAndOnlyWhileTheyArePending) {
  Add(WorkersGroupName(1), FunctionPhase::kPending, "ErrImagePull", "not found");
  Add(workers_, FunctionPhase::kTerminating, "ErrImagePull", "not found");
  Add(workers_, FunctionPhase::kGone, "Unschedulable", "evicted");
  EXPECT_EQ(Found(), std::nullopt);
}

const Status kRefused = UnavailableError("connecting to 10.0.0.1:8443: Connection refused");
const Status kForeign = UnauthenticatedError("10.0.0.1:8443 shows another certificate");

TEST_F(PendingFunctions, AReadyOneThatStaysUnreachableIsNamedWithTheErrorAndTheNextStep) {
  EXPECT_EQ(Unreachable(), std::nullopt);
  AddUnreachable(servers_, kRefused, 4);
  EXPECT_EQ(Unreachable(), std::nullopt) << "its address may just have become known";
  AddUnreachable(workers_, kRefused, 6);
  ASSERT_TRUE(Unreachable().has_value());
  EXPECT_EQ(ReasonText(Unreachable()->reason), std::string("FunctionUnreachable"));
  EXPECT_THAT(Unreachable()->message,
              AllOf(HasSubstr("function pod-1 cannot be reached: " + kRefused.message()),
                    HasSubstr("network")));
  AddUnreachable(workers_, kRefused, 9);
  EXPECT_THAT(Unreachable()->message, HasSubstr("pod-2")) << "it has been longest";
}

TEST_F(PendingFunctions, AnotherCertificateIsToldAtOnceAndFirst) {
  AddUnreachable(workers_, kRefused, 9);
  AddUnreachable(servers_, kForeign, 0);
  ASSERT_TRUE(Unreachable().has_value());
  EXPECT_EQ(Unreachable()->reason, Reason::kFunctionUnreachable);
  EXPECT_THAT(Unreachable()->message,
              AllOf(HasSubstr("function pod-1 cannot be reached: " + kForeign.message()),
                    HasSubstr("it is replaced"), HasSubstr("delete the job")));
}

TEST_F(PendingFunctions, OnlyReadyOnesOfThePlanAreUnreachable) {
  AddUnreachable(WorkersGroupName(1), kForeign, 60);
  AddUnreachable(workers_, kForeign, 60);
  observed_.instances.rbegin()->second.instance.phase = FunctionPhase::kTerminating;
  EXPECT_EQ(Unreachable(), std::nullopt);
}

}  // namespace
}  // namespace lambdadnn
