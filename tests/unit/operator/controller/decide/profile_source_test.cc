// SPDX-License-Identifier: Apache-2.0
// Where a job's profile comes from: one row a state.
#include "operator/controller/decide/profile_source.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "operator/api/conditions.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

constexpr double kMaxResidual = 0.15;

WorkloadProfile ProfileOff(double residual) {
  WorkloadProfile profile;
  profile.residual = residual;
  return profile;
}

struct SourceRow {
  const char* name;
  std::function<void(TestSnapshot&)> change;
  const char* source;  // "" = none of the two
  bool doubted = false;
};

const SourceRow kSources[] = {
    {"first", [](TestSnapshot&) {}, "read the cache"},
    {"not cached", [](TestSnapshot& s) { s.remembered.profile_cache_read = true; }, ""},
    {"cached",
     [](TestSnapshot& s) {
       s.remembered.profile_cache_read = true;
       s.remembered.cached_profile = ProfileOff(0);
     },
     "cached profile"},
    {"given", [](TestSnapshot& s) { s.job.spec.profile = ProfileOff(kMaxResidual); },
     "given profile"},
    {"given and cached",
     [](TestSnapshot& s) {
       s.job.spec.profile = ProfileOff(0);
       s.remembered.profile_cache_read = true;
       s.remembered.cached_profile = ProfileOff(0);
     },
     "given profile"},
    {"given, badly fitted", [](TestSnapshot& s) { s.job.spec.profile = ProfileOff(0.16); },
     "given profile", true},
    {"known",
     [](TestSnapshot& s) {
       s.job.status.profile = ProfileOff(0);
       s.job.spec.profile = ProfileOff(0);
     },
     ""},
};

TEST(ProfileSource, TheSpecBeforeTheCacheBeforeMeasuring) {
  ControllerOptions options;
  options.max_profile_residual = kMaxResidual;
  for (const SourceRow& row : kSources) {
    SCOPED_TRACE(row.name);
    TestSnapshot snapshot;
    snapshot.options = &options;
    row.change(snapshot);
    Decision decision = UseGivenProfile(snapshot);
    if (!decision.has_value()) decision = UseCachedProfile(snapshot);
    ASSERT_EQ(decision.has_value(), row.source[0] != '\0');
    if (!decision.has_value()) continue;
    ASSERT_EQ(decision->size(), 1u);
    const auto* write = std::get_if<WriteDecision>(&decision->front());
    if (write == nullptr) {
      EXPECT_TRUE(std::holds_alternative<ReadProfileCache>(decision->front()));
      EXPECT_STREQ(row.source, "read the cache");
      continue;
    }
    EXPECT_EQ(write->why, row.source);
    EXPECT_TRUE(write->profile.has_value());
    EXPECT_FALSE(write->keep_profile) << "what was not measured is not cached again";
    EXPECT_EQ(FindCondition(write->conditions, kConditionDegraded) != nullptr, row.doubted);
  }
}

}  // namespace
}  // namespace lambdadnn
