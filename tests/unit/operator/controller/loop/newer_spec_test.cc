// SPDX-License-Identifier: Apache-2.0
// A job with fields that only a newer CRD has: applied between CRD and operator of an upgrade, or
// running when the operator is put back. This version cannot do what they say, and another one that
// can will come: it leaves the job alone, and fails nobody's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/kinds/serverless_training_job.h"
#include "tests/unit/operator/controller/job_life_fixture.h"
#include "tests/unit/operator/controller/loop/open_schema.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class NewerSpecTest : public JobLifeTest {
 protected:
  void SetUp() override { TakeAnythingFor("spec", &world_.server); }
  static Json FullJob() {
    Json job = JobWorld::MinimalJob();
    JobSchema().ApplyDefaults(&job);
    return job;
  }
  void SetNewField(const Json& value) {
    world_.Patch({{"spec", {{"training", {{"fromTheFuture", value}}}}}});
  }
  // For so long it is neither failed nor begun, and keeps what functions it has.
  void ExpectLeftAlone(double seconds) {
    const Json before = Stored();
    const size_t live = world_.functions.Live().size();
    (void)world_.RunUntil([] { return false; }, seconds);
    EXPECT_EQ(Stored()["status"], before["status"]);
    EXPECT_THAT(world_.functions.Live(), SizeIs(live));
  }
  // The spec cannot be decoded.
  Json Stored() {
    return world_.server.Get(ServerlessTrainingJobType(), {"default", "digits"}).value();
  }
  std::vector<std::string> Told() const {
    std::vector<std::string> notes;
    for (const EventDraft& event : world_.told) {
      if (event.reason == "SpecUnreadable") notes.push_back(event.note);
    }
    return notes;
  }
};

TEST_F(NewerSpecTest, ANewJobWaitsForTheOperatorThatKnowsItsFields) {
  Json job = FullJob();
  job["spec"]["training"]["fromTheFuture"] = 1;
  job["spec"]["newSection"] = Json::object();
  world_.Create(job);
  ExpectLeftAlone(300);
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  ASSERT_THAT(Told(), SizeIs(1)) << "where its user looks, once";
  EXPECT_THAT(Told().front(), HasSubstr("spec.training.fromTheFuture: is not a field here"));
  EXPECT_THAT(Told().front(), HasSubstr("spec.newSection: is not a field here"));
  // Or its user takes them out.
  world_.Patch({{"spec", {{"newSection", nullptr}}}});
  SetNewField(nullptr);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(NewerSpecTest, ARunningJobKeepsItsFunctionsUnderAnOperatorThatWasPutBack) {
  world_.Create(FullJob());
  ASSERT_TRUE(RunUntilIteration(30));
  SetNewField(1);
  world_.RestartController();
  ExpectLeftAlone(60);
  EXPECT_FALSE(world_.functions.Live().empty());
  SetNewField(nullptr);
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.plan->revision, 1);
}

TEST_F(NewerSpecTest, AJobThatIsLeftAloneCanBeDeleted) {
  world_.Create(FullJob());
  ASSERT_TRUE(RunUntilIteration(30));
  SetNewField(1);
  world_.RestartController();
  ExpectLeftAlone(10);
  world_.Delete();
  EXPECT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 120));
  ExpectNothingLeft();
}

TEST_F(NewerSpecTest, AJobThatHasFinishedExpires) {
  Json job = FullJob();
  job["spec"]["ttlSecondsAfterFinished"] = 60;
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  SetNewField(1);
  world_.RestartController();
  EXPECT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 120));
  EXPECT_THAT(Told(), IsEmpty());
}

}  // namespace
}  // namespace lambdadnn
