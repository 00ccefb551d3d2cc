// SPDX-License-Identifier: Apache-2.0
// Jobs as an operator left them, at the turns of their life: tests/data/statuses. Every later
// version must read them and go on from there: from the first release on, files are added there and
// never changed.
//   LAMBDADNN_WRITE_STATUSES=FOLDER build/release/bin/status_versions_test
// writes those of this version into a folder of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

#include "common/base/files.h"
#include "common/base/text.h"
#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/loop/snapshot_json.h"
#include "operator/controller/observe/job_memory.h"
#include "operator/kinds/serverless_training_job.h"
#include "tests/support/paths.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

// Measured, since it brings no profile.
Json JobToProfile() {
  Json job = JobWorld::MinimalJob();
  job["spec"].erase("profile");
  return job;
}

Json Stored(JobWorld& world) {
  return world.server.Get(ServerlessTrainingJobType(), {"default", "digits"}).value();
}

// As a controller left it that ended at the first effect after which this holds.
Json AtDeath(const std::function<bool(const JobStatus&)>& holds) {
  constexpr int64_t kMostEffects = 200;
  for (int64_t effect = 0; effect < kMostEffects; ++effect) {
    JobWorld world;
    world.Create(JobToProfile());
    world.Inject(effect, EffectFault::kDieAfter);
    (void)world.RunUntil([&] { return world.fault_happened(); }, 120);
    if (world.fault_happened() && holds(world.Read().status)) return Stored(world);
  }
  return Json();
}

Json Running() {
  JobWorld world;
  world.Create(JobToProfile());
  (void)world.RunUntil([&] { return world.Read().status.progress.iteration >= 50; }, 120);
  return Stored(world);
}

Json Suspended() {
  JobWorld world;
  world.Create(JobToProfile());
  (void)world.RunUntil([&] { return world.Read().status.progress.iteration >= 50; }, 120);
  world.Patch({{"spec", {{"suspend", true}}}});
  (void)world.RunUntil([&] { return world.Read().status.phase == "Suspended"; }, 120);
  return Stored(world);
}

Json Finished(bool fails) {
  JobWorld world;
  if (fails) world.functions.FailNext("worker-1", InvalidArgumentError("the loss is NaN"), true);
  world.Create(JobToProfile());
  (void)world.RunUntilFinished(200);
  return Stored(world);
}

struct Life {
  const char* name;
  std::function<Json()> make;
};

const Life kLives[] = {
    {"fresh", [] { return AtDeath([](const JobStatus& is) { return !is.conditions.empty(); }); }},
    {"profiled",
     [] { return AtDeath([](const JobStatus& is) { return is.profile.has_value(); }); }},
    {"running", Running},
    {"suspended", Suspended},
    {"complete", [] { return Finished(false); }},
    {"failed", [] { return Finished(true); }},
};

TEST(GoldenStatuses, AreWrittenWhereTheyAreAskedFor) {
  const auto folder = GetEnvironment("LAMBDADNN_WRITE_STATUSES");
  if (!folder) GTEST_SKIP() << "LAMBDADNN_WRITE_STATUSES names no folder";
  for (const Life& life : kLives) {
    const std::string file = *folder + "/" + life.name + ".json";
    ASSERT_TRUE(WriteFileAtomically(file, life.make().dump(2) + "\n").ok()) << file;
  }
}

