// SPDX-License-Identifier: Apache-2.0
#include "common/plan/number_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <string>

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Each row is a number of its own, and gets one sentence for each value that cannot be.
template <typename Owner>
void CheckFields(std::span<const NumberField<Owner>> fields) {
  Owner numbered;
  double number = 0;
  for (const NumberField<Owner>& field : fields) field.set(&numbered, ++number);
  number = 0;
  for (const NumberField<Owner>& field : fields) {
    SCOPED_TRACE(field.name);
    EXPECT_EQ(field.get(numbered), ++number) << "another row has the same number";
    Owner owner;
    for (const double bad : {-1.0, -1e-300, 1e300, std::nan(""), HUGE_VAL}) {
      field.set(&owner, bad);
      const auto problem = ProblemOf(owner, "x");
      ASSERT_TRUE(problem.has_value()) << bad;
      EXPECT_THAT(*problem, StartsWith(std::string("x.") + field.name + " is "));
      EXPECT_THAT(*problem, HasSubstr("; correct it"));
    }
    for (const double good : {0.0, 1.0}) {
      field.set(&owner, good);
      EXPECT_EQ(ProblemOf(owner, "x"), std::nullopt) << good;
    }
    field.Give(&owner, 2);
    EXPECT_EQ(field.get(owner).origin(), Origin::kGiven);
    field.Give(&owner, 0);
    EXPECT_EQ(field.get(owner).known(), field.zero == Zero::kValue);
  }
}

TEST(NumberFields, EachNumberOfAProfileHasARange) {
  CheckFields(ProfileDecimals());
  CheckFields(ProfileWholes());
}

TEST(NumberFields, EachNumberOfAPlatformHasARange) { CheckFields(PlatformNumbers()); }

TEST(OptionalQuantity, WhatIsNotKnownIsNotZero) {
  const OptionalQuantity unknown;
  EXPECT_FALSE(unknown.known());
  EXPECT_EQ(unknown.Or(7), 7);
  EXPECT_EQ(1 + unknown, 1) << "a sum's term is left out";
  const OptionalQuantity zero = 0;
  EXPECT_TRUE(zero.known());
  EXPECT_EQ(zero.Or(7), 0);
  EXPECT_FALSE(zero == unknown);
  EXPECT_EQ(zero.origin(), Origin::kGiven);
  EXPECT_EQ(OptionalQuantity(3, Origin::kMeasured), OptionalQuantity(3, Origin::kDefault));
}

struct ProfileRow {
  const char* name;
  std::function<void(WorkloadProfile&)> change;
  const char* problem;  // "" = none
};

const ProfileRow kProfiles[] = {
    {"as it is made", [](WorkloadProfile&) {}, ""},
    {"samples", [](WorkloadProfile& p) { p.training_samples = -3; },
     "p.trainingSamples is -3, and"},
    {"memory", [](WorkloadProfile& p) { p.worker_base_memory_mib = -1; },
     "p.workerBaseMemory is -1, and must be MiB"},
    {"a falling rate", [](WorkloadProfile& p) { p.training_rate.slope = -1; }, ""},
    {"a rate that is none", [](WorkloadProfile& p) { p.training_rate.slope = std::nan(""); },
     "p.trainingRate.slope is nan"},
    {"an endless rate", [](WorkloadProfile& p) { p.evaluation_rate.intercept = -HUGE_VAL; },
     "p.evaluationRate.intercept is inf"},
    {"a ceiling", [](WorkloadProfile& p) { p.training_rate.max_samples_per_second = -1; },
     "p.trainingRate.maxSamplesPerSecond is -1"},
    {"a table", [](WorkloadProfile& p) { p.training_rate.table = {{128, 1}, {256, 0}}; }, ""},
    {"a table in disorder",
     [](WorkloadProfile& p) { p.training_rate.table = {{256, 1}, {256, 2}}; },
     "p.trainingRate.table[1].memory is 256 MiB, and must be above 256; sort the table by memory"},
    {"streams", [](WorkloadProfile& p) { p.store_streams = {{1, 1e8}, {4, 2e8}}; }, ""},
    {"streams in disorder", [](WorkloadProfile& p) { p.store_streams = {{2, 1e8}, {1, 2e8}}; },
     "p.storeStreams of 1 streams comes after 2; sort the list by streams"},
    {"streams of nothing", [](WorkloadProfile& p) { p.store_streams = {{1, 0}}; },
     "p.storeStreams of 1 streams has no bandwidth; correct it"},
    {"streams below zero", [](WorkloadProfile& p) { p.store_streams = {{1, -5}}; },
     "p.storeStreams of 1 streams is -5, and must be bytes a second"},
    {"a point below zero",
     [](WorkloadProfile& p) { p.training_rate.table = {{256, 1}, {512, -2}}; },
     "p.trainingRate.table[1].samplesPerSecond is -2"},
};

TEST(NumberFields, ProfilesThatContradictThemselvesAreRefused) {
  for (const ProfileRow& row : kProfiles) {
    SCOPED_TRACE(row.name);
    WorkloadProfile profile;
    row.change(profile);
    EXPECT_THAT(ProblemOf(profile, "p").value_or(""), StartsWith(row.problem));
    EXPECT_EQ(ProblemOf(profile, "p").has_value(), row.problem[0] != '\0');
  }
}

TEST(NumberFields, APlatformHasSizesAndAStoreLineThatRuns) {
  Platform platform;
  platform.memory.max_mib = 64;
  EXPECT_EQ(ProblemOf(platform, "p"),
            "p.memory.max is 64 MiB, and must not be below min, which is 128 MiB; correct one of "
            "them");
  platform.memory.max_mib = 1024;
  platform.function_store_slope = 1000;
  platform.function_store_intercept = -1e6;  // some sizes have none
  EXPECT_EQ(ProblemOf(platform, "p"), std::nullopt);
  platform.function_store_intercept = -1024e3;
  EXPECT_THAT(ProblemOf(platform, "p").value_or(""),
              StartsWith("p.function.storeBytesPerSecond is 0 bytes a second at best"));
  platform.function_store_slope = std::nan("");
  EXPECT_THAT(ProblemOf(platform, "p").value_or(""),
              StartsWith("p.function.storeBytesPerSecond is nan"));
}

}  // namespace
}  // namespace lambdadnn
