// SPDX-License-Identifier: Apache-2.0
// Jobs that stand still, whose ends nobody saw, or that are to be left alone.
#include <algorithm>
#include <cmath>

#include "operator/api/job_codec.h"
#include "operator/api/pause.h"
#include "operator/resources/job_key.h"
#include "operator/resources/slice_requests.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class JobTroubleTest : public JobLifeTest {};

TEST_F(JobTroubleTest, AUsersSecretOfTheKeysNameIsKept) {
  const ObjectName name{"default", "digits-lambdadnn-key"};
  ASSERT_TRUE(world_.server
                  .Create(SecretType(),
                          {{"apiVersion", "v1"},
                           {"kind", "Secret"},
                           {"metadata", {{"name", name.name}, {"namespace", name.namespace_name}}},
                           {"data", {{"key", "bWluZQ=="}}}})
                  .ok());
  world_.Create(JobWorld::MinimalJob());
  EXPECT_FALSE(world_.RunUntilFinished(60));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  EXPECT_EQ(world_.Reason("Ready"), "False/JobKeyUnusable");
  EXPECT_THAT(FindCondition(world_.Read(), "Ready")->message, HasSubstr("digits-lambdadnn-key"));
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  const Result<Json> secret = world_.server.Get(SecretType(), name);
  ASSERT_TRUE(secret.ok());
  EXPECT_EQ((*secret)["data"]["key"], "bWluZQ==");
}

// As of a gateway that never deletes a secret.
TEST_F(JobTroubleTest, WhatCannotBeReleasedKeepsNeitherTheReportNorTheOtherFunctions) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["aggregation"] = JobWorld::DedicatedServers();
  world_.functions.refuse_release[WorkersGroupName(1)] = UnavailableError("secret key-1: no");
  world_.functions.refuse_release[""] = UnavailableError("secret key-1: no");
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(240));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  EXPECT_EQ(Report()["plan"]["revision"], 1);
  EXPECT_EQ(world_.Reason("Degraded"), "True/ReleaseIncomplete");
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message, HasSubstr("secret key-1: no"));
  EXPECT_THAT(world_.told,
              testing::Contains(testing::Field(&EventDraft::reason, "ReleaseIncomplete")));
  // Another process goes on trying.
  world_.RestartController();
  world_.functions.refuse_release.clear();
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Degraded") == "False/Recovered"; }, 600));
  ExpectNothingLeft();
}

// What is asked of the data set of a job in its own store, and what comes of the answer.
class DatasetTroubleTest : public JobTroubleTest {
 protected:
  void AnswerWith(const Status& answer) {
    world_.check_dataset = [this, answer](const TrainingConfig& training, const auto& open) {
      ++asked_;
      uri_ = training.dataset.uri;
      EXPECT_TRUE(open("file:///elsewhere").ok());
      return answer.ok() ? Result<WorkloadFacts>(WorkloadFacts{}) : answer;
    };
    world_.RestartController();
  }
  int asked_ = 0;
  std::string uri_;
};

TEST_F(DatasetTroubleTest, AJobWhoseDataSetCannotBeTrainedOnFailsBeforeAFunctionStarts) {
  AnswerWith(NotFoundError("no CSV file in file:///data"));
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(20));
  EXPECT_EQ(world_.Reason("Failed"), "True/DatasetNotUsable");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message, HasSubstr("no CSV file"));
  EXPECT_EQ(uri_, "file:///data");
  EXPECT_THAT(world_.opened, testing::Contains("file:///elsewhere"));
  EXPECT_THAT(world_.functions.started(), IsEmpty());
  ExpectNothingLeft();
}

TEST_F(DatasetTroubleTest, WhatTheOperatorMayNotReadIsLeftToTheFunctions) {
  AnswerWith(PermissionDeniedError("not yours"));
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(asked_, 1);
}

TEST_F(DatasetTroubleTest, FilesOfFunctionsThatTheOperatorDoesNotHaveAreNotLookedFor) {
  AnswerWith(NotFoundError("no CSV file in file:///data"));
  Json job = JobWorld::MinimalJob();
  job["spec"]["objectStore"] = {{"bucket", "jobs"}};
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(asked_, 0);
}

// The same of a module.
class ModuleTroubleTest : public JobTroubleTest {
 protected:
  static Json JobOfModule() {
    Json job = JobWorld::MinimalJob();
    job["spec"]["model"] = {{"torchScript", {{"uri", "file:///data/module.pt"}}}};
    return job;
  }
  void AnswerWith(Result<ModuleFacts> answer) {
    world_.check_module = [this, answer](const TrainingConfig& training, const auto& open) {
      ++asked_;
      EXPECT_EQ(training.model.torch_script_uri, "file:///data/module.pt");
      EXPECT_TRUE(open("file:///data").ok());
      return answer;
    };
    world_.RestartController();
  }
  int asked_ = 0;
};

