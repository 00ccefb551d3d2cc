// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/pod_address.h"

#include <gtest/gtest.h>

#include "operator/resources/job_children.h"
#include "tests/support/hostile_values.h"

namespace lambdadnn {
namespace {

Json PodWith(const Json& labels, const Json& status) {
  return {{"metadata", {{"labels", labels}}}, {"status", status}};
}

TEST(PeerAddress, IsThePodsOwnAtThePortOfItsLabel) {
  const Json labels = {{kPeerPortLabel, "8444"}};
  EXPECT_EQ(PeerAddressOf(PodWith(labels, {{"podIP", "10.0.0.7"}})), "10.0.0.7:8444");
  EXPECT_EQ(PeerAddressOf(PodWith(labels, {{"podIP", "fd00::7"}})), "[fd00::7]:8444");
  EXPECT_EQ(PeerAddressOf(PodWith(labels, Json::object())), "");
  EXPECT_EQ(PeerAddressOf(PodWith(Json::object(), {{"podIP", "10.0.0.7"}})), "");
  for (const char* port : {"x", "-1", "0", "65536", "99999999999999999999"}) {
    EXPECT_EQ(PeerAddressOf(PodWith({{kPeerPortLabel, port}}, {{"podIP", "10.0.0.7"}})), "")
        << port;
  }
}

TEST(PeerAddress, APodThatMakesNoSenseHasOneOrNone) {
  const Json pod = PodWith({{kPeerPortLabel, "8444"}}, {{"podIP", "10.0.0.7"}});
  for (const char* part : {"/status", "/metadata/labels"}) {
    ForEachHostileField(pod, Json::json_pointer(part),
                        [](const Json& changed) { (void)PeerAddressOf(changed); });
  }
}

}  // namespace
}  // namespace lambdadnn
