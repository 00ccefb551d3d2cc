// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/service_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/backends/knative/knative_types.h"
#include "operator/resources/knative_service.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

FunctionGroup GroupOf(int count) {
  FunctionGroup group;
  group.name = "workers";
  group.count = count;
  return group;
}

ClusterLimits AtMost(int scale) {
  ClusterLimits limits;
  limits.max_scale = scale;
  return limits;
}

TEST(CheckScale, RefusesWhatIsKnownToBeTooMuch) {
  EXPECT_TRUE(CheckScale(AtMost(8), GroupOf(8)).ok());
  EXPECT_TRUE(CheckScale(AtMost(0), GroupOf(1000)).ok());
  EXPECT_TRUE(CheckScale(UnavailableError("not known"), GroupOf(1000)).ok());
  const Status refused = CheckScale(AtMost(8), GroupOf(9));
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("group workers has 9 functions"));
}

class Scale : public AtStandIn {
 protected:
  // Of a Service that was made with two functions, whose PodAutoscaler may be there.
  Status EnsureFor(int count) {
    Status status;
    Do([&] {
      const Json service = {
          {"metadata", {{"name", "s"}, {"namespace", "team"}}},
          {"spec", {{"template", {{"metadata", {{"annotations", {{kMinScaleAnnotation, "2"}}}}}}}}},
          {"status", {{"latestCreatedRevisionName", "s-1"}}}};
      status = EnsureScale(server_, service, GroupOf(count), [&]() -> Result<ClusterLimits> {
        ++asked_;
        return AtMost(8);
      });
    });
    return status;
  }
  void MakeAutoscaler() {
    Do([&] {
      const Json autoscaler = {
          {"apiVersion", "autoscaling.internal.knative.dev/v1alpha1"},
          {"kind", "PodAutoscaler"},
          {"metadata",
           {{"name", "s-1"},
            {"namespace", "team"},
            {"annotations", {{kMinScaleAnnotation, "2"}, {kMaxScaleAnnotation, "2"}}}}}};
      ASSERT_TRUE(server_.Create(PodAutoscalerType(), autoscaler).ok());
    });
  }
  Json Annotations() { return stand_in_.All(PodAutoscalerType())[0]["metadata"]["annotations"]; }
  int asked_ = 0;
};

TEST_F(Scale, IsSetAtThePodAutoscalerWhereItDiffers) {
  MakeAutoscaler();
  EXPECT_TRUE(EnsureFor(2).ok());
  EXPECT_EQ(asked_, 0);
  EXPECT_TRUE(EnsureFor(3).ok());
  EXPECT_EQ(asked_, 1);
  for (const char* each : {kMinScaleAnnotation, kMaxScaleAnnotation, kInitialScaleAnnotation}) {
    EXPECT_EQ(Annotations()[each], "3") << each;
  }
  EXPECT_EQ(EnsureFor(9).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Annotations()[kMinScaleAnnotation], "3");
}

TEST_F(Scale, WithoutAPodAutoscalerItIsWhatTheServiceWasMadeWith) {
  EXPECT_TRUE(EnsureFor(2).ok());
  EXPECT_EQ(EnsureFor(3).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lambdadnn
