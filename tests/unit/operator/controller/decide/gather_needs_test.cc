// SPDX-License-Identifier: Apache-2.0
// What a pass has to ask before it decides: one row a state of the job.
#include "operator/controller/decide/gather_needs.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "operator/api/conditions.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

using Limits = LimitsNeed;

struct NeedsRow {
  const char* name;
  std::function<void(TestSnapshot&)> change;
  bool functions;
  bool queue;
  Limits limits;
};

void Planned(TestSnapshot& s) {
  s.job.status.profile.emplace();
  Plan& plan = s.job.status.plan.emplace();
  plan.memory_mib = plan.server_memory_mib = 512;
}
void Started(TestSnapshot& s) {
  Planned(s);
  s.job.status.start_time = "2026-01-01T00:00:00Z";
}
void WithLimits(TestSnapshot& s) { s.observed.platform = std::make_shared<PlatformView>(); }

const NeedsRow kNeeds[] = {
    {"new", [](TestSnapshot&) {}, false, true, Limits::kRequired},
    {"new, with limits", WithLimits, false, true, Limits::kRequired},
    {"new and suspended", [](TestSnapshot& s) { s.job.spec.suspend = true; }, false, false,
     Limits::kNone},
    {"planned, waits", Planned, true, true, Limits::kIfKnown},
    {"started", Started, true, false, Limits::kIfKnown},
    {"started, with limits",
     [](TestSnapshot& s) {
       Started(s);
       WithLimits(s);
     },
     true, false, Limits::kNone},
    {"started, beyond the platform",
     [](TestSnapshot& s) {
       Started(s);
       WithLimits(s);
       s.job.status.plan->memory_mib = 1 << 20;
     },
     true, true, Limits::kRequired},
    {"deleted",
     [](TestSnapshot& s) {
       Started(s);
       s.job.metadata.deletion_timestamp = "2026-01-01T00:00:00Z";
     },
     true, false, Limits::kNone},
    {"finished",
     [](TestSnapshot& s) {
       Started(s);
       s.job.status.conditions = {
           MakeCondition(kConditionComplete, true, Reason::kTrainingFinished, "")};
     },
     true, false, Limits::kNone},
};

TEST(GatherNeeds, FollowFromTheStateOfTheJob) {
  ControllerOptions options;
  options.platform.memory = {128, 10240, 64};
  for (const NeedsRow& row : kNeeds) {
    SCOPED_TRACE(row.name);
    TestSnapshot snapshot;
    snapshot.options = &options;
    row.change(snapshot);
    EXPECT_EQ(MayHaveFunctions(snapshot.job), row.functions);
    EXPECT_EQ(NeedsQueue(snapshot.job, options.platform), row.queue);
    EXPECT_EQ(NeedOfLimits(snapshot), row.limits);
  }
}

}  // namespace
}  // namespace lambdadnn
