// SPDX-License-Identifier: Apache-2.0
#include "operator/cmd/operator_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OperatorFlagsTest : public testing::Test {
 protected:
  ~OperatorFlagsTest() override {
    for (const auto& [name, value] : set_) unsetenv(name.c_str());
  }
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_[name] = value;
  }
  std::optional<OperatorFlags> Parse(std::vector<std::string> words) {
    words.insert(words.begin(), "lambdadnn-operator");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    exit_code_ = -1;
    return ParseOperatorFlags(static_cast<int>(argv.size()), argv.data(), &exit_code_);
  }

  int exit_code_ = -1;

 private:
  std::map<std::string, std::string> set_;
};

TEST_F(OperatorFlagsTest, VariablesAreTheFlagsDefaults) {
  Set("LAMBDADNN_KUBECONFIG", "/etc/kube");
  Set("LAMBDADNN_CONTEXT", "production");
  Set("LAMBDADNN_KUBE_API_QPS", "12.5");
  Set("LAMBDADNN_KUBE_API_BURST", "34");
  Set("LAMBDADNN_NAMESPACES", "a,b");
  Set("LAMBDADNN_BACKEND", "Knative");
  Set("LAMBDADNN_HOST_SOCKET", "/run/host.sock");
  Set("LAMBDADNN_WORKER_IMAGE", "worker:1");
  Set("LAMBDADNN_SERVER_IMAGE", "server:1");
  Set("LAMBDADNN_IMAGE_PULL_SECRETS", "registry,mirror");
  Set("LAMBDADNN_PLATFORM", "/etc/platform.yaml");
  Set("LAMBDADNN_STORE", "s3://models/runs");
  Set("LAMBDADNN_READABLE", "s3://data/public,file:///data/{namespace}");
  Set("LAMBDADNN_STORE_CA_FILE", "/etc/ca.pem");
  Set("LAMBDADNN_LEADER_ELECT", "true");
  Set("LAMBDADNN_LEASE_NAMESPACE", "system");
  Set("LAMBDADNN_LEASE_NAME", "lease");
  Set("LAMBDADNN_IDENTITY", "me");
  Set("LAMBDADNN_METRICS_ADDRESS", "127.0.0.1:1");
  Set("LAMBDADNN_HEALTH_ADDRESS", "127.0.0.1:2");
  Set("LAMBDADNN_ENABLE_DEBUG", "true");
  Set("LAMBDADNN_WORKERS", "3");
  Set("LAMBDADNN_WORKER_GPU_IMAGE", "worker:cuda");
  Set("LAMBDADNN_LOG_FORMAT", "json");
  Set("LAMBDADNN_LOG_LEVEL", "debug");
  const auto flags = Parse({});
  ASSERT_TRUE(flags.has_value()) << exit_code_;
  const OperatorOptions& options = flags->options;
  EXPECT_EQ(options.kubeconfig, "/etc/kube");
  EXPECT_EQ(options.context, "production");
  EXPECT_EQ(options.kube_api_qps, 12.5);
  EXPECT_EQ(options.kube_api_burst, 34);
  EXPECT_THAT(options.namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(options.backend, BackendKind::kKnative);
  EXPECT_EQ(options.host_socket, "/run/host.sock");
  EXPECT_EQ(options.worker_image, "worker:1");
  EXPECT_EQ(options.server_image, "server:1");
  EXPECT_EQ(options.worker_gpu_image, "worker:cuda");
  EXPECT_THAT(options.image_pull_secrets, ElementsAre("registry", "mirror"));
  EXPECT_EQ(options.platform_file, "/etc/platform.yaml");
  EXPECT_EQ(options.store, "s3://models/runs");
  EXPECT_THAT(options.readable, ElementsAre("s3://data/public", "file:///data/{namespace}"));
  EXPECT_EQ(options.store_ca_file, "/etc/ca.pem");
  EXPECT_TRUE(options.leader_elect);
  EXPECT_EQ(options.lease_namespace, "system");
  EXPECT_EQ(options.lease_name, "lease");
  EXPECT_EQ(options.identity, "me");
  EXPECT_EQ(options.metrics_address, "127.0.0.1:1");
  EXPECT_EQ(options.health_address, "127.0.0.1:2");
  EXPECT_TRUE(options.debug_endpoint);
  EXPECT_EQ(options.workers, 3);
  EXPECT_EQ(flags->log_format, "json");
  EXPECT_EQ(flags->log_level, "debug");
}

TEST_F(OperatorFlagsTest, AFlagGoesBeforeItsVariable) {
  Set("LAMBDADNN_HOST_SOCKET", "/run/host.sock");
  Set("LAMBDADNN_LOG_FORMAT", "json");
  const auto flags = Parse({"--log-format", "text", "--host-socket", "/other.sock"});
  ASSERT_TRUE(flags.has_value());
  EXPECT_EQ(flags->log_format, "text");
  EXPECT_EQ(flags->options.host_socket, "/other.sock");
}

TEST_F(OperatorFlagsTest, ChecksAreAskedForByFlagsAlone) {
  Set("LAMBDADNN_HOST_SOCKET", "/run/host.sock");
  Set("LAMBDADNN_CHECK", "true");
  Set("LAMBDADNN_CHECK_STORE", "s3://models");
  auto flags = Parse({});
  ASSERT_TRUE(flags.has_value());
  EXPECT_FALSE(flags->check);
  EXPECT_EQ(flags->options.check_store, "");
  flags = Parse({"--check", "--check-store", "s3://models"});
  ASSERT_TRUE(flags.has_value());
  EXPECT_TRUE(flags->check);
  EXPECT_EQ(flags->options.check_store, "s3://models");
}

TEST_F(OperatorFlagsTest, WhatCannotBeEndsWithTheNameOfTheFlag) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--log-format", "yaml"},
                                             {"--log-level", "loud"},
                                             {"--workers", "0"},
                                             {"--workrs", "8"}}) {
    testing::internal::CaptureStderr();
    EXPECT_FALSE(Parse({"--host-socket", "/run/host.sock", words[0], words[1]}).has_value());
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(words[0]));
    EXPECT_EQ(exit_code_, 2);
  }
}

TEST_F(OperatorFlagsTest, AnUninstallationNeedsNoPlatformAndAWholeName) {
  const auto flags = Parse({"--prepare-uninstall", "--backend", "Knative", "--uninstall-deployment",
                            "system/operator", "--uninstall-wait", "7"});
  ASSERT_TRUE(flags.has_value());
  EXPECT_EQ(flags->uninstall_deployment, "system/operator");
  EXPECT_EQ(flags->uninstall_wait_seconds, 7);
  for (const char* wrong : {"operator", "/operator", "system/"}) {
    EXPECT_FALSE(Parse({"--prepare-uninstall", "--uninstall-deployment", wrong}).has_value());
    EXPECT_EQ(exit_code_, 2);
  }
  EXPECT_FALSE(Parse({"--prepare-uninstall", "--uninstall-wait", "-1"}).has_value());
}

}  // namespace
}  // namespace lambdadnn
