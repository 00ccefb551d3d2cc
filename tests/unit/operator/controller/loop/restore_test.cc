// SPDX-License-Identifier: Apache-2.0
// Jobs whose cluster is lost and whose objects are restored from a backup, as Velero does it: what
// the store holds decides how they go on.
#include <algorithm>

#include "common/json/dump_json.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_id.h"
#include "operator/controller/store/job_place.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/resources/slice_requests.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

enum class Backup { kWithoutStatus, kWithStatus };

Json StoredIn(JobWorld& world) {
  return world.server.Get(ServerlessTrainingJobType(), {"default", "digits"}).value();
}

// Neither finalizers nor functions come to an end in order.
void LoseClusterOf(JobWorld& world) {
  for (const std::string& uid : world.functions.Live()) world.functions.Kill(uid);
  world.Patch({{"metadata", {{"finalizers", nullptr}}}});
  world.Delete();
  world.functions.ForgetGone();
  world.RestartController();
}

// What is left of an object in a backup, made anew: it has another uid.
void RestoreIn(JobWorld& world, const Json& object, Backup backup) {
  Json metadata = {{"name", object["metadata"]["name"]}, {"namespace", "default"}};
  for (const char* kept : {"labels", "annotations", "finalizers"}) {
    if (object["metadata"].contains(kept)) metadata[kept] = object["metadata"][kept];
  }
  Json created = object;
  created["metadata"] = metadata;
  created.erase("status");
  world.Create(created);
  if (backup == Backup::kWithoutStatus || !object.contains("status")) return;
  const auto written = world.server.Patch(ServerlessTrainingJobType(), {"default", "digits"},
                                          {{"status", object["status"]}}, Subresource::kStatus);
  ASSERT_TRUE(written.ok()) << written.status().ToString();
}

class RestoreTest : public JobLifeTest {
 protected:
  Json Stored() { return StoredIn(world_); }
  void LoseCluster() {
    LoseClusterOf(world_);
    requests_before_ = world_.functions.requests().size();
  }
  void Restore(const Json& object, Backup backup) { RestoreIn(world_, object, backup); }
  void LoseAndRestore(Backup backup) {
    const Json object = Stored();
    LoseCluster();
    Restore(object, backup);
  }
  // Of the functions since the cluster was lost.
  std::vector<SliceRequest> NewRequests() const {
    std::vector<SliceRequest> requests;
    const auto& all = world_.functions.requests();
    for (size_t i = requests_before_; i < all.size(); ++i) requests.push_back(all[i].second);
    return requests;
  }
  std::string MessageOf(const char* condition) {
    const Job job = world_.Read();
    const Condition* found = FindCondition(job, condition);
    return found == nullptr ? "" : found->message;
  }
  void Annotate(const Json& id) {
    world_.Patch({{"metadata", {{"annotations", {{kJobIdAnnotation, id}}}}}});
  }
  std::vector<std::string> EventsOf(Reason reason) const {
    std::vector<std::string> notes;
    for (const EventDraft& event : world_.told) {
      if (event.reason == ReasonText(reason)) notes.push_back(event.note);
    }
    return notes;
  }

  size_t requests_before_ = 0;
};

class RestoredJob : public RestoreTest, public testing::WithParamInterface<Backup> {};

TEST_P(RestoredJob, ThatRanGoesOnFromItsNewestCheckpointUnderTheSamePlan) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  const Job lost = world_.Read();
  LoseAndRestore(GetParam());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job job = world_.Read();
  EXPECT_NE(job.metadata.uid, lost.metadata.uid);
  EXPECT_EQ(JobPrefix(job), JobPrefix(lost));
  EXPECT_EQ(job.status.execution.predecessor_uid, lost.metadata.uid);
  EXPECT_EQ(job.status.execution.job_uid, job.metadata.uid);
  EXPECT_EQ(world_.Reason("Provisioned"), "True/Restored");
  const std::vector<SliceRequest> requests = NewRequests();
  ASSERT_FALSE(requests.empty());
  for (const SliceRequest& request : requests) {
    EXPECT_GE(request.first_iteration, 40);
    EXPECT_GT(request.incarnation, lost.status.execution.incarnation);
    EXPECT_EQ(request.plan.revision, 1);
    EXPECT_EQ(request.job.uid, job.metadata.uid);
  }
  EXPECT_EQ(requests.front().start->prefix, JobPrefix(lost));
  EXPECT_LE(world_.functions.iterations_done(), 120);
  EXPECT_EQ(job.status.model_digest, "digest-100");
  EXPECT_EQ(job.status.plan_history, lost.status.plan_history);
  ExpectNothingLeft();
}

