// SPDX-License-Identifier: Apache-2.0
// A status that a newer operator wrote, and a CRD that allows it: an operator that was put back to
// this version leaves alone what it does not know, goes on from what it does, and fails nobody's
// job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/protocol/slice_codec.h"
#include "operator/controller/observe/job_memory.h"
#include "operator/kinds/serverless_training_job.h"
#include "tests/unit/operator/controller/job_life_fixture.h"
#include "tests/unit/operator/controller/loop/open_schema.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr const char* kFuture = "fromTheFuture";
const Json kSaid = {{"x", 1}};

// In every map of it, and in those of its lists.
void AddUnknownFields(Json* value) {
  if (value->is_object()) (*value)[kFuture] = kSaid;
  if (!value->is_structured()) return;
  for (auto& [name, item] : value->items()) {
    if (name != kFuture) AddUnknownFields(&item);
  }
}

class NewerStatusTest : public JobLifeTest {
 protected:
  void SetUp() override { TakeAnythingFor("status", &world_.server); }
  Json StoredStatus() {
    return world_.server.Get(ServerlessTrainingJobType(), {"default", "digits"}).value()["status"];
  }
  // As another operator would, while none of this version runs.
  void WriteStatus(const Json& status) {
    const auto written = world_.server.Patch(ServerlessTrainingJobType(), {"default", "digits"},
                                             {{"status", status}}, Subresource::kStatus);
    ASSERT_TRUE(written.ok()) << written.status().ToString();
    world_.RestartController();
  }
  void BeginRunning() {
    world_.Create(JobWorld::MinimalJob());
    ASSERT_TRUE(RunUntilIteration(30));
  }
  bool WasLeftAlone(double seconds) {
    const Json before = StoredStatus();
    const size_t live = world_.functions.Live().size();
    (void)world_.RunUntil([] { return false; }, seconds);
    return StoredStatus() == before && world_.functions.Live().size() == live;
  }
};

TEST_F(NewerStatusTest, UnknownFieldsAtEveryLevelStayAndTheJobGoesOn) {
  BeginRunning();
  Json status = StoredStatus();
  AddUnknownFields(&status);
  WriteStatus(status);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Json after = StoredStatus();
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(after["plan"]["revision"], 1) << "nothing was planned anew";
  EXPECT_EQ(after["execution"]["incarnation"], 0) << "nor begun anew";
  for (const char* path :
       {"", "/plan", "/plan/aggregation", "/plan/predicted", "/planHistory/0", "/profile",
        "/profile/trainingRate", "/execution", "/execution/plannedFor",
        "/execution/plannedFor/objective", "/execution/plannedFor/objective/fixed", "/progress",
        "/progress/metrics/0", "/usage", "/workers", "/summary"}) {
    EXPECT_EQ(after.at(Json::json_pointer(path)).value(kFuture, Json()), kSaid) << path;
  }
  for (const Json& condition : after["conditions"]) {
    const bool was_there =
        condition["type"] != "SuccessCriteriaMet" && condition["type"] != "Complete";
    EXPECT_EQ(condition.contains(kFuture), was_there) << condition["type"];
  }
  for (const auto& [at, request] : world_.functions.requests()) {
    EXPECT_THAT(EncodeSliceRequest(request), Not(HasSubstr(kFuture)));
  }
}

TEST_F(NewerStatusTest, RecordsOfOldPlansKeepTheirUnknownFieldsBesideANewOne) {
  BeginRunning();
  Json status = StoredStatus();
  AddUnknownFields(&status);
  WriteStatus(status);
  world_.Patch({{"spec",
                 {{"aggregation", nullptr},
                  {"objective", {{"fixed", {{"functions", 3}, {"memory", "512Mi"}}}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  const Json after = StoredStatus();
  ASSERT_THAT(after["planHistory"], SizeIs(2));
  EXPECT_EQ(after["planHistory"][0].value(kFuture, Json()), kSaid);
  EXPECT_FALSE(after["planHistory"][1].contains(kFuture));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(NewerStatusTest, AFieldThatIsAbsentFromPlannedForHasItsDefault) {
  BeginRunning();
  Json status = StoredStatus();
  Json& planned_for = status["execution"]["plannedFor"];
  ASSERT_EQ(planned_for["functions"]["min"], 1);
  planned_for["functions"].erase("min");
  planned_for["aggregation"].erase("transport");
  WriteStatus({{"execution", {{"plannedFor", nullptr}}}});
  WriteStatus({{"execution", {{"plannedFor", planned_for}}}});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Read().status.plan->revision, 1);
  EXPECT_EQ(world_.Read().status.execution.incarnation, 0);
}

TEST_F(NewerStatusTest, ASignatureInPlannedForKeepsThePlanAndGoes) {
  BeginRunning();
  WriteStatus({{"execution", {{"plannedFor", "0123456789abcdef"}}}});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Read().status.plan->revision, 1);
  EXPECT_FALSE(StoredStatus()["execution"].contains("plannedFor"));
}

TEST_F(NewerStatusTest, APlanThatCannotBeReadLeavesTheJobAlone) {
  BeginRunning();
  const Json before = StoredStatus()["plan"]["aggregation"]["transport"];
  WriteStatus({{"plan", {{"aggregation", {{"transport", "Pigeon"}}}}}});
  EXPECT_TRUE(WasLeftAlone(300));
  EXPECT_THAT(world_.Described(), HasSubstr("status.plan.aggregation.transport"));
  // Where its user looks: one event.
  const auto says_so = [](const EventDraft& event) { return event.reason == "StatusUnreadable"; };
  EXPECT_EQ(std::ranges::count_if(world_.told, says_so), 1);
  // The operator that can read it takes over again.
  WriteStatus({{"plan", {{"aggregation", {{"transport", before}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(NewerStatusTest, AJobThatIsLeftAloneCanBeDeleted) {
  BeginRunning();
  WriteStatus({{"plan", {{"aggregation", {{"transport", "Pigeon"}}}}}});
  EXPECT_TRUE(WasLeftAlone(10));
  world_.Delete();
  EXPECT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 120));
  ExpectNothingLeft();
}

TEST_F(NewerStatusTest, MeasurementsThatCannotBeReadAreTakenAsNotWritten) {
  BeginRunning();
  WriteStatus({{"progress", {{"epoch", "the second"}}},
               {"usage", {{"restarts", {{"of", "workers"}}}}},
               {"workers", 7},
               {"phase", {{"name", "Running"}}}});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Json after = StoredStatus();
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(after["phase"], "Complete");
  EXPECT_EQ(after["progress"]["epoch"], 2);
  EXPECT_EQ(after["usage"]["restarts"], 0);
  EXPECT_EQ(after["workers"]["desired"], 0);
}

}  // namespace
}  // namespace lambdadnn
