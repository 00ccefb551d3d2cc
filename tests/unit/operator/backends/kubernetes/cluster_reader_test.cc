// SPDX-License-Identifier: Apache-2.0
// What a cluster allows is read as Kubernetes has it, and what its platform of functions allows is
// told by that platform.
#include "operator/backends/kubernetes/cluster_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/backends/knative/knative_limits.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Result<ClusterLimits> OfAPlatform(KubeClient&) {
  ClusterLimits limits;
  limits.max_scale = 7;
  limits.unknown = {"the platform's longest timeout"};
  return limits;
}

Result<ClusterLimits> OfNoAnswer(KubeClient&) { return UnavailableError("no answer"); }

class Reader : public AtStandIn {
 protected:
  Result<ClusterLimits> Limits(ClusterReader::Options options) {
    Result<ClusterLimits> limits = ClusterLimits{};
    Do([&] {
      ClusterReader reader(server_, process_.runtime(), std::move(options));
      limits = reader.Limits("team", PodTemplate());
    });
    return limits;
  }
  void MakeQuota() {
    Do([&] {
      const ResourceType quotas = {"", "v1", "resourcequotas", "ResourceQuota"};
      const Json quota = {{"apiVersion", "v1"},
                          {"kind", "ResourceQuota"},
                          {"metadata", {{"name", "q"}, {"namespace", "team"}}},
                          {"spec", {{"hard", {{"limits.cpu", "4"}}}}},
                          {"status", {{"hard", {{"limits.cpu", "4"}}}}}};
      ASSERT_TRUE(server_.Create(quotas, quota).ok());
    });
  }
};

TEST_F(Reader, AsksNoPlatformWhereThereIsNone) {
  const auto limits = Limits({.sidecar = {.memory_mib = 64}});
  ASSERT_TRUE(limits.ok()) << limits.status().ToString();
  EXPECT_EQ(limits->max_scale, 0);
  EXPECT_EQ(limits->sidecar.memory_mib, 64);
  EXPECT_THAT(limits->unknown, IsEmpty());
}

TEST_F(Reader, PassesOnWhatThePlatformSays) {
  const auto limits = Limits({.read_platform = OfAPlatform});
  ASSERT_TRUE(limits.ok()) << limits.status().ToString();
  EXPECT_EQ(limits->max_scale, 7);
  EXPECT_THAT(limits->unknown, ElementsAre("the platform's longest timeout"));
  EXPECT_EQ(Limits({.read_platform = OfNoAnswer}).status().code(), StatusCode::kUnavailable);
}

TEST_F(Reader, AQuotaOnLimitsOfCpuMakesTheSidecarsLimitCount) {
  MakeQuota();
  EXPECT_EQ(Limits({.sidecar = {.milli_cpu = 25}})->sidecar.milli_cpu, 25);
  EXPECT_EQ(
      Limits({.sidecar = {.milli_cpu = 25}, .sidecar_milli_cpu_limit = 100})->sidecar.milli_cpu,
      100);
}

TEST_F(Reader, ForKnativeCountsTheQueueProxyAndAsksKnative) {
  const ClusterReader::Options options = KnativeReaderOptions({});
  EXPECT_EQ(options.sidecar.memory_mib, KnativeOptions().queue_proxy_memory_mib);
  EXPECT_EQ(options.sidecar_milli_cpu_limit, kQueueProxyMilliCpuLimit);
  using Function = Result<ClusterLimits> (*)(KubeClient&);
  EXPECT_EQ(*options.read_platform.target<Function>(), &ReadKnativeLimits);
}

}  // namespace
}  // namespace lambdadnn