class GoldenStatusTest : public JobLifeTest {
 protected:
  Json Golden(const std::string& name) {
    const auto text = ReadFile(SourcePath("tests/data/statuses/" + name + ".json"));
    LDNN_CHECK(text.ok(), text.status().ToString());
    return *ParseJson(*text);
  }
  // What a controller that knows no more than this does first, once it has looked for functions
  // and found none.
  std::string Next(const Json& object) {
    const auto remembered = std::make_shared<JobMemory>();
    JobMemory& memory = *remembered;
    const JobReading decoded = ReadJob(object);
    EXPECT_TRUE(decoded.problem.ok()) << decoded.problem.ToString();
    EXPECT_TRUE(decoded.unreadable.ok()) << decoded.unreadable.ToString();
    std::vector<FieldError> errors;
    (void)DecodeJob(object, &errors);
    EXPECT_TRUE(errors.empty()) << ToStatus(errors).ToString();
    JobSnapshot snapshot;
    snapshot.job = decoded.job;
    snapshot.options = &world_.options;
    snapshot.now = world_.time.clock.Now();
    snapshot.wall = world_.time.clock.Wall();
    memory.Begin(snapshot.job, snapshot.now, snapshot.wall);
    snapshot.observations = {remembered, &memory.observations};
    snapshot.memo = {remembered, &memory.memo};
    memory.observations.instances_known = true;
    memory.memo.admission = OkStatus();
    memory.memo.credentials_known = true;
    memory.memo.store_capabilities.emplace();
    memory.memo.measurements_read = true;
    std::vector<std::string> names;
    for (const Json& action : ActionsToJson(Decide(snapshot))) {
      const std::string why = action.value("why", std::string());
      names.push_back(action["action"].get<std::string>() + (why.empty() ? "" : ": " + why));
    }
    return Join(names, "; ");
  }
  // Puts it where a controller of now finds it, with none of its functions left.
  void TakeOver(const Json& object) {
    Json created = object;
    created["metadata"] = {{"name", "digits"},
                           {"namespace", "default"},
                           {"finalizers", object["metadata"]["finalizers"]}};
    created.erase("status");
    world_.Create(created);
    const auto written = world_.server.Patch(ServerlessTrainingJobType(), {"default", "digits"},
                                             {{"status", object["status"]}}, Subresource::kStatus);
    ASSERT_TRUE(written.ok()) << written.status().ToString();
    world_.RestartController();
  }
};

TEST_F(GoldenStatusTest, EachIsGoneOnFrom) {
  EXPECT_EQ(Next(Golden("fresh")), "WriteDecision: start");
  EXPECT_EQ(Next(Golden("profiled")), "WriteDecision: plan");
  EXPECT_EQ(Next(Golden("running")), "ClaimPlace");
  EXPECT_EQ(Next(Golden("suspended")), "");
  EXPECT_EQ(Next(Golden("complete")), "");
  EXPECT_EQ(Next(Golden("failed")), "");
}

TEST_F(GoldenStatusTest, AFreshJobRunsToItsEnd) {
  TakeOver(Golden("fresh"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(GoldenStatusTest, AProfiledJobIsNotProfiledAgain) {
  TakeOver(Golden("profiled"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  for (const auto& [at, request] : world_.functions.requests()) {
    EXPECT_NE(request.role().kind, RoleKind::kProfile);
  }
}

TEST_F(GoldenStatusTest, ASuspendedJobStaysSoAndKeepsItsPlan) {
  const Json golden = Golden("suspended");
  TakeOver(golden);
  (void)world_.RunUntil([] { return false; }, 30);
  const Job job = world_.Read();
  EXPECT_EQ(job.status.phase, "Suspended");
  EXPECT_EQ(job.status.plan, DecodeJob(golden)->status.plan);
  EXPECT_THAT(world_.functions.requests(), testing::IsEmpty());
}

TEST_F(GoldenStatusTest, EndedJobsStayEnded) {
  for (const char* name : {"complete", "failed"}) {
    const Json golden = Golden(name);
    TakeOver(golden);
    (void)world_.RunUntil([] { return false; }, 30);
    EXPECT_EQ(Stored(world_)["status"]["conditions"], golden["status"]["conditions"]) << name;
    EXPECT_THAT(world_.functions.requests(), testing::IsEmpty());
    world_.Delete();
    ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 120)) << name;
  }
}

}  // namespace
}  // namespace lambdadnn
