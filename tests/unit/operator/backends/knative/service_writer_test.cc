// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/service_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/backends/knative/knative_limits.h"
#include "operator/backends/knative/knative_types.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class Writer : public AtStandIn {
 protected:
  Writer()
      : client_(server_,
                [this](const std::string& call, const std::string&,
                       FaultyKubeClient::Point point) -> Status {
                  if (point == FaultyKubeClient::Point::kBefore) ++calls_[call];
                  return OkStatus();
                }) {
    Do([&] {
      const Json job = {{"apiVersion", "lambdadnn.io/v1alpha1"},
                        {"kind", "ServerlessTrainingJob"},
                        {"metadata", {{"name", "digits"}, {"namespace", "team"}}}};
      group_.job_uid = UidOf(server_.Create(ServerlessTrainingJobType(), job).value());
      group_.namespace_name = "team";
      group_.job_name = "digits";
      group_.name = "workers";
      group_.count = 3;
      group_.memory_mib = 512;
      group_.timeout_seconds = 300;
      limits_ =
          std::make_unique<ClusterReader>(client_, process_.runtime(), KnativeReaderOptions({}));
      pods_ = std::make_unique<PodIndex>(client_, process_.runtime(), PodIndex::Options{});
      writer_ = std::make_unique<ServiceWriter>(
          client_, process_.runtime(),
          ServiceWriter::Options{.services = {.images = {.worker = "worker:1"}}}, *limits_, *pods_);
    });
  }

  void Ensure() {
    Do([&] {
      const Status ensured = writer_->Ensure(group_, {});
      EXPECT_TRUE(ensured.ok()) << ensured.ToString();
    });
  }
  size_t Services() { return stand_in_.All(KnativeServiceType()).size(); }

  FunctionGroup group_;
  FaultyKubeClient client_;
  std::unique_ptr<ClusterReader> limits_;
  std::unique_ptr<PodIndex> pods_;
  std::unique_ptr<ServiceWriter> writer_;
};

TEST_F(Writer, WhatWasSeenRightIsSoForAMomentAndForItsScale) {
  EXPECT_FALSE(writer_->SeenRight(group_));
  Ensure();
  EXPECT_EQ(Services(), 1u);
  EXPECT_TRUE(writer_->SeenRight(group_));
  FunctionGroup larger = group_;
  larger.count = 4;
  EXPECT_FALSE(writer_->SeenRight(larger));
  RunFor(3);
  EXPECT_FALSE(writer_->SeenRight(group_));
  Ensure();
  EXPECT_TRUE(writer_->SeenRight(group_));
  writer_->LookAgain();
  EXPECT_FALSE(writer_->SeenRight(group_));
  EXPECT_EQ(calls_["create"], 2);  // the Service and its Secret, once
}

TEST_F(Writer, MembersThatAGroupHasNoMoreGoWithTheirSecrets) {
  group_.addressing = Addressing::kService;
  Ensure();
  EXPECT_EQ(Services(), 3u);
  group_.count = 1;
  Ensure();
  EXPECT_EQ(Services(), 1u);
  EXPECT_THAT(stand_in_.All(SecretType()), SizeIs(1));
}

TEST_F(Writer, DeletesTheServicesOfOneGroup) {
  Ensure();
  Do([&] { EXPECT_TRUE(writer_->Delete(JobOf(group_), "servers").ok()); });
  EXPECT_EQ(Services(), 1u);
  Do([&] { EXPECT_TRUE(writer_->Delete(JobOf(group_), "workers").ok()); });
  EXPECT_EQ(Services(), 0u);
  EXPECT_THAT(stand_in_.All(SecretType()), IsEmpty());
}

TEST_F(Writer, KnativesLimitsAreReadFromItsConfigMaps) {
  Do([&] {
    const ResourceType maps = {"", "v1", "configmaps", "ConfigMap"};
    const Json scale = {
        {"apiVersion", "v1"},
        {"kind", "ConfigMap"},
        {"metadata", {{"name", "config-autoscaler"}, {"namespace", "knative-serving"}}},
        {"data", {{"max-scale-limit", "2"}}}};
    ASSERT_TRUE(server_.Create(maps, scale).ok());
    const Result<ClusterLimits> limits = ReadKnativeLimits(client_);
    ASSERT_TRUE(limits.ok()) << limits.status().ToString();
    EXPECT_EQ(limits->max_scale, 2);
    EXPECT_THAT(limits->unknown, SizeIs(2));  // the two that are not there
    EXPECT_EQ(writer_->Ensure(group_, {}).code(), StatusCode::kFailedPrecondition);
  });
  EXPECT_EQ(Services(), 0u);
}

}  // namespace
}  // namespace lambdadnn
