// SPDX-License-Identifier: Apache-2.0
// What outlives a job in its store, in virtual time: the next job of the same kind is not profiled,
// others are; what cannot be used, or no longer fits, costs a profile and is told once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/controller/planning/kept_profile.h"
#include "operator/controller/planning/start_times.h"
#include "tests/support/job_world.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Counts calls, each of which is one request of the store.
class CountedMeasurements final : public MeasurementStore {
 public:
  CountedMeasurements(std::unique_ptr<MeasurementStore> inner, std::vector<std::string>* calls)
      : inner_(std::move(inner)), calls_(calls) {}
  Result<std::string> Read(const std::string& name, uint64_t limit) override {
    calls_->push_back("read " + name);
    return inner_->Read(name, limit);
  }
  Status Write(const std::string& name, const std::string& text) override {
    calls_->push_back("write " + name);
    return inner_->Write(name, text);
  }
  Status Delete(const std::string& name) override {
    calls_->push_back("delete " + name);
    return inner_->Delete(name);
  }
  std::string Describe(const std::string& name) const override { return inner_->Describe(name); }

 private:
  const std::unique_ptr<MeasurementStore> inner_;
  std::vector<std::string>* const calls_;
};

class KeptMeasurementsTest : public JobLifeTest {
 protected:
  KeptMeasurementsTest() {
    world_.options.tick_seconds = 0.5;  // time is virtual, passes are not
    world_.functions.host = {"n1", "m5.large", "worker:1"};
    world_.measurements = [this](const Job& job, ObjectStore& store) {
      return std::make_unique<CountedMeasurements>(std::make_unique<StoredMeasurements>(store, job),
                                                   &calls_);
    };
    world_.RestartController();
  }

  // Without a profile. Each needs a name of its own.
  static Json JobNamed(const std::string& name) {
    Json job = JobWorld::MinimalJob();
    job["metadata"]["name"] = name;
    job["spec"].erase("profile");
    return job;
  }
  // Runs the job to its end; returns how many functions measured for it.
  size_t Measures(const Json& job) {
    const std::string name = job["metadata"]["name"];
    const std::string space = job["metadata"]["namespace"];
    calls_.clear();
    world_.told.clear();
    const size_t before = Measured();
    world_.Create(job);
    const std::string full = space + "/" + name;
    EXPECT_TRUE(world_.RunUntil([&] { return IsFinished(world_.Read(full)); }, 200));
    EXPECT_EQ(world_.Reason("Complete", full), "True/TrainingFinished");
    return Measured() - before;
  }
  size_t Measured() const {
    const std::vector<std::string>& started = world_.functions.started();
    return static_cast<size_t>(
        std::count_if(started.begin(), started.end(), [](const std::string& invocation) {
          return invocation.find("profile-0") != std::string::npos;
        }));
  }
  std::vector<std::string> KeptKeys() {
    std::vector<std::string> kept;
    for (const std::string& key : world_.Keys()) {
      if (key.find("/measurements/") != std::string::npos) kept.push_back(key);
    }
    return kept;
  }
  std::string ProfileKey() {
    for (const std::string& key : KeptKeys()) {
      if (key.find("/profiles/") != std::string::npos) return key;
    }
    return "";
  }
  std::string Text(const std::string& key) {
    return std::string(AsText(*world_.memory_store.Get(key)));
  }
  void Overwrite(const std::string& key, const std::string& text) {
    ASSERT_TRUE(world_.memory_store.Put(key, AsBytes(text)).ok());
  }
  // Notes of the events that something kept is not used.
  std::vector<std::string> Unused() {
    std::vector<std::string> notes;
    for (const EventDraft& event : world_.told) {
      if (event.reason == ReasonText(Reason::kMeasurementUnused)) notes.push_back(event.note);
    }
    return notes;
  }

  std::vector<std::string> calls_;
};

