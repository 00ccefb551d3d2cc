// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/pacing.h"

#include <gtest/gtest.h>

#include "common/objectstore/memory_object_store.h"
#include "tests/support/arithmetic_model.h"
#include "tests/support/manual_runtime.h"

namespace lambdadnn {
namespace {

TEST(PaceStore, PacesBeforeEachObjectThatIsStored) {
  int paces = 0;
  const auto store = PaceStore(std::make_unique<MemoryObjectStore>(), [&paces] { ++paces; });
  ASSERT_TRUE(store->Put("a", AsBytes("1")).ok());
  ASSERT_TRUE(store->Put("b", AsBytes("2")).ok());
  EXPECT_EQ(paces, 2);
  EXPECT_EQ(AsText(*store->Get("a")), "1");
  EXPECT_EQ(store->Head("b")->size, 1u);
  EXPECT_EQ(store->List("", "", 10)->objects.size(), 2u);
  EXPECT_EQ(store->Get("c").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(store->Delete("a").ok());
  ASSERT_TRUE(store->DeleteMany(std::vector<std::string>{"b"}).ok());
  EXPECT_TRUE(store->List("", "", 10)->objects.empty());
  EXPECT_EQ(paces, 2);
}

TEST(PaceModel, PacesAfterEachBatchAndChangesNoNumber) {
  constexpr int64_t kParameters = 3;
  constexpr int64_t kBuffers = 2;
  int paces = 0;
  ArithmeticModel plain(kParameters, -1, kBuffers);
  const auto paced =
      PaceModel(std::make_unique<ArithmeticModel>(kParameters, -1, kBuffers), [&] { ++paces; });
  EXPECT_EQ(paced->manifest(), plain.manifest());
  plain.Initialize(7);
  paced->Initialize(7);
  Batch batch;
  batch.samples = 2;
  batch.feature_shape = {1};
  batch.features = {0.5F, -1.25F};
  batch.labels = {0, 1};
  std::vector<float> expected(kParameters);
  std::vector<float> gradient(kParameters);
  const auto expected_step = plain.ForwardBackward(batch, 9, expected);
  const auto step = paced->ForwardBackward(batch, 9, gradient);
  ASSERT_TRUE(expected_step.ok()) << expected_step.status().ToString();
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->loss_sum, expected_step->loss_sum);
  EXPECT_EQ(gradient, expected);
  EXPECT_EQ(paces, 1);
  std::vector<float> vector(kParameters + kBuffers);
  std::vector<float> expected_vector(vector.size());
  plain.GetVector(expected_vector);
  paced->GetVector(vector);
  EXPECT_EQ(vector, expected_vector);
  plain.SetVector(expected_vector, 5);
  paced->SetVector(expected_vector, 5);
  EXPECT_EQ(paced->State().value(), plain.State().value());
  EXPECT_EQ(paced->Evaluate(batch).ok(), plain.Evaluate(batch).ok());
  EXPECT_EQ(paces, 2);
}

// The sleeps of both pacers, of a quota of the function and one of a profile, count beside those of
// the control group.
TEST(AddPacing, SleepsCountAsThrottled) {
  ManualClock clock;
  Duration cpu{};
  SliceEnvironment environment;
  environment.throttled_seconds = [] { return 7.0; };
  int paces = 0;
  environment.pace = [&paces] { ++paces; };
  CpuPacer outer(clock, 500, [&cpu] { return cpu; });
  CpuPacer inner(clock, 1000, [&cpu] { return cpu; });
  AddPacing(outer, &environment);
  AddPacing(inner, &environment);
  EXPECT_DOUBLE_EQ(environment.throttled_seconds(), 7);
  clock.SleepFor(std::chrono::seconds(1));
  cpu += std::chrono::seconds(1);
  environment.pace();
  EXPECT_EQ(paces, 1);
  EXPECT_NEAR(environment.throttled_seconds(), 8, 0.05);
}

TEST(AddPacing, NothingSleepsNothingIsThrottled) {
  ManualClock clock;
  SliceEnvironment environment;
  CpuPacer pacer(clock, 500, [] { return Duration{}; });
  AddPacing(pacer, &environment);
  environment.pace();
  EXPECT_EQ(environment.throttled_seconds(), 0);
}

}  // namespace
}  // namespace lambdadnn
