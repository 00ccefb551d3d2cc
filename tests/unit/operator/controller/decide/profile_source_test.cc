// SPDX-License-Identifier: Apache-2.0
// Where a job's profile comes from: one row a state.
#include "operator/controller/decide/profile_source.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
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

KeptProfile KeptOff(double residual) {
  return {ProfileOff(residual), {.node_kind = "m5.large", .largest_mib = 3008}};
}

struct SourceRow {
  const char* name;
  std::function<void(TestSnapshot&)> change;
  const char* source;  // "" = none of the two
  bool doubted = false;
};

const SourceRow kSources[] = {
    {"first", [](TestSnapshot&) {}, "read the measurements"},
    {"none kept", [](TestSnapshot& s) { s.remembered.measurements_read = true; }, ""},
    {"kept",
     [](TestSnapshot& s) {
       s.remembered.measurements_read = true;
       s.remembered.kept_profile = KeptOff(0);
     },
     "kept profile"},
    {"kept, of smaller functions than the job may have",
     [](TestSnapshot& s) {
       s.remembered.measurements_read = true;
       s.remembered.kept_profile = KeptOff(0);
       s.remembered.kept_profile->on.largest_mib = 3007;
     },
     ""},
    {"given", [](TestSnapshot& s) { s.job.spec.profile = ProfileOff(kMaxResidual); },
     "given profile"},
    {"given and kept",
     [](TestSnapshot& s) {
       s.job.spec.profile = ProfileOff(0);
       s.remembered.measurements_read = true;
       s.remembered.kept_profile = KeptOff(0);
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

TEST(ProfileSource, TheSpecBeforeWhatIsKeptBeforeMeasuring) {
  ControllerOptions options;
  options.max_profile_residual = kMaxResidual;
  for (const SourceRow& row : kSources) {
    SCOPED_TRACE(row.name);
    TestSnapshot snapshot;
    snapshot.options = &options;
    row.change(snapshot);
    Decision decision = UseGivenProfile(snapshot);
    if (!decision.has_value()) decision = UseKeptProfile(snapshot);
    ASSERT_EQ(decision.has_value(), row.source[0] != '\0');
    if (!decision.has_value()) continue;
    ASSERT_EQ(decision->size(), 1u);
    const auto* write = std::get_if<WriteDecision>(&decision->front());
    if (write == nullptr) {
      EXPECT_TRUE(std::holds_alternative<ReadMeasurements>(decision->front()));
      EXPECT_STREQ(row.source, "read the measurements");
      continue;
    }
    EXPECT_EQ(write->why, row.source);
    EXPECT_TRUE(write->profile.has_value());
    EXPECT_FALSE(write->keep_profile) << "what was not measured is not kept again";
    EXPECT_EQ(FindCondition(write->conditions, kConditionDegraded) != nullptr, row.doubted);
  }
}

// With three starts of one function at a time of 2, 3 and 4 seconds, and releases of 1 second.
TestSnapshot WithStarts(const ControllerOptions& options) {
  TestSnapshot snapshot;
  snapshot.options = &options;
  snapshot.remembered.measurements_read = true;
  snapshot.remembered.kept_profile = KeptOff(0);
  snapshot.remembered.kept_profile->profile.cold_start_seconds = 9;
  snapshot.remembered.kept_profile->profile.release_seconds = 9;
  const StartKind alone = {BackendKind::kLocal, "", "m5.large", 1};
  snapshot.remembered.start_record.Add({{alone, 2, 1}, {alone, 3, 1}, {alone, 4, 1}});
  return snapshot;
}

double ColdStart(const Decision& decision) {
  return std::get<WriteDecision>(decision->front()).profile->cold_start_seconds;
}

TEST(ProfileSource, AKeptProfileStartsAsTheStartsOfItsKindDid) {
  const ControllerOptions options;
  TestSnapshot snapshot = WithStarts(options);
  EXPECT_EQ(ColdStart(UseKeptProfile(snapshot)), 3);
  snapshot.remembered.kept_profile->on.node_kind = "c5.large";
  EXPECT_EQ(ColdStart(UseKeptProfile(snapshot)), 9) << "such nodes were not observed";
  snapshot.remembered.kept_profile->on = {
      .node_kind = "m5.large", .largest_mib = 3008, .pods_at_once = 2};
  EXPECT_EQ(ColdStart(UseKeptProfile(snapshot)), 9) << "nor two at once";
}

TEST(ProfileSource, WhatTheSpecGivesIsNotReplaced) {
  const ControllerOptions options;
  TestSnapshot snapshot = WithStarts(options);
  snapshot.job.spec.profile = snapshot.remembered.kept_profile->profile;
  EXPECT_EQ(ColdStart(UseGivenProfile(snapshot)), 9);
}

class OutdatedProfile : public testing::Test {
 protected:
  OutdatedProfile() {
    Plan& plan = snapshot_.job.status.plan.emplace();
    plan.functions = 2;
    plan.aggregation.layers = {1, 2};
    for (const char* uid : {"a", "b", "c"}) {
      InstanceFact fact;
      fact.instance.uid = uid;
      fact.instance.host.node_kind = "m5.large";
      fact.fingerprint = NumericsFingerprint{"avx2", "1.13"};
      snapshot_.observed.instances[uid] = fact;
    }
    snapshot_.remembered.profile_kept_on =
        MeasuredOn{.node_kind = "m5.large", .fingerprint = {"avx2", "1.13"}};
  }
  std::optional<DropKeptProfile> Drop() {
    return DropOutdatedProfile(snapshot_,
                               {{"worker-0", 1, "a"}, {"worker-1", 1, "b"}, {"server-0", 1, "c"}});
  }
  InstanceFact& Function(const char* uid) { return snapshot_.observed.instances.at(uid); }

  TestSnapshot snapshot_;
};

TEST_F(OutdatedProfile, IsKeptWhileFunctionsAreAsThoseThatMeasured) {
  EXPECT_FALSE(Drop().has_value());
  Function("b").instance.host.node_kind = "";
  Function("b").fingerprint.reset();
  EXPECT_FALSE(Drop().has_value()) << "nothing is known of it";
  Function("c").instance.host.node_kind = "c5.large";
  EXPECT_FALSE(Drop().has_value()) << "a server measures nothing";
}

TEST_F(OutdatedProfile, IsDroppedForAWorkerThatDiffers) {
  Function("b").instance.host.node_kind = "c5.large";
  EXPECT_EQ(Drop().value().why,
            "the profile kept of such jobs is out of date: worker-1 runs on c5.large, and the "
            "profile was measured on m5.large");
  snapshot_.remembered.profile_kept_on.reset();
  EXPECT_FALSE(Drop().has_value()) << "there is none";
}

}  // namespace
}  // namespace lambdadnn
