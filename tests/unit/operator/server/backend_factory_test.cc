// SPDX-License-Identifier: Apache-2.0
#include "operator/server/backend_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/reviewing_kube.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

TEST(BackendFactory, OpensAndChecksEachBackendThatCanBeNamed) {
  for (const BackendKind kind :
       {BackendKind::kLocal, BackendKind::kKnative, BackendKind::kOpenFaas}) {
    const BackendFactory* factory = FindBackendFactory(kind);
    ASSERT_NE(factory, nullptr) << BackendName(kind);
    EXPECT_EQ(factory->kind, kind);
    EXPECT_NE(factory->open, nullptr);
    EXPECT_NE(factory->check, nullptr);
    EXPECT_EQ(ParseBackend(BackendName(kind)).value(), kind);
  }
}

TEST(BackendFactory, WhatThisReleaseHasNotIsRefusedWithWhatItHas) {
  for (const char* name : {"OpenWhisk", "knative", ""}) {
    const Status refused = ParseBackend(name).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(refused.message(),
              "--backend: " + std::string(name) +
                  " is not available in this release; use Local or Knative or OpenFaaS");
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
  EXPECT_EQ(CheckBackendFlags(options).message(),
            "--image-pull-secrets: is for pods, which the backend Knative or OpenFaaS alone has; "
            "leave it away");
  options.backend = BackendKind::kKnative;
  EXPECT_THAT(CheckBackendFlags(options).message(), HasSubstr("--platform: the backend Knative"));
  options.platform_file = "platform.yaml";
  EXPECT_TRUE(CheckBackendFlags(options).ok());
}

TEST(BackendFactory, OpenFaasNeedsItsGateway) {
  OperatorOptions options;
  options.backend = BackendKind::kOpenFaas;
  options.platform_file = "platform.yaml";
  EXPECT_THAT(CheckBackendFlags(options).message(),
              HasSubstr("--openfaas-gateway: the backend OpenFaaS needs the URL"));
  options.openfaas_gateway = "http://gateway.openfaas:8080";
  EXPECT_TRUE(CheckBackendFlags(options).ok());
  options.image_pull_secrets = {"registry"};
  EXPECT_TRUE(CheckBackendFlags(options).ok());
  options.network_policies_file = "policies.yaml";
  EXPECT_THAT(CheckBackendFlags(options).message(), HasSubstr("which the backend Knative alone"));
  options.network_policies_file = "";
  for (const char* wrong :
       {"https://gateway:443", "gateway:8080", "http://user:word@gateway", "x y"}) {
    options.openfaas_gateway = wrong;
    EXPECT_THAT(CheckBackendFlags(options).message(), HasSubstr("--openfaas-gateway")) << wrong;
  }
  options.openfaas_gateway = "http://gateway.openfaas:8080";
  options.openfaas_namespace = "";
  EXPECT_THAT(CheckBackendFlags(options).message(), HasSubstr("--openfaas-namespace"));
  options.openfaas_namespace = "openfaas-fn";
  options.openfaas_max_functions = -1;
  EXPECT_THAT(CheckBackendFlags(options).message(), HasSubstr("--openfaas-max-functions"));
  options.openfaas_max_functions = 0;
  options.openfaas_timeout_seconds = -1;
  EXPECT_THAT(CheckBackendFlags(options).message(), HasSubstr("--openfaas-timeout-seconds"));
  options.openfaas_timeout_seconds = 0;
  options.backend = BackendKind::kKnative;
  EXPECT_THAT(CheckBackendFlags(options).message(), HasSubstr("is for the backend OpenFaaS"));
}

TEST(BackendFactory, WithoutPoliciesTheCheckOfKnativeWarns) {
  const BackendFactory* factory = FindBackendFactory(BackendKind::kKnative);
  SystemRuntime runtime;
  ReviewingKube kube;
  OperatorOptions options;
  const std::vector<CheckFinding> findings = factory->check(kube, runtime, options);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].level, CheckFinding::Level::kWarning);
  options.network_policies_file = "policies.yaml";
  EXPECT_TRUE(factory->check(kube, runtime, options).empty());
}

}  // namespace
}  // namespace lambdadnn
