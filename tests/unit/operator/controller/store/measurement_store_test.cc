// SPDX-License-Identifier: Apache-2.0
// Where measurements lie: beside the jobs of a namespace, and never where another one reads.
#include "operator/controller/store/measurement_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/objectstore/memory_object_store.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

Job JobOf(const std::string& space, const std::string& prefix = "") {
  Job job;
  job.metadata.name = "measurements";
  job.metadata.namespace_name = space;
  job.metadata.uid = "0c1d2e3f-0000-4000-8000-000000000001";
  job.spec.object_store.prefix = prefix;
  return job;
}

TEST(StoredMeasurements, LieBesideThePlacesOfTheJobsOfANamespace) {
  MemoryObjectStore store;
  ASSERT_TRUE(StoredMeasurements(store, JobOf("team-a")).Write("starts.json", "text").ok());
  ASSERT_TRUE(StoredMeasurements(store, JobOf("team-a", "of/mine/")).Write("a.json", "b").ok());
  EXPECT_TRUE(store.Get("lambdadnn/team-a/measurements/starts.json").ok());
  EXPECT_TRUE(store.Get("of/mine/team-a/measurements/a.json").ok());
  EXPECT_FALSE(JobPrefix(JobOf("team-a")).ends_with("/measurements"))
      << "a job of that name has a place of its own";
}

TEST(StoredMeasurements, AreReadInTheirNamespaceAlone) {
  MemoryObjectStore store;
  StoredMeasurements own(store, JobOf("team-a"));
  StoredMeasurements others(store, JobOf("team-b"));
  ASSERT_TRUE(own.Write("starts.json", "text").ok());
  EXPECT_EQ(own.Read("starts.json", 4).value(), "text");
  EXPECT_EQ(others.Read("starts.json", 4).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(others.Delete("starts.json").ok());
  EXPECT_EQ(own.Read("starts.json", 4).value(), "text");
  EXPECT_TRUE(own.Delete("starts.json").ok());
  EXPECT_EQ(own.Read("starts.json", 4).status().code(), StatusCode::kNotFound);
}

TEST(StoredMeasurements, NoMoreThanTheLimitIsRead) {
  MemoryObjectStore store;
  StoredMeasurements measurements(store, JobOf("team-a"));
  ASSERT_TRUE(measurements.Write("starts.json", "text").ok());
  const Status refused = measurements.Read("starts.json", 3).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("longer than the 3 bytes"));
  EXPECT_THAT(measurements.Describe("starts.json"),
              HasSubstr("lambdadnn/team-a/measurements/starts.json"));
}

}  // namespace
}  // namespace lambdadnn
