// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/backends/knative/knative_types.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

Status Answered(const Status& answer) {
  return PreflightService(Json::object(), [&](const ResourceType&, const Json&) -> Result<Json> {
    if (answer.ok()) return Json::object();
    return answer;
  });
}

TEST(PreflightService, TriesTheServiceAndAsksKnativeToTryItsPod) {
  Json tried;
  ResourceType kind;
  EXPECT_TRUE(PreflightService({{"kind", "Service"}},
                               [&](const ResourceType& type, const Json& object) -> Result<Json> {
                                 kind = type;
                                 tried = object;
                                 return object;
                               })
                  .ok());
  EXPECT_EQ(kind, KnativeServiceType());
  EXPECT_EQ(tried["metadata"]["annotations"]["features.knative.dev/podspec-dryrun"], "enabled");
}

TEST(PreflightService, WhatTheClusterRefusesForGoodIsARefusal) {
  for (const Status& answer : {InvalidArgumentError("must not set the field(s): nodeSelector"),
                               PermissionDeniedError("admission webhook denied the request"),
                               NotFoundError("the server could not find the requested resource")}) {
    const Status told = Answered(answer);
    EXPECT_EQ(told.code(), StatusCode::kFailedPrecondition) << answer.ToString();
    EXPECT_THAT(told.message(), HasSubstr(answer.message()));
  }
}

TEST(PreflightService, WhatIsNoMatterOfTheServiceIsNone) {
  for (const Status& answer :
       {OkStatus(), PermissionDeniedError("pods \"p\" is forbidden: exceeded quota: q"),
        PermissionDeniedError("user cannot create resource \"services\""),
        PermissionDeniedError("namespace team is being terminated"),
        InvalidArgumentError("the webhook does not support dry run"),
        NotFoundError("namespaces \"team\" not found"), AlreadyExistsError("there is one")}) {
    EXPECT_TRUE(Answered(answer).ok()) << answer.ToString();
  }
}

TEST(PreflightService, AServerThatDoesNotAnswerIsAskedAgain) {
  EXPECT_EQ(Answered(UnavailableError("no answer")).code(), StatusCode::kUnavailable);
  EXPECT_EQ(Answered(DeadlineExceededError("too late")).code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace lambdadnn