TEST_P(RestoredJob, WasNotYetPlanned) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Read().metadata.finalizers.empty(); }, 10));
  LoseAndRestore(GetParam());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), 100);
  ExpectNothingLeft();
}

TEST_P(RestoredJob, ThatWasCompleteIsCompleteAndStartsNothing) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Job lost = world_.Read();
  const Json report = Report();
  LoseAndRestore(GetParam());
  ASSERT_TRUE(world_.RunUntilFinished(30));
  (void)world_.RunUntil([] { return false; }, 30);
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job job = world_.Read();
  EXPECT_EQ(job.status.model_uri, lost.status.model_uri);
  EXPECT_EQ(job.status.model_digest, lost.status.model_digest);
  EXPECT_THAT(NewRequests(), IsEmpty());
  EXPECT_EQ(Report(), report);
  ExpectNothingLeft();
}

TEST_P(RestoredJob, ThatHadFailedHasFailed) {
  world_.functions.FailNext("worker-1", InvalidArgumentError("the loss is NaN"), true);
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  ASSERT_EQ(world_.Reason("Failed"), "True/SliceFailed");
  const Json report = Report();
  LoseAndRestore(GetParam());
  ASSERT_TRUE(world_.RunUntilFinished(30));
  EXPECT_EQ(world_.Reason("Failed"), "True/SliceFailed");
  EXPECT_THAT(MessageOf("Failed"), HasSubstr("the loss is NaN"));
  EXPECT_THAT(NewRequests(), IsEmpty());
  EXPECT_EQ(Report(), report);
}

TEST_P(RestoredJob, ThatWasSuspendedStaysSoAndGoesOnWhenItIsResumed) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  LoseAndRestore(GetParam());
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  (void)world_.RunUntil([] { return false; }, 30);
  EXPECT_THAT(NewRequests(), IsEmpty());
  world_.Patch({{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), 100);  // it had stopped at a checkpoint
  ExpectNothingLeft();
}

TEST_P(RestoredJob, OfAnOlderBackupGoesOnFromWhereTheStoreIs) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(10));
  const Json backup = Stored();
  // Another incarnation, which the backup does not know of.
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(RunUntilIteration(60));
  const Job lost = world_.Read();
  ASSERT_GT(lost.status.execution.incarnation, 0);
  LoseCluster();
  Restore(backup, GetParam());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  for (const SliceRequest& request : NewRequests()) {
    EXPECT_GT(request.incarnation, lost.status.execution.incarnation);
    EXPECT_GE(request.first_iteration, 40);
  }
  ExpectNothingLeft();
}

TEST_P(RestoredJob, IsRestoredAgain) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  LoseAndRestore(GetParam());
  ASSERT_TRUE(RunUntilIteration(60));
  const std::string second = world_.Read().metadata.uid;
  LoseAndRestore(GetParam());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.predecessor_uid, second);
  EXPECT_GE(NewRequests().front().first_iteration, 40);
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(Backups, RestoredJob,
                         testing::Values(Backup::kWithoutStatus, Backup::kWithStatus),
                         [](const auto& each) {
                           return each.param == Backup::kWithStatus ? "WithStatus"
                                                                    : "WithoutStatus";
                         });

TEST(RestoreFaults, WhateverEffectOfTheRestorationFailsTheJobGoesOn) {
  constexpr int64_t kEffects = 16;  // until the first slices run, and some more
  for (const EffectFault kind : {EffectFault::kFailBefore, EffectFault::kLoseReply,
                                 EffectFault::kDieBefore, EffectFault::kDieAfter}) {
    for (int64_t effect = 0; effect < kEffects; ++effect) {
      SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + " at " + std::to_string(effect));
      JobWorld world;
      world.Create(JobWorld::MinimalJob());
      ASSERT_TRUE(world.RunUntil([&] { return world.Read().status.progress.iteration >= 50; }, 60));
      const Json backup = StoredIn(world);
      LoseClusterOf(world);
      RestoreIn(world, backup, effect % 2 == 0 ? Backup::kWithStatus : Backup::kWithoutStatus);
      world.Inject(world.effects() + effect, kind);
      ASSERT_TRUE(world.RunUntilFinished(200));
      // An effect that fails by itself has no reply.
      const bool before = kind == EffectFault::kFailBefore || kind == EffectFault::kDieBefore;
      EXPECT_TRUE(world.fault_happened() || !before);
      EXPECT_EQ(world.Reason("Complete"), "True/TrainingFinished");
      EXPECT_EQ(world.Read().status.model_digest, "digest-100");
      EXPECT_EQ(world.functions.max_running_per_role(), 1);
      EXPECT_LE(world.functions.iterations_done(), 140);
      EXPECT_THAT(world.Keys(), Each(HasSubstr("/results/")));
    }
  }
}

