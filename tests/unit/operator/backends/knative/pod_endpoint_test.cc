// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/pod_endpoint.h"

#include <gtest/gtest.h>

#include "operator/resources/job_children.h"
#include "tests/support/hostile_values.h"

namespace lambdadnn {
namespace {

Json PodWith(const Json& labels, const Json& status) {
  return {{"metadata", {{"name", "p"}, {"namespace", "team"}, {"labels", labels}}},
          {"status", status}};
}

TEST(KnativeEndpoint, IsThePodsOwnAddressThroughItsQueueProxy) {
  const Json labels = {{kServiceLabel, "digits-workers"}};
  EXPECT_EQ(KnativeEndpointOf(PodWith(labels, {{"podIP", "10.0.0.7"}})).Text(), "10.0.0.7:8012");
  EXPECT_EQ(KnativeEndpointOf(PodWith(labels, {{"podIP", "fd00::7"}})).Text(), "[fd00::7]:8012");
  EXPECT_EQ(KnativeEndpointOf(PodWith(labels, Json::object())), Endpoint{});
}

TEST(KnativeEndpoint, OfAFunctionWithAServiceOfItsOwnIsTheServicesName) {
  const Json pod =
      PodWith({{kServiceLabel, "digits-workers-0"}, {kMemberLabel, "0"}}, {{"podIP", "10.0.0.7"}});
  EXPECT_TRUE(IsReachedByService(pod));
  EXPECT_EQ(KnativeEndpointOf(pod).Text(), "digits-workers-0.team.svc:80");
  EXPECT_FALSE(IsReachedByService(PodWith({{kMemberLabel, "0"}}, Json::object())));
}

TEST(KnativeEndpoint, WithACertificateIsThePodsOwnAddressPastItsQueueProxy) {
  const Json labels = {{kServiceLabel, "s"}, {kTlsPortLabel, "8443"}};
  EXPECT_EQ(KnativeEndpointOf(PodWith(labels, {{"podIP", "10.0.0.7"}})).Text(),
            "https://10.0.0.7:8443");
  EXPECT_EQ(KnativeEndpointOf(PodWith(labels, Json::object())), Endpoint{});
  // Never in plain text.
  for (const char* port : {"x", "-1", "0", "65536", "99999999999999999999"}) {
    const Json odd = {{kServiceLabel, "s"}, {kTlsPortLabel, port}};
    EXPECT_EQ(KnativeEndpointOf(PodWith(odd, {{"podIP", "10.0.0.7"}})).Text(),
              "https://10.0.0.7:8443")
        << port;
  }
}

TEST(KnativeEndpoint, APodThatMakesNoSenseHasOneOrNone) {
  const Json pod = PodWith({{kServiceLabel, "s"}}, {{"podIP", "10.0.0.7"}});
  for (const char* part : {"/status", "/metadata/labels"}) {
    ForEachHostileField(pod, Json::json_pointer(part),
                        [](const Json& changed) { (void)KnativeEndpointOf(changed); });
  }
}

}  // namespace
}  // namespace lambdadnn