TEST_F(ModuleTroubleTest, AJobWhoseModuleCannotBeTrainedFailsBeforeAFunctionStarts) {
  AnswerWith(InvalidArgumentError("code/net.py has __setstate__; leave it out"));
  world_.Create(JobOfModule());
  ASSERT_TRUE(world_.RunUntilFinished(20));
  EXPECT_EQ(world_.Reason("Failed"), "True/ModelNotUsable");
  EXPECT_EQ(FindCondition(world_.Read(), "Failed")->message,
            "code/net.py has __setstate__; leave it out");
  EXPECT_THAT(world_.functions.started(), IsEmpty());
  ExpectNothingLeft();
}

TEST_F(ModuleTroubleTest, ItsDigestIsKeptAndToldToFunctionsToTheEnd) {
  AnswerWith(ModuleFacts{"sha256:01", true});
  world_.Create(JobOfModule());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.functions.Kill(world_.functions.InstanceOf("worker-1"), FunctionEnd::kOutOfMemory);
  world_.RestartController();
  // What lies there by now does not count.
  AnswerWith(ModuleFacts{"sha256:02", true});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job job = world_.Read();
  EXPECT_EQ(job.status.execution.module, (ModuleFacts{"sha256:01", true}));
  const SliceRequest slice = MakeTrainingSlice(job, {}, 1, 60);
  EXPECT_EQ(slice.training.model.module, job.status.execution.module);
  EXPECT_EQ(asked_, 1);
}

TEST_F(ModuleTroubleTest, FunctionsThatProfiledHaveTriedIt) {
  AnswerWith(ModuleFacts{"sha256:01", false});
  Json job = JobOfModule();
  job["spec"].erase("profile");
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.module, (ModuleFacts{"sha256:01", true}));
}

TEST_F(ModuleTroubleTest, AModuleThatTheOperatorMayNotReadIsLeftToTheFunctions) {
  AnswerWith(PermissionDeniedError("not yours"));
  world_.Create(JobOfModule());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.module, ModuleFacts{});
}

TEST_F(JobTroubleTest, AKeyThatIsLeftOfAnEarlierJobOfTheNameIsReplaced) {
  Job lost = *DecodeJob(JobWorld::MinimalJob());
  lost.metadata.uid = "a-lost-uid";
  Json secret = JobKeySecret(lost, {.key = "of the lost job"});
  secret["metadata"].erase("ownerReferences");  // as a backup restores it
  ASSERT_TRUE(world_.server.Create(SecretType(), secret).ok());
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, ARoundThatStandsStillFallsBack) {
  world_.functions.stuck_at = 50;
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  EXPECT_FALSE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation > 0; }, 55));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Degraded") == "True/Stalled"; }, 200));
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message,
              HasSubstr("no iteration ended for "));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.incarnation, 1);
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, ARoundThatAlwaysStandsStillFailsTheJob) {
  world_.functions.stuck_at = 50;
  world_.functions.stuck_incarnations = 100;
  Json job = JobWorld::MinimalJob();
  job["spec"]["backoffLimit"] = 1;
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Failed"), "True/BackoffLimitExceeded");
  EXPECT_EQ(world_.Reason("Stalled"), "True/BackoffLimitExceeded");
  EXPECT_EQ(world_.Reason("Ready"), "False/BackoffLimitExceeded");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message,
              HasSubstr("no iteration ended for "));
}