TEST_F(RestoreTest, ACompleteJobThatWasDeletedAndIsRestoredIsComplete) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Json backup = Stored();
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  const int64_t done = world_.functions.iterations_done();
  Restore(backup, Backup::kWithoutStatus);
  ASSERT_TRUE(world_.RunUntilFinished(30));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), done);
}

TEST_F(RestoreTest, ACompleteJobWhoseModelIsGoneSaysSo) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Job lost = world_.Read();
  ASSERT_TRUE(world_.memory_store.Delete(JobPrefix(lost) + "/results/model.safetensors").ok());
  LoseAndRestore(Backup::kWithoutStatus);
  ASSERT_TRUE(world_.RunUntilFinished(30));
  EXPECT_EQ(world_.Reason("Failed"), "True/ResultsMissing");
  EXPECT_EQ(MessageOf("Failed"),
            "the job was trained before it was restored, but its model is not in file:///store/" +
                JobPrefix(lost) +
                "/results; restore the object store as well, or remove the annotation "
                "lambdadnn.io/job-id from the manifest to train again");
  EXPECT_THAT(NewRequests(), IsEmpty());
}

TEST_F(RestoreTest, UsageGoesOn) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(RunUntilIteration(60));
  LoseAndRestore(Backup::kWithoutStatus);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const UsageStatus usage = world_.Read().status.usage;
  EXPECT_GE(usage.restarts, 1);  // of the lost object
  EXPECT_GE(usage.cold_starts, 6);
}

TEST_F(RestoreTest, AnotherTrainingBeginsInAPlaceOfItsOwn) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Job lost = world_.Read();
  const std::vector<std::string> kept = world_.Keys();
  Json backup = Stored();
  LoseCluster();
  backup["spec"]["training"]["seed"] = 8;
  Restore(backup, Backup::kWithoutStatus);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job job = world_.Read();
  EXPECT_EQ(JobIdOf(job), OwnJobId(job.metadata));
  EXPECT_EQ(AnnotatedJobId(job), OwnJobId(job.metadata));
  EXPECT_NE(JobPrefix(job), JobPrefix(lost));
  EXPECT_EQ(world_.functions.iterations_done(), 200);
  EXPECT_THAT(EventsOf(Reason::kPlaceNotUsed),
              Contains(HasSubstr("it is of another model, dataset or training")));
  for (const std::string& key : kept) EXPECT_THAT(world_.Keys(), Contains(key));
}

TEST_F(RestoreTest, APlaceWithoutAReadableRecordIsNotUsed) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  const Job lost = world_.Read();
  const Json backup = Stored();
  LoseCluster();
  ASSERT_TRUE(
      world_.memory_store.Put(PlaceRecordKey(JobPrefix(lost)), AsBytes(R"({"uid":"x"})")).ok());
  Restore(backup, Backup::kWithStatus);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_NE(JobPrefix(world_.Read()), JobPrefix(lost));
  EXPECT_EQ(NewRequests().front().first_iteration, 0);
  EXPECT_THAT(world_.Keys(), Contains(StartsWith(JobPrefix(lost) + "/checkpoints/")));
}

TEST_F(RestoreTest, ARecordWhoseCheckpointsAreGoneIsNotUsed) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(RunUntilIteration(50));
  const Job lost = world_.Read();
  ASSERT_GT(lost.status.execution.first_iteration, 0);
  const Json backup = Stored();
  LoseCluster();
  ASSERT_TRUE(DeletePrefix(world_.memory_store, JobPrefix(lost) + "/checkpoints/").ok());
  Restore(backup, Backup::kWithoutStatus);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_NE(JobPrefix(world_.Read()), JobPrefix(lost));
  EXPECT_THAT(EventsOf(Reason::kPlaceNotUsed), Contains(HasSubstr("no complete checkpoint")));
}

