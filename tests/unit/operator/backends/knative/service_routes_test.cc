// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/service_routes.h"

#include <gtest/gtest.h>

#include "tests/support/hostile_values.h"

namespace lambdadnn {
namespace {

Json ServiceWith(const char* ready, bool traffic) {
  Json status = {{"conditions", Json::array({{{"type", "RoutesReady"}, {"status", ready}}})}};
  if (traffic) status["traffic"] = Json::array({{{"percent", 100}}});
  return {{"status", std::move(status)}};
}

TEST(HasRoute, IsWhatKnativeSaysOrSaidOnce) {
  EXPECT_TRUE(HasRoute(ServiceWith("True", false)));
  EXPECT_TRUE(HasRoute(ServiceWith("False", true)));
  EXPECT_FALSE(HasRoute(ServiceWith("False", false)));
  EXPECT_FALSE(HasRoute(ServiceWith("Unknown", true)));
  EXPECT_FALSE(HasRoute(Json::object()));
  ForEachHostileField(ServiceWith("True", true), Json::json_pointer("/status"),
                      [](const Json& service) { (void)HasRoute(service); });
}

}  // namespace
}  // namespace lambdadnn
