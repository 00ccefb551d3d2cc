// SPDX-License-Identifier: Apache-2.0
// When a job whose pass failed is looked at again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/objectstore/memory_object_store.h"
#include "operator/api/job_codec.h"
#include "operator/controller/loop/controller.h"
#include "operator/kinds/serverless_training_job.h"
#include "tests/support/fake_functions.h"
#include "tests/support/faulty_kube_client.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/job_world.h"
#include "tests/unit/operator/controller/virtual_time.h"

namespace lambdadnn {
namespace {

// All outlive what they are given to.
ControllerDependencies DependenciesOn(Runtime& runtime, KubeClient& kube, FakeFunctions& functions,
                                      MemoryObjectStore& store) {
  return {runtime,
          kube,
          functions,
          functions,
          [&](const StoreReference&, const StoreSecrets&) {
            return Result<std::unique_ptr<ObjectStore>>(
                std::make_unique<FaultyObjectStore>(store, runtime, StoreFaults{}));
          },
          {}};
}

// A controller whose API server refuses what it writes to one job, in virtual time.
struct Refusal {
  std::vector<double> seconds;  // when it was tried
  double other_complete = -1;   // when the job beside it was
  double complete = -1;         // when it was itself
};

Refusal RefuseFor(double refused_seconds) {
  Refusal seen;
  InVirtualTime([&](Runtime& runtime) {
    InMemoryApiServer server(runtime);
    DefineTypes(&server);
    const Instant begin = runtime.clock.Now();
    const auto now = [&] { return ToSeconds(runtime.clock.Now() - begin); };
    FaultyKubeClient kube(server,
                          [&](const std::string& call, const std::string& name,
                              FaultyKubeClient::Point point) -> Status {
                            const bool first =
                                point == FaultyKubeClient::Point::kBefore && call == "patch";
                            if (!first || name != "refused" || now() >= refused_seconds)
                              return OkStatus();
                            seen.seconds.push_back(now());
                            return UnavailableError("the API server has no time");
                          });
    MemoryObjectStore store;
    FakeFunctions functions(runtime.clock, store);
    Controller controller(DependenciesOn(runtime, kube, functions, store), JobWorld().options);
    controller.Start();
    for (const char* name : {"refused", "other"}) {
      Json job = JobWorld::MinimalJob();
      job["metadata"]["name"] = name;
      ASSERT_TRUE(server.Create(ServerlessTrainingJobType(), job).ok());
    }
    const auto is_complete = [&](const char* name) {
      const auto job = server.Get(ServerlessTrainingJobType(), {"default", name});
      return HasCondition(*DecodeJob(*job), kConditionComplete);
    };
    while ((seen.complete < 0 || seen.other_complete < 0) && now() < refused_seconds + 200) {
      runtime.clock.SleepFor(std::chrono::milliseconds(100));
      if (seen.other_complete < 0 && is_complete("other")) seen.other_complete = now();
      if (seen.complete < 0 && is_complete("refused")) seen.complete = now();
    }
    controller.Stop();
  });
  return seen;
}

TEST(ControllerRetry, APassThatHangsIsSeen) {
  InVirtualTime([&](Runtime& runtime) {
    InMemoryApiServer server(runtime);
    DefineTypes(&server);
    bool hangs = true;
    FaultyKubeClient kube(
        server,
        [&](const std::string& call, const std::string&, FaultyKubeClient::Point point) -> Status {
          if (call == "patch" && point == FaultyKubeClient::Point::kBefore) {
            while (hangs) runtime.clock.SleepFor(std::chrono::seconds(1));
          }
          return OkStatus();
        });
    MemoryObjectStore store;
    FakeFunctions functions(runtime.clock, store);
    Controller controller(DependenciesOn(runtime, kube, functions, store), JobWorld().options);
    controller.Start();
    EXPECT_EQ(controller.LongestPass(), Duration::zero());
    ASSERT_TRUE(server.Create(ServerlessTrainingJobType(), JobWorld::MinimalJob()).ok());
    runtime.clock.SleepFor(std::chrono::seconds(700));
    EXPECT_GE(controller.LongestPass(), std::chrono::seconds(690));
    hangs = false;
    runtime.clock.SleepFor(std::chrono::seconds(10));
    EXPECT_LT(controller.LongestPass(), std::chrono::seconds(10));
    controller.Stop();
  });
}

TEST(ControllerRetry, WaitsTwiceAsLongAfterEachFailureUpToItsMost) {
  const ControllerOptions options;
  const Refusal seen = RefuseFor(300);
  ASSERT_GE(seen.seconds.size(), 12u);
  for (size_t i = 1; i < seen.seconds.size(); ++i) {
    const double gap = seen.seconds[i] - seen.seconds[i - 1];
    const double wanted =
        std::min(options.retry_seconds * std::pow(2.0, static_cast<double>(i - 1)),
                 options.max_retry_seconds);
    EXPECT_NEAR(gap, wanted, 0.05) << "after failure " << i;
  }
  EXPECT_GE(seen.complete, 300);
  EXPECT_LE(seen.complete, 300 + options.max_retry_seconds + 60);
}

TEST(ControllerRetry, AJobBesideOneThatFailsIsNotDelayed) {
  EXPECT_NEAR(RefuseFor(300).other_complete, RefuseFor(0).other_complete, 0.3);
}

}  // namespace
}  // namespace lambdadnn