// --- Ids that are not the job's ---

class ForgedId : public RestoreTest, public testing::WithParamInterface<const char*> {};

TEST_P(ForgedId, IsReplacedAndLeadsNowhere) {
  Json job = JobWorld::MinimalJob();
  job["metadata"]["annotations"] = {{kJobIdAnnotation, GetParam()}};
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job done = world_.Read();
  const std::string own = "lambdadnn/default/" + OwnJobId(done.metadata);
  EXPECT_EQ(JobPrefix(done), own);
  EXPECT_EQ(AnnotatedJobId(done), OwnJobId(done.metadata));
  EXPECT_THAT(world_.Keys(), Each(StartsWith(own + "/results/")));
  EXPECT_THAT(EventsOf(Reason::kPlaceNotUsed), Contains(HasSubstr("is not the id of this job")));
}

INSTANTIATE_TEST_SUITE_P(Ids, ForgedId,
                         testing::Values("other-4f6c2b1e9d3a", "digits", "digits-", "digitsx-1",
                                         "digits-../other-1", "digits-1/..",
                                         "../kube-system/digits-1", "digits-1/checkpoints",
                                         "digits-A", "digits-1-2", "digits-1%2f",
                                         "digits-0123456789012345678901234567890123456", "\xff",
                                         "other/digits-1", " digits-1", "digits-1\n"));

TEST_F(RestoreTest, AnIdThatAUserChoseIsKept) {
  Json job = JobWorld::MinimalJob();
  job["metadata"]["annotations"] = {{kJobIdAnnotation, "digits-production1"}};
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_THAT(world_.Keys(), Each(StartsWith("lambdadnn/default/digits-production1/results/")));
}

TEST_F(RestoreTest, AChangedOrRemovedIdOfALivingJobChangesNothingAndIsPutBack) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(10));
  const std::string id = AnnotatedJobId(world_.Read());
  const std::string prefix = JobPrefix(world_.Read());
  for (const Json& other : {Json("digits-other"), Json(nullptr), Json("../x")}) {
    Annotate(other);
    ASSERT_TRUE(world_.RunUntil([&] { return AnnotatedJobId(world_.Read()) == id; }, 10));
    EXPECT_EQ(JobPrefix(world_.Read()), prefix);
  }
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.functions.iterations_done(), 100);  // it was not disturbed
  EXPECT_THAT(world_.Keys(), Each(StartsWith(prefix + "/results/")));
  Annotate("digits-other");
  ASSERT_TRUE(world_.RunUntil([&] { return AnnotatedJobId(world_.Read()) == id; }, 400));
}

TEST_F(RestoreTest, ACopyUnderAnotherNameHasAPlaceOfItsOwn) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  Json copy = Stored();
  copy["metadata"] = {
      {"name", "copy"}, {"namespace", "default"}, {"annotations", copy["metadata"]["annotations"]}};
  copy.erase("status");
  world_.Create(copy);
  const auto both = [&] { return IsFinished(world_.Read()) && IsFinished(world_.Read("copy")); };
  ASSERT_TRUE(world_.RunUntil(both, 300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Reason("Complete", "copy"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), 200);
  EXPECT_NE(JobPrefix(world_.Read()), JobPrefix(world_.Read("copy")));
}

TEST_F(RestoreTest, StatusCannotMoveTheJobToAnotherName) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(10));
  const std::string prefix = JobPrefix(world_.Read());
  const auto written = world_.server.Patch(
      ServerlessTrainingJobType(), {"default", "digits"},
      {{"status", {{"execution", {{"jobId", "other-4f6c2b1e9d3a"}}}}}}, Subresource::kStatus);
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(JobPrefix(world_.Read()), prefix);
  EXPECT_THAT(world_.Keys(), Each(StartsWith(prefix + "/results/")));
}

// --- What functions may write of their job ---

class ForgedPlaceTest : public RestoreTest {
 protected:
  // Loses a running job and restores it with the record of its place changed by `forge`.
  void RestoreForged(const std::function<void(Json&)>& forge) {
    world_.Create(JobWorld::MinimalJob());
    ASSERT_TRUE(RunUntilIteration(50));
    prefix_ = JobPrefix(world_.Read());
    const Json backup = Stored();
    LoseCluster();
    const std::string key = PlaceRecordKey(prefix_);
    Json record = *ParseJson(AsText(*world_.memory_store.Get(key)));
    forge(record);
    ASSERT_TRUE(world_.memory_store.Put(key, AsBytes(DumpJson(record))).ok());
    Restore(backup, Backup::kWithoutStatus);
    ASSERT_TRUE(world_.RunUntilFinished(300));
  }