TEST_F(KeptMeasurementsTest, TheNextJobOfTheSameKindIsNotProfiled) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  EXPECT_THAT(KeptKeys(), ElementsAre(StartsWith("lambdadnn/default/measurements/profiles/"),
                                      "lambdadnn/default/measurements/starts.json"));
  const std::string profile =
      ProfileKey().substr(std::string("lambdadnn/default/measurements/").size());
  const std::string read = "read " + profile;
  const std::string write = "write " + profile;
  EXPECT_THAT(calls_, ElementsAre(read, "read starts.json", write, "read starts.json",
                                  "write starts.json", read, write));
  EXPECT_EQ(Measures(JobNamed("second")), 0u);
  EXPECT_THAT(calls_, ElementsAre(read, "read starts.json", "read starts.json", "write starts.json",
                                  read, write))
      << "what the job showed";
  EXPECT_THAT(Unused(), IsEmpty());
  const WorkloadProfile first = *world_.Read("first").status.profile;
  const WorkloadProfile second = *world_.Read("second").status.profile;
  EXPECT_EQ(second.training_rate, first.training_rate);
  EXPECT_EQ(second.model_bytes, first.model_bytes);
}

TEST_F(KeptMeasurementsTest, WhatARunTookCorrectsTheNextPrediction) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  const Job first = world_.Read("first");
  const RunFactors shown = DecodeKeptProfile(Text(ProfileKey()))->profile.run;
  EXPECT_EQ(first.status.profile->run, RunFactors{}) << "it was predicted without";
  ASSERT_GT(shown.compute, 0);
  EXPECT_EQ(shown, RunFactors{.compute = shown.compute}) << "fake workers tell of nothing else";
  ASSERT_EQ(Measures(JobNamed("second")), 0u);
  const Job second = world_.Read("second");
  EXPECT_EQ(second.status.profile->run, shown);
  EXPECT_NEAR(second.status.plan->predicted[Term::kCompute],
              shown.compute * first.status.plan->predicted[Term::kCompute], 1e-9);
  // Both took the same, so that the second was predicted well.
  EXPECT_NEAR(DecodeKeptProfile(Text(ProfileKey()))->profile.run.compute, shown.compute,
              0.01 * shown.compute);
}

TEST_F(KeptMeasurementsTest, ARunThatStartedAgainShowsNothing) {
  bool killed = false;
  world_.Create(JobNamed("first"));
  EXPECT_TRUE(world_.RunUntil(
      [&] {
        const Job job = world_.Read("default/first");
        if (!killed && job.status.progress.iteration > 5 && job.status.profile) {
          world_.functions.Kill(world_.functions.Live().back());
          killed = true;
        }
        return IsFinished(job);
      },
      200));
  ASSERT_TRUE(killed);
  ASSERT_EQ(world_.Reason("Complete", "default/first"), "True/TrainingFinished");
  EXPECT_EQ(DecodeKeptProfile(Text(ProfileKey()))->profile.run, RunFactors{});
}

struct OtherRow {
  const char* name;
  std::function<void(Json* job)> change;
};

const OtherRow kOthers[] = {
    {"batch", [](Json* job) { (*job)["spec"]["training"]["globalBatchSize"] = 128; }},
    {"namespace", [](Json* job) { (*job)["metadata"]["namespace"] = "team-a"; }},
    {"model", [](Json* job) { (*job)["spec"]["model"]["builtin"]["name"] = "mlp"; }},
    {"image",
     [](Json* job) {
       (*job)["spec"]["podTemplate"]["spec"]["containers"] = {
           {{"name", "worker"}, {"image", "worker:2"}}};
     }},
};

TEST_F(KeptMeasurementsTest, AnotherKindOfJobIs) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  for (const OtherRow& row : kOthers) {
    SCOPED_TRACE(row.name);
    Json job = JobNamed(std::string("other-") + row.name);
    row.change(&job);
    EXPECT_EQ(Measures(job), 1u);
    EXPECT_THAT(Unused(), IsEmpty());
  }
  EXPECT_EQ(Measures(JobNamed("again")), 0u) << "the others took nothing away";
}

TEST_F(KeptMeasurementsTest, TheOperatorsImageCountsWhereTheJobNamesNone) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  world_.options.worker_image = "worker:2";
  world_.RestartController();
  EXPECT_EQ(Measures(JobNamed("second")), 1u);
}