TEST_F(JobTroubleTest, SlicesThatLeftNoCheckpointFallBack) {
  Json job = JobWorld::MinimalJob();
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.lose_checkpoint = true;
  world_.Patch({{"spec", {{"suspend", true}}}});
  world_.RunUntil([&] { return !world_.functions.lose_checkpoint; }, 60);
  world_.Patch({{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_GT(world_.Read().status.execution.incarnation, 0);
}

TEST_F(JobTroubleTest, AFunctionThatCrashedWhileNobodyLookedFallsBack) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.functions.Kill(world_.functions.InstanceOf("worker-1"), FunctionEnd::kOutOfMemory);
  world_.RestartController();  // of the slice it never hears
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  ExpectNothingLeft();
}

// What the API server keeps of it differs from what was sent: it must not be sent again and again.
TEST(TextThatIsNotUtf8, OfAStoreIsWrittenAsOftenAsAnyOther) {
  const auto effects = [](const std::string& text) {
    JobWorld world;
    world.store_rule = [text](const std::string&, std::string_view) {
      return PermissionDeniedError("says " + text + " to you");
    };
    world.Create(JobWorld::MinimalJob());
    world.RunUntil([] { return false; }, 300);
    return std::pair(world.effects(), FindCondition(world.Read(), "Accepted")->message);
  };
  const auto [good, good_message] = effects("ab");
  const auto [bad, bad_message] = effects("\xFF\xFE");
  EXPECT_THAT(good_message, HasSubstr("says ab to you"));
  EXPECT_THAT(bad_message, HasSubstr("says \xEF\xBF\xBD\xEF\xBF\xBD to you"));
  EXPECT_EQ(bad, good);
}

TEST_F(JobTroubleTest, ALogThatIsNotUtf8HoldsUpNobody) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  const std::string uid = world_.functions.InstanceOf("worker-1");
  world_.functions.logs[uid] = "before\nterminate: \xFF\xFE\n";
  world_.functions.Kill(uid, FunctionEnd::kByItself);
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Reason("Degraded").empty(); }, 60));
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message,
              HasSubstr("terminate: \xEF\xBF\xBD\xEF\xBF\xBD"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, AFunctionThatIsAskedInVainIsGivenUp) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  const std::string uid = world_.functions.InstanceOf("worker-1");
  world_.functions.CutOff(uid);
  EXPECT_FALSE(world_.RunUntil([&] { return world_.Read().status.usage.restarts > 0; }, 25));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.usage.restarts > 0; }, 30));
  const std::vector<std::string> live = world_.functions.Live();
  EXPECT_EQ(std::find(live.begin(), live.end(), uid), live.end());
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, APausedJobIsLeftAloneUntilItIsNotPaused) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"metadata", {{"annotations", {{kPausedAnnotation, "true"}}}}}});
  const std::string version = world_.Read().metadata.resource_version;
  const size_t live = world_.functions.Live().size();
  world_.RunUntil([] { return false; }, 300);  // several slices long
  EXPECT_EQ(world_.Read().metadata.resource_version, version) << "something was written";
  EXPECT_THAT(world_.functions.Live(), SizeIs(live));
  EXPECT_EQ(world_.Reason("SuccessCriteriaMet"), "") << "it was decided upon";
  world_.RestartController();
  world_.RunUntil([] { return false; }, 60);
  EXPECT_EQ(world_.Read().metadata.resource_version, version);

  world_.Patch({{"metadata", {{"annotations", {{kPausedAnnotation, nullptr}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, ADeletionEndsAPause) {
  Json job = JobWorld::MinimalJob();
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"metadata", {{"annotations", {{kPausedAnnotation, "true"}}}}}});
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, AJobOfAnotherControllerIsNeverTouched) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["managedBy"] = "example.com/other";
  job["metadata"]["finalizers"] = {"example.com/theirs"};
  world_.Create(job);
  const std::string version = world_.Read().metadata.resource_version;
  world_.RunUntil([] { return false; }, 60);
  EXPECT_EQ(world_.Read().metadata.resource_version, version);
  EXPECT_THAT(world_.functions.started(), IsEmpty());
}

TEST_F(JobTroubleTest, AStoreThatFillsUpIsToldUntilTheJobGoesOn) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["training"]["epochs"] = 3;
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(50));
  world_.store_rule = [](const std::string&, std::string_view) {
    return ResourceExhaustedError("No space left on device; free some space");
  };
  for (const std::string& uid : world_.functions.Live()) world_.functions.Kill(uid);
  world_.RunUntil([] { return false; }, 4);
  EXPECT_NE(world_.Reason("Degraded"), "True/StoreNotUsable") << "it may have been restarted";
  world_.RunUntil([] { return false; }, 60);
  EXPECT_EQ(world_.Reason("Degraded"), "True/StoreNotUsable");
  const JobStatus status = world_.Read().status;
  EXPECT_THAT(FindCondition(status.conditions, kConditionDegraded)->message,
              HasSubstr("No space left on device; free some space; it is tried again"));
  world_.store_rule = nullptr;
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Reason("Degraded"), "False/Recovered");
}

