// SPDX-License-Identifier: Apache-2.0
#include "operator/server/operator_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

OperatorOptions Good() {
  OperatorOptions options;
  options.host_socket = "/run/host.sock";
  return options;
}

TEST(OperatorOptions, NamesTheFlagThatIsWrong) {
  EXPECT_TRUE(Good().Validate().ok());
  OperatorOptions options = Good();
  options.backend = BackendKind::kKnative;
  options.host_socket = "";
  EXPECT_THAT(options.Validate().message(), HasSubstr("--platform"));
  options.platform_file = "platform.yaml";
  EXPECT_TRUE(options.Validate().ok());
  options.network_policies_file = "policies.yaml";
  EXPECT_TRUE(options.Validate().ok());
  options.image_pull_secrets = {"registry"};
  EXPECT_TRUE(options.Validate().ok());
  options.image_pull_secrets.emplace_back();
  EXPECT_THAT(options.Validate().message(), HasSubstr("--image-pull-secrets"));
  options = Good();
  options.network_policies_file = "policies.yaml";
  EXPECT_THAT(options.Validate().message(), HasSubstr("--network-policies"));
  options = Good();
  options.image_pull_secrets = {"registry"};
  EXPECT_THAT(options.Validate().message(), HasSubstr("--image-pull-secrets"));
  options = Good();
  options.host_socket = "";
  EXPECT_THAT(options.Validate().message(), HasSubstr("--host-socket"));
  options = Good();
  options.namespaces = {"a", ""};
  EXPECT_THAT(options.Validate().message(), HasSubstr("--namespaces"));
  options = Good();
  options.store = "s3://training/runs";
  options.readable = {"s3://data/public", "file:///data/{namespace}"};
  EXPECT_TRUE(options.Validate().ok());
  options.readable.push_back("data");
  EXPECT_THAT(options.Validate().message(), HasSubstr("--readable"));
  options.store = "s3://training/../x";
  EXPECT_THAT(options.Validate().message(), HasSubstr("--store"));
  options = Good();
  options.module_checker = "/bin/sh";
  EXPECT_TRUE(options.Validate().ok());
  options.module_checker = "/nowhere/lambdadnn-worker";
  EXPECT_THAT(options.Validate().message(), HasSubstr("--module-checker"));
  options = Good();
  options.workers = 0;
  EXPECT_THAT(options.Validate().message(), HasSubstr("--workers"));
  options = Good();
  for (const double qps : {-1.0, 0.01, 10001.0, std::nan("")}) {
    options.kube_api_qps = qps;
    EXPECT_THAT(options.Validate().message(), HasSubstr("--kube-api-qps")) << qps;
  }
  options.kube_api_qps = 0.1;
  EXPECT_TRUE(options.Validate().ok());
  for (const int burst : {0, 10001}) {
    options.kube_api_burst = burst;
    EXPECT_THAT(options.Validate().message(), HasSubstr("--kube-api-burst")) << burst;
  }
  options = Good();
  for (const char* entry :
       {"team", "=2", "team=", "team=0", "team=-1", "team=1001", "team=x", ""}) {
    options.namespace_weights = {"other=1", entry};
    EXPECT_THAT(options.Validate().message(), HasSubstr("--namespace-weights")) << entry;
  }
  options.namespace_weights = {"team-a=2", "team-b=0.5"};
  EXPECT_TRUE(options.Validate().ok());
  EXPECT_THAT(ParseNamespaceWeights(options.namespace_weights).value(),
              ElementsAre(Pair("team-a", 2), Pair("team-b", 0.5)));
  options = Good();
  options.metrics_address = "8080";
  EXPECT_THAT(options.Validate().message(), HasSubstr("--metrics-address"));
  options = Good();
  options.debug_endpoint = true;
  EXPECT_TRUE(options.Validate().ok());
  options.metrics_address = ":8080";
  EXPECT_THAT(options.Validate().message(), HasSubstr("--enable-debug"));
  options = Good();
  options.health_address = "localhost:99999";
  EXPECT_THAT(options.Validate().message(), HasSubstr("--health-address"));
}

TEST(ParseListenAddress, TakesHostsPortsAndBrackets) {
  EXPECT_EQ(ParseListenAddress("f", ":80")->host, "0.0.0.0");
  EXPECT_EQ(ParseListenAddress("f", "127.0.0.1:0")->port, 0);
  EXPECT_EQ(ParseListenAddress("f", "[::1]:81")->host, "::1");
  for (const char* bad : {"", "x", "a:b", "a:-1", "a:65536", "a:1x"}) {
    EXPECT_FALSE(ParseListenAddress("f", bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace lambdadnn
