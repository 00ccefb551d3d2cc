// SPDX-License-Identifier: Apache-2.0
#include "operator/server/backend_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

TEST(BackendFactory, OpensAndChecksEachBackendThatCanBeNamed) {
  for (const BackendKind kind : {BackendKind::kLocal, BackendKind::kKnative}) {
    const BackendFactory* factory = FindBackendFactory(kind);
    ASSERT_NE(factory, nullptr) << BackendName(kind);
    EXPECT_EQ(factory->kind, kind);
    EXPECT_NE(factory->open, nullptr);
    EXPECT_NE(factory->check, nullptr);
    EXPECT_EQ(ParseBackend(BackendName(kind)).value(), kind);
  }
}

TEST(BackendFactory, WhatThisReleaseHasNotIsRefusedWithWhatItHas) {
  for (const char* name : {"OpenFaaS", "knative", ""}) {
    const Status refused = ParseBackend(name).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(refused.message(), "--backend: " + std::string(name) +
                                     " is not available in this release; use Local or Knative");
  }
}

TEST(BackendFactory, FlagsArePartOfTheBackendThatHasThem) {
  OperatorOptions options;
  EXPECT_THAT(CheckBackendFlags(options).message(), HasSubstr("--host-socket: the backend Local"));
  options.host_socket = "/run/host.sock";
  EXPECT_TRUE(CheckBackendFlags(options).ok());
  options.network_policies_file = "policies.yaml";
  EXPECT_EQ(CheckBackendFlags(options).message(),
            "--network-policies: bounds pods, which the backend Knative alone has; leave it away");
  options.network_policies_file = "";
  options.image_pull_secrets = {"registry"};
  EXPECT_EQ(
      CheckBackendFlags(options).message(),
      "--image-pull-secrets: is for pods, which the backend Knative alone has; leave it away");
  options.backend = BackendKind::kKnative;
  EXPECT_THAT(CheckBackendFlags(options).message(), HasSubstr("--platform: the backend Knative"));
  options.platform_file = "platform.yaml";
  EXPECT_TRUE(CheckBackendFlags(options).ok());
}

TEST(BackendFactory, WithoutPoliciesTheCheckOfKnativeWarns) {
  const BackendFactory* factory = FindBackendFactory(BackendKind::kKnative);
  SystemClock clock;
  ThreadExecutor executor;
  SystemRandom random;
  Runtime runtime{clock, executor, random};
  OperatorOptions options;
  const std::vector<CheckFinding> findings = factory->check(runtime, options);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].level, CheckFinding::Level::kWarning);
  options.network_policies_file = "policies.yaml";
  EXPECT_TRUE(factory->check(runtime, options).empty());
}

}  // namespace
}  // namespace lambdadnn