class DamagedCheckpointTest : public JobLifeTest {
 protected:
  // A job at an iteration beyond its second checkpoint (every 20 iterations) whose functions were
  // killed. Nobody has acted on that yet.
  void RunAndKill() {
    Json job = JobWorld::MinimalJob();
    job["spec"]["backoffLimit"] = 0;
    job["spec"]["training"]["epochs"] = 3;
    world_.Create(job);
    ASSERT_TRUE(RunUntilIteration(50));
    for (const std::string& uid : world_.functions.Live()) world_.functions.Kill(uid);
  }
  std::vector<std::string> Parts() {
    std::vector<std::string> parts;
    for (const std::string& key : world_.Keys()) {
      const bool part = key.find("/checkpoints/") != std::string::npos;
      if (part && !key.ends_with("/manifest.json")) parts.push_back(key);
    }
    return parts;
  }
  // One byte becomes another; the size stays. Negative offsets count from the end.
  void Damage(const std::string& key, int64_t offset) {
    Bytes bytes = world_.memory_store.Get(key).value();
    const auto at = static_cast<size_t>(offset < 0 ? std::ssize(bytes) + offset : offset);
    bytes[at] ^= std::byte{1};
    ASSERT_TRUE(world_.memory_store.Put(key, bytes).ok());
  }
  std::string PartOf(int64_t iteration) {
    const std::string folder = "/checkpoints/" + std::to_string(iteration) + "/";
    for (const std::string& key : Parts()) {
      if (key.find(folder) != std::string::npos) return key;
    }
    ADD_FAILURE() << "no checkpoint of iteration " << iteration;
    return "";
  }
  bool AnyStartedAt(const std::string& iteration) {
    const auto& started = world_.functions.started();
    return std::any_of(started.begin(), started.end(), [&](const std::string& invocation) {
      return invocation.find(".f" + iteration + ".") != std::string::npos;
    });
  }
};

TEST_F(DamagedCheckpointTest, TheNewestReadableOneWinsWhateverByteIsWrong) {
  for (const int64_t offset : {0, 130, -1}) {  // header, weights, the end
    SCOPED_TRACE(offset);
    RunAndKill();
    Damage(PartOf(40), offset);
    ASSERT_TRUE(world_.RunUntilFinished(300));
    EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
    EXPECT_TRUE(AnyStartedAt("40")) << "nobody met the damage";
    EXPECT_TRUE(AnyStartedAt("20"));
    EXPECT_EQ(world_.Read().status.execution.failures, 0) << "the store's doing, not the job's";
    EXPECT_EQ(world_.Read().status.model_digest, "digest-150");
    world_.Delete();
    ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
    world_.functions.ForgetGone();
  }
}

TEST_F(DamagedCheckpointTest, IsNotChosenAgainAfterTheNextLoss) {
  RunAndKill();
  Damage(PartOf(40), 130);
  ASSERT_TRUE(world_.RunUntil([&] { return AnyStartedAt("20"); }, 60));
  const auto incarnation = world_.Read().status.execution.incarnation;
  for (const std::string& uid : world_.functions.Live()) world_.functions.Kill(uid);
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.incarnation, incarnation + 1)
      << "the damaged one was tried once more";
}

TEST_F(DamagedCheckpointTest, ARestartedControllerFindsTheDamageItself) {
  RunAndKill();
  Damage(PartOf(40), 130);
  ASSERT_TRUE(world_.RunUntil([&] { return AnyStartedAt("40"); }, 60));
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_TRUE(AnyStartedAt("20"));
}

TEST_F(DamagedCheckpointTest, AJobWithNoReadableOneFailsAndSaysWhatIsDamaged) {
  RunAndKill();
  for (const std::string& part : Parts()) Damage(part, 130);
  const std::vector<std::string> parts = Parts();
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Failed"), "True/BackoffLimitExceeded");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message,
              HasSubstr("reading checkpoint part"));
  EXPECT_EQ(Parts(), parts) << "there is nothing better to keep";
}

TEST_F(DamagedCheckpointTest, AFailedJobKeepsTheNewestThatCanBeRead) {
  RunAndKill();
  const std::string readable = PartOf(20);
  Damage(PartOf(40), 130);
  world_.functions.FailNext("worker-0", InternalError("no such layer"), true);
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Failed"), "True/SliceFailed");
  EXPECT_EQ(Parts(), std::vector<std::string>{readable});
}

TEST_F(JobTroubleTest, TheActiveDeadlineBeginsAnewOnResume) {
  Json job = JobWorld::MinimalJob();
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(70));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  const double before = world_.Read().status.execution.active_seconds;
  // The second life takes less; both together take more.
  const auto limit = static_cast<int64_t>(std::ceil(before));
  world_.Patch({{"spec", {{"suspend", false}, {"activeDeadlineSeconds", limit}}}});
  ASSERT_TRUE(world_.RunUntilFinished(100));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_GT(Report()["actual"]["seconds"].get<double>(), static_cast<double>(limit));
}

TEST_F(JobTroubleTest, ASuspendedJobDoesNotExceedItsActiveDeadline) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(40));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  world_.Patch({{"spec", {{"activeDeadlineSeconds", 1}}}});
  EXPECT_FALSE(world_.RunUntilFinished(60));
  EXPECT_EQ(world_.Read().status.phase, "Suspended");
  // It has a second then.
  world_.Patch({{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(60));
  EXPECT_EQ(world_.Reason("Failed"), "True/DeadlineExceeded");
}

}  // namespace
}  // namespace lambdadnn