TEST_F(KeptMeasurementsTest, ATornObjectIsToldOnceAndMeasuredAnew) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  const std::string key = ProfileKey();
  const std::string good = Text(key);
  int job = 0;
  for (const std::string& bad :
       {good.substr(0, good.size() / 2), std::string(), std::string(kMaxKeptProfileBytes + 1, ' '),
        std::string("{\"form\": 1, \"profile\": {}}")}) {
    SCOPED_TRACE(bad.substr(0, 20));
    Overwrite(key, bad);
    EXPECT_EQ(Measures(JobNamed("torn-" + std::to_string(job++))), 1u);
    EXPECT_THAT(Unused(), ElementsAre(AllOf(HasSubstr(key), HasSubstr("cannot be used ("),
                                            EndsWith("; the job is profiled anew"))));
    EXPECT_TRUE(DecodeKeptProfile(Text(key)).ok()) << "the measurement takes its place";
  }
}

TEST_F(KeptMeasurementsTest, ATornRecordOfStartsIsReplaced) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  const std::string key = "lambdadnn/default/measurements/starts.json";
  Overwrite(key, Text(key).substr(0, 30));
  EXPECT_EQ(Measures(JobNamed("second")), 0u);
  EXPECT_THAT(Unused(), ElementsAre(AllOf(HasSubstr(key), EndsWith("by those that it measures"))));
  EXPECT_TRUE(StartRecord::Decode(Text(key)).ok());
}

TEST_F(KeptMeasurementsTest, AStoreThatFailsCostsAProfileAndNoMore) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  world_.store_rule = [](const std::string&, std::string_view object) -> Status {
    if (object.find("/measurements/") == std::string_view::npos) return OkStatus();
    return UnavailableError("the disk is on fire");
  };
  EXPECT_EQ(Measures(JobNamed("second")), 1u);
  EXPECT_THAT(calls_, ElementsAre(StartsWith("read profiles/"), StartsWith("write profiles/"),
                                  "read starts.json"))
      << "nothing is tried again";
  EXPECT_THAT(Unused(), ElementsAre(AllOf(HasSubstr("the disk is on fire"),
                                          EndsWith("; the job is profiled anew"))));
  world_.store_rule = nullptr;
  EXPECT_EQ(Measures(JobNamed("third")), 0u) << "what was there still is";
}

TEST_F(KeptMeasurementsTest, AProfileThatFitsBadlyIsNotKept) {
  world_.functions.measured_second_half = 2;
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  EXPECT_GT(world_.Read("first").status.profile->residual, 0.15);
  EXPECT_EQ(ProfileKey(), "");
  world_.functions.measured_second_half = 1;
  EXPECT_EQ(Measures(JobNamed("second")), 1u);
  EXPECT_LE(DecodeKeptProfile(Text(ProfileKey()))->profile.residual, 0.15);
}

TEST_F(KeptMeasurementsTest, AGivenProfileReadsNothing) {
  Json job = JobWorld::MinimalJob();
  EXPECT_EQ(Measures(job), 0u);
  EXPECT_THAT(calls_, ElementsAre("read starts.json", "write starts.json"))
      << "its own starts count for later jobs";
  EXPECT_EQ(world_.Read().status.profile->cold_start_seconds, 0);
}

TEST_F(KeptMeasurementsTest, WhatItWasMeasuredOnIsKept) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  const MeasuredOn on = DecodeKeptProfile(Text(ProfileKey()))->on;
  EXPECT_EQ(on.image, "worker:1");
  EXPECT_EQ(on.node_kind, "m5.large");
  EXPECT_EQ(on.fingerprint, world_.functions.fingerprint);
  EXPECT_EQ(on.largest_mib, 512);
  EXPECT_EQ(on.pods_at_once, 2) << "with the one that fills the machine";
}

struct ChangeRow {
  const char* name;
  std::function<void(FakeFunctions*)> change;
  const char* told;
};

