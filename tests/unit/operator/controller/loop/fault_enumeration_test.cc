// SPDX-License-Identifier: Apache-2.0
// Every effect of a whole job (writes to the API server, to the store, to functions) once fails,
// once loses its reply, and once is the last thing that its process does. However that goes, the
// job completes, nothing is left behind, and no role ever runs twice at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

struct Scenario {
  const char* name;
  bool suspend = false;
  bool kill = false;
  bool measured_profile = false;  // and kept
  bool deleted = false;
  bool replan = false;
  bool while_training = false;  // the profile is measured
};

class Life {
 public:
  explicit Life(const Scenario& scenario) : scenario_(scenario) {
    world.options.platform.function_timeout_seconds = 6;
    world.options.tick_seconds = 0.5;  // time is virtual, passes are not
    if (scenario_.measured_profile) {
      world.measurements = [](const Job& of, ObjectStore& store) {
        return std::make_unique<StoredMeasurements>(store, of);
      };
    }
    if (scenario_.while_training) {
      world.check_dataset = [](const TrainingConfig&, const auto&) {
        return WorkloadFacts{6400, 100, 4, 1000};
      };
    }
    world.RestartController();
  }

  // True when the job ended as it should.
  bool Run() {
    Json job = JobWorld::MinimalJob();
    job["spec"]["training"]["epochs"] = 1;
    if (scenario_.measured_profile) job["spec"].erase("profile");
    if (scenario_.while_training) {
      job["spec"].erase("aggregation");
      job["spec"]["profiling"] = "WhileTraining";
      job["spec"]["objective"] = {{"deadlineSeconds", 10}, {"bestEffort", true}};
    }
    world.Create(job);
    if (scenario_.kill) {
      if (!Reached(20)) return false;
      if (!world.functions.Live().empty()) world.functions.Kill(world.functions.Live().back());
    }
    if (scenario_.suspend) {
      if (!Reached(10)) return false;
      world.Patch({{"spec", {{"suspend", true}}}});
      const bool suspended = world.RunUntil(
          [&] {
            return world.Reason("Suspended") == "True/JobSuspended" || IsFinished(world.Read());
          },
          120);
      if (!suspended) return false;
      if (!world.functions.Live().empty()) return false;
      world.Patch({{"spec", {{"suspend", false}}}});
    }
    if (scenario_.replan) {
      if (!Reached(10)) return false;
      world.Patch({{"spec", {{"objective", {{"fixed", {{"memory", "768Mi"}}}}}}}});
      return world.RunUntilFinished(400) && world.Reason("Complete") == "True/TrainingFinished" &&
             world.Read().status.plan->revision == 2;
    }
    if (scenario_.deleted) {
      if (!Reached(10)) return false;
      world.Delete();
      return world.RunUntil([&] { return !world.Exists(); }, 200);
    }
    return world.RunUntilFinished(400) && world.Reason("Complete") == "True/TrainingFinished";
  }

  std::vector<std::string> TrainingSlicesStartedTwice() const {
    std::set<std::string> seen;
    std::vector<std::string> twice;
    for (const std::string& invocation : world.functions.started()) {
      const bool training = invocation.find("profile") == std::string::npos;
      if (training && !seen.insert(invocation).second) twice.push_back(invocation);
    }
    return twice;
  }

  JobWorld world;

 private:
  bool Reached(int64_t iteration) {
    return world.RunUntil(
        [&] {
          const Job job = world.Read();
          return job.status.progress.iteration >= iteration || IsFinished(job);
        },
        200);
  }
  const Scenario scenario_;
};

class FaultEnumeration : public testing::TestWithParam<Scenario> {};

TEST_P(FaultEnumeration, EveryEffectMayFailOrBeTheLast) {
  int64_t effects = 0;
  {
    Life undisturbed(GetParam());
    ASSERT_TRUE(undisturbed.Run());
    effects = undisturbed.world.effects();
  }
  ASSERT_GT(effects, 15);
  for (const EffectFault kind : {EffectFault::kFailBefore, EffectFault::kLoseReply,
                                 EffectFault::kDieBefore, EffectFault::kDieAfter}) {
    int happened = 0;
    for (int64_t index = 0; index < effects; ++index) {
      SCOPED_TRACE("effect " + std::to_string(index) + ", fault " +
                   std::to_string(static_cast<int>(kind)));
      Life life(GetParam());
      life.world.Inject(index, kind);
      ASSERT_TRUE(life.Run()) << life.world.Exists()
                              << (life.world.Exists() ? life.world.Read().status.phase : "");
      happened += life.world.fault_happened() ? 1 : 0;
      ASSERT_THAT(life.world.functions.Live(), IsEmpty());
      ASSERT_THAT(life.world.Keys(),
                  Each(AnyOf(HasSubstr("/results/"), HasSubstr("/measurements/"))));
      ASSERT_LE(life.world.functions.max_running_per_role(), 1);
      ASSERT_THAT(life.TrainingSlicesStartedTwice(), IsEmpty());
      ASSERT_TRUE(life.world.functions.all_keys_equal());
    }
    EXPECT_GT(happened, effects - 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Lives, FaultEnumeration,
                         testing::Values(Scenario{.name = "Plain"},
                                         Scenario{.name = "Suspended", .suspend = true},
                                         Scenario{.name = "Killed", .kill = true},
                                         Scenario{.name = "Replanned", .replan = true},
                                         Scenario{.name = "Profiled", .measured_profile = true},
                                         Scenario{.name = "ProfiledWhileTraining",
                                                  .measured_profile = true,
                                                  .while_training = true},
                                         Scenario{.name = "Deleted", .deleted = true}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace lambdadnn