  std::string prefix_;
};

TEST_F(ForgedPlaceTest, APlanBeyondThePlatformStartsNothingOfThatSize) {
  RestoreForged([](Json& record) {
    record["status"]["plan"]["memory"] = "64Gi";
    record["status"]["execution"].erase("plannedFor");
  });
  for (const SliceRequest& request : NewRequests()) {
    EXPECT_LE(request.plan.memory_mib, world_.options.platform.memory.max_mib);
  }
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(ForgedPlaceTest, ACheckpointOfAnotherPlaceIsNotReadFrom) {
  RestoreForged([](Json& record) {
    record["status"]["execution"]["startCheckpoint"] = {{"prefix", "lambdadnn/other/secret-1"},
                                                        {"iteration", 40}};
    record["status"]["execution"]["jobId"] = "other-4f6c2b1e9d3a";
  });
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(JobPrefix(world_.Read()), prefix_);
  for (const SliceRequest& request : NewRequests()) {
    EXPECT_EQ(request.store.prefix, prefix_);
    EXPECT_TRUE(!request.start.has_value() || request.start->prefix == prefix_);
  }
}

TEST_F(ForgedPlaceTest, AnIncarnationThatCannotBeIsNotCountedOn) {
  RestoreForged([this](Json&) {
    const std::string forged = prefix_ + "/checkpoints/1/r1.i9223372036854775807/manifest.json";
    ASSERT_TRUE(world_.memory_store.Put(forged, AsBytes(std::string_view("{}"))).ok());
  });
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_LT(world_.Read().status.execution.incarnation, 100);
}

// --- Two objects with one place ---

class TakenPlace : public RestoreTest {
 protected:
  // As the operator of another cluster does, for an object that it has restored.
  void TakeOver() {
    Job other = world_.Read();
    other.metadata.uid = "of-another-cluster";
    prefix_ = JobPrefix(other);
    ++other.status.execution.incarnation;
    ASSERT_TRUE(
        world_.memory_store.Put(PlaceRecordKey(prefix_), AsBytes(EncodePlaceRecord(other, 1)))
            .ok());
  }
  void ExpectPlaceUntouched(const std::vector<std::string>& before) {
    const std::vector<std::string> now = world_.Keys();
    for (const std::string& key : before) {
      if (key.find("/x/") != std::string::npos) continue;
      EXPECT_THAT(now, Contains(key));
    }
    EXPECT_THAT(now, Not(Contains(HasSubstr("/results/"))));
  }

  std::string prefix_;
};

TEST_F(TakenPlace, TheFirstStopsAtItsNextRoundAndLeavesThePlaceAlone) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  TakeOver();
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Failed"), "True/PlaceTaken");
  EXPECT_THAT(MessageOf("Failed"), HasSubstr("of-another-cluster has taken over the job's place"));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  const std::vector<std::string> kept = world_.Keys();
  EXPECT_THAT(kept, Contains(StartsWith(prefix_ + "/checkpoints/")));
  ExpectPlaceUntouched(kept);
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  ExpectPlaceUntouched(kept);
}

TEST_F(TakenPlace, ANewControllerOfTheFirstJoinsNothing) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  TakeOver();
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Failed"), "True/PlaceTaken");
}

TEST_F(TakenPlace, DeletingTheFirstLeavesThePlaceAlone) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  TakeOver();
  const std::vector<std::string> kept = world_.Keys();
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  ExpectPlaceUntouched(kept);
}

TEST_F(TakenPlace, ARestoredObjectThatIsDeletedBeforeItHasTakenOverLeavesThePlaceAlone) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  const Json backup = Stored();
  LoseCluster();
  const std::vector<std::string> kept = world_.Keys();
  Restore(backup, Backup::kWithoutStatus);
  world_.store_rule = [](const std::string&, std::string_view object) -> Status {
    return object.find("records/job.json") == std::string_view::npos
               ? OkStatus()
               : UnavailableError("it does not answer");
  };
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Accepted") == "True/SpecValid"; }, 10));
  world_.store_rule = nullptr;
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  ExpectPlaceUntouched(kept);
}

}  // namespace
}  // namespace lambdadnn