const ChangeRow kChanges[] = {
    {"libtorch", [](FakeFunctions* to) { to->fingerprint.libtorch = "2.0, fake"; }, "LibTorch 2.0"},
    {"isa", [](FakeFunctions* to) { to->fingerprint.isa = "avx512"; }, "avx512"},
    {"node", [](FakeFunctions* to) { to->host.node_kind = "c5.large"; }, "runs on c5.large"},
    {"image", [](FakeFunctions* to) { to->host.image = "worker:1b"; }, "runs worker:1b"},
};

class ChangedFunctionsTest : public KeptMeasurementsTest,
                             public testing::WithParamInterface<ChangeRow> {};

TEST_P(ChangedFunctionsTest, EndTheKeptProfileAndTheirJobGoesOn) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  GetParam().change(&world_.functions);
  EXPECT_EQ(Measures(JobNamed("second")), 0u);
  EXPECT_THAT(Unused(), ElementsAre(AllOf(HasSubstr(GetParam().told),
                                          EndsWith("; the next job is profiled anew"))));
  EXPECT_EQ(ProfileKey(), "");
  EXPECT_EQ(Measures(JobNamed("third")), 1u);
  EXPECT_THAT(Unused(), IsEmpty());
  EXPECT_EQ(Measures(JobNamed("fourth")), 0u);
}

INSTANTIATE_TEST_SUITE_P(Changes, ChangedFunctionsTest, testing::ValuesIn(kChanges),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(KeptMeasurementsTest, WhatCannotBeDeletedIsNamed) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  world_.functions.host.node_kind = "c5.large";
  world_.store_rule = [this](const std::string&, std::string_view object) -> Status {
    const bool deletes = !calls_.empty() && calls_.back().starts_with("delete");
    if (!deletes || object.find("/measurements/") == std::string_view::npos) return OkStatus();
    return PermissionDeniedError("no deletions here");
  };
  EXPECT_EQ(Measures(JobNamed("second")), 0u);
  EXPECT_THAT(Unused(), ElementsAre(AllOf(HasSubstr("delete memory:/" + ProfileKey()),
                                          HasSubstr("no deletions here"))));
}

TEST_F(KeptMeasurementsTest, StartsOfEarlierJobsTakeThePlaceOfOneMeasurement) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  const std::string key = "lambdadnn/default/measurements/starts.json";
  StartRecord slow;
  const StartKind kind = {BackendKind::kLocal, "worker:1", "m5.large", 8};  // 2 workers, 3 servers
  slow.Add({{kind, 7, 5}, {kind, 8, 5}, {kind, 9, 5}});
  Overwrite(key, slow.Encode());
  ASSERT_EQ(Measures(JobNamed("second")), 0u);
  const WorkloadProfile profile = *world_.Read("second").status.profile;
  EXPECT_EQ(profile.cold_start_seconds, 8);
  EXPECT_DOUBLE_EQ(profile.cold_start_deviation_seconds, 1 / 1.349);
  EXPECT_EQ(profile.release_seconds, 5);
  // Also where the profile is measured anew.
  Overwrite(key, slow.Encode());
  Json other = JobNamed("third");
  other["spec"]["training"]["globalBatchSize"] = 128;
  ASSERT_EQ(Measures(other), 1u);
  EXPECT_EQ(world_.Read("third").status.profile->cold_start_seconds, 8);
}

TEST_F(KeptMeasurementsTest, EveryStartOfTheJobIsRecorded) {
  ASSERT_EQ(Measures(JobNamed("first")), 1u);
  const auto record = StartRecord::Decode(Text("lambdadnn/default/measurements/starts.json"));
  ASSERT_TRUE(record.ok());
  size_t starts = 0;
  size_t releases = 0;
  for (const StartRecord::Times& times : record->kinds()) {
    EXPECT_EQ(times.kind.image, "worker:1");
    EXPECT_THAT(times.cold_starts, Each(testing::Ge(0.5)));
    starts += times.cold_starts.size();
    releases += times.releases.size();
  }
  EXPECT_EQ(starts, 4u) << "of the two functions that profiled, and of the two that trained";
  EXPECT_EQ(releases, starts);
}

}  // namespace
}  // namespace lambdadnn
