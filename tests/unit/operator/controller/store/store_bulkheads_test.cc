// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store/store_bulkheads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/objectstore/memory_object_store.h"
#include "operator/api/job_codec.h"
#include "operator/controller/loop/controller.h"
#include "operator/kinds/serverless_training_job.h"
#include "tests/support/fake_functions.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/job_world.h"
#include "tests/unit/operator/controller/virtual_time.h"

namespace lambdadnn {
namespace {

constexpr Duration kHang = std::chrono::seconds(60);

TEST(StoreBulkheads, ALaneHasAFewTasksAndBeginsItsWorkInOrder) {
  InVirtualTime([](Runtime& runtime) {
    StoreBulkheads bulkheads(runtime.executor, {.of_a_store = 3, .crowded = 64, .of_all = 256});
    std::vector<int> begun;
    int under_way = 0;
    int most = 0;
    for (int i = 0; i < 10; ++i) {
      bulkheads.Run({"team", "store"}, [&, i] {
        begun.push_back(i);
        most = std::max(most, ++under_way);
        runtime.clock.SleepFor(std::chrono::seconds(1));
        --under_way;
      });
    }
    runtime.clock.SleepFor(std::chrono::seconds(10));
    EXPECT_EQ(begun.size(), 10u);
    EXPECT_TRUE(std::is_sorted(begun.begin() + 3, begun.end()));
    EXPECT_EQ(most, 3);
    EXPECT_EQ(under_way, 0);
  });
}

TEST(StoreBulkheads, StoresThatHangTakeOneTaskEachOnceManyAreBusy) {
  InVirtualTime([](Runtime& runtime) {
    StoreBulkheads bulkheads(runtime.executor, {.of_a_store = 4, .crowded = 8, .of_all = 18});
    for (int bulkhead = 0; bulkhead < 10; ++bulkhead) {
      for (int i = 0; i < 4; ++i) {
        bulkheads.Run({"team", "hangs-" + std::to_string(bulkhead)},
                      [&] { runtime.clock.SleepFor(kHang); });
      }
    }
    const Instant begin = runtime.clock.Now();
    std::optional<Duration> waited;
    bulkheads.Run({"team", "answers"}, [&] { waited = runtime.clock.Now() - begin; });
    runtime.clock.SleepFor(std::chrono::milliseconds(1));
    ASSERT_TRUE(waited.has_value()) << "no task was left";
    EXPECT_LT(*waited, std::chrono::milliseconds(1));
  });
}

TEST(StoreBulkheads, HoweverManyStoresOfANamespaceHangOthersHaveTasks) {
  InVirtualTime([](Runtime& runtime) {
    StoreBulkheads bulkheads(runtime.executor,
                             {.of_a_store = 4, .of_a_namespace = 8, .crowded = 4, .of_all = 16});
    int hanging = 0;
    for (int bulkhead = 0; bulkhead < 100; ++bulkhead) {
      bulkheads.Run({"mallory", "hangs-" + std::to_string(bulkhead)}, [&] {
        ++hanging;
        runtime.clock.SleepFor(kHang);
      });
    }
    runtime.clock.SleepFor(std::chrono::milliseconds(1));
    EXPECT_EQ(hanging, 8);
    int served = 0;
    for (int i = 0; i < 8; ++i) {
      bulkheads.Run({"team", "store-" + std::to_string(i)}, [&] { ++served; });
    }
    runtime.clock.SleepFor(std::chrono::milliseconds(1));
    EXPECT_EQ(served, 8);
    // Nobody's work is lost: as tasks end, what waited has its turn.
    runtime.clock.SleepFor(13 * kHang);
    EXPECT_EQ(hanging, 100);
  });
}

TEST(StoreBulkheads, NamespacesTakeTurns) {
  InVirtualTime([](Runtime& runtime) {
    StoreBulkheads bulkheads(runtime.executor,
                             {.of_a_store = 1, .of_a_namespace = 8, .crowded = 1, .of_all = 2});
    std::vector<std::string> begun;
    const auto run = [&](const std::string& namespace_name, const std::string& store) {
      bulkheads.Run({namespace_name, store}, [&begun, &runtime, namespace_name] {
        begun.push_back(namespace_name);
        runtime.clock.SleepFor(std::chrono::seconds(1));
      });
    };
    // By name the others would come first.
    for (int i = 0; i < 6; ++i) run("many", "store-" + std::to_string(i));
    run("new", "store");
    runtime.clock.SleepFor(std::chrono::seconds(10));
    ASSERT_EQ(begun.size(), 7u);
    // Two of the first were under way; the next turn is not theirs.
    EXPECT_EQ(begun[2], "new");
  });
}

TEST(StoreBulkheads, CloseEndsWhatIsUnderWayAndDropsWhatWaits) {
  InVirtualTime([](Runtime& runtime) {
    int begun = 0;
    int ended = 0;
    StoreBulkheads bulkheads(runtime.executor, {.of_a_store = 1, .crowded = 2, .of_all = 2});
    for (int i = 0; i < 3; ++i) {
      bulkheads.Run({"team", "store"}, [&] {
        ++begun;
        runtime.clock.SleepFor(std::chrono::seconds(1));
        ++ended;
      });
    }
    runtime.clock.SleepFor(std::chrono::milliseconds(1));
    bulkheads.Close();
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(ended, 1);
    bulkheads.Run({"team", "store"}, [&] { ++begun; });
    runtime.clock.SleepFor(std::chrono::seconds(1));
    EXPECT_EQ(begun, 1);
  });
}

// Lends a store that outlives the borrower; one that hangs takes a minute and then fails.
std::unique_ptr<ObjectStore> Lend(ObjectStore& store, Runtime& runtime, bool hangs) {
  auto lent = std::make_unique<FaultyObjectStore>(store, runtime, StoreFaults{});
  if (hangs) {
    lent->SetScript([&clock = runtime.clock](StoreOperation, std::string_view, bool) -> Status {
      clock.SleepFor(kHang);
      return UnavailableError("no answer in time");
    });
  }
  return lent;
}

// Seconds from a job's creation to Complete, beside so many jobs whose stores hang.
double SecondsToComplete(int hanging_jobs, bool one_store) {
  double seconds = -1;
  InVirtualTime([&](Runtime& runtime) {
    InMemoryApiServer server(runtime);
    DefineTypes(&server);
    MemoryObjectStore store;
    FakeFunctions functions(runtime.clock, store);
    ControllerOptions options = JobWorld().options;
    options.workers = 2;
    ControllerDependencies dependencies{
        .runtime = runtime,
        .kube = server,
        .backend = functions,
        .slices = functions,
        .open_store = [&](const StoreReference& reference, const StoreSecrets&) {
          return Result<std::unique_ptr<ObjectStore>>(
              Lend(store, runtime, reference.uri != "file:///store"));
        }};
    Controller controller(dependencies, options);
    controller.Start();
    for (int i = 0; i < hanging_jobs; ++i) {
      Json job = JobWorld::MinimalJob();
      job["metadata"]["name"] = "hangs-" + std::to_string(i);
      job["spec"]["objectStore"]["uri"] = "file:///hangs-" + std::to_string(one_store ? 0 : i);
      ASSERT_TRUE(server.Create(ServerlessTrainingJobType(), job).ok());
    }
    runtime.clock.SleepFor(std::chrono::seconds(5));  // by now they hang
    const Instant begin = runtime.clock.Now();
    ASSERT_TRUE(server.Create(ServerlessTrainingJobType(), JobWorld::MinimalJob()).ok());
    const auto is_complete = [&] {
      std::vector<FieldError> errors;
      const auto object = server.Get(ServerlessTrainingJobType(), {"default", "digits"});
      return object.ok() && HasCondition(DecodeJob(*object, &errors), kConditionComplete);
    };
    while (!is_complete() && runtime.clock.Now() - begin < std::chrono::minutes(30)) {
      runtime.clock.SleepFor(std::chrono::milliseconds(100));
    }
    seconds = ToSeconds(runtime.clock.Now() - begin);
    controller.Stop();
  });
  return seconds;
}

TEST(StoreBulkheads, MoreHangingStoresThanWorkersDelayNoOtherJob) {
  const double alone = SecondsToComplete(0, false);
  ASSERT_GT(alone, 5);
  ASSERT_LT(alone, 60);
  EXPECT_NEAR(SecondsToComplete(12, false), alone, 0.3);
}

TEST(StoreBulkheads, ManyJobsOfOneHangingStoreDelayNoOtherJob) {
  const double alone = SecondsToComplete(0, false);
  EXPECT_NEAR(SecondsToComplete(40, true), alone, 0.3);
}

TEST(StoreBulkheads, SettlingWaitsForWhatIsUnderWayAndNoLonger) {
  InVirtualTime([](Runtime& runtime) {
    StoreBulkheads bulkheads(runtime.executor, {.of_a_store = 1, .crowded = 2, .of_all = 2});
    const auto in = [&](int seconds) {
      return runtime.clock.Now() + std::chrono::seconds(seconds);
    };
    EXPECT_TRUE(bulkheads.Settle(in(1))) << "nothing is under way";
    StoreBulkheads busy(runtime.executor, {.of_a_store = 1, .crowded = 2, .of_all = 2});
    int begun = 0;
    for (int i = 0; i < 2; ++i) {
      busy.Run(StoreBulkhead{"team", "store"}, [&] {
        ++begun;
        runtime.clock.SleepFor(std::chrono::seconds(10));
      });
    }
    runtime.clock.SleepFor(std::chrono::milliseconds(1));
    const Instant begin = runtime.clock.Now();
    EXPECT_FALSE(busy.Settle(in(3)));
    EXPECT_NEAR(ToSeconds(runtime.clock.Now() - begin), 3, 0.01);
    EXPECT_TRUE(busy.Settle(in(30)));
    EXPECT_NEAR(ToSeconds(runtime.clock.Now() - begin), 10, 0.01);
    EXPECT_EQ(begun, 1) << "what waited never begins";
  });
}

// How a controller ends while a job's admission waits for a store that answers after so long, if
// nobody ends the request.
struct Ending {
  double seconds = -1;
  bool requests_ended = false;
  Json before;
  Json after;
};
Ending EndWhileAStoreIsAsked(Duration answers_after) {
  Ending ending;
  InVirtualTime([&](Runtime& runtime) {
    InMemoryApiServer server(runtime);
    DefineTypes(&server);
    MemoryObjectStore store;
    FakeFunctions functions(runtime.clock, store);
    int asked = 0;
    const auto ask = [&](StoreOperation, std::string_view, bool) -> Status {
      ++asked;
      const Instant until = runtime.clock.Now() + answers_after;
      while (runtime.clock.Now() < until) {
        if (ending.requests_ended) return CancelledError("ended");
        runtime.clock.SleepFor(std::chrono::milliseconds(100));
      }
      return OkStatus();
    };
    ControllerDependencies dependencies{
        .runtime = runtime,
        .kube = server,
        .backend = functions,
        .slices = functions,
        .open_store = [&](const StoreReference&, const StoreSecrets&) {
          auto lent = std::make_unique<FaultyObjectStore>(store, runtime, StoreFaults{});
          lent->SetScript(ask);
          return Result<std::unique_ptr<ObjectStore>>(std::move(lent));
        }};
    dependencies.end_store_requests = [&] { ending.requests_ended = true; };
    Controller controller(dependencies, JobWorld().options);
    controller.Start();
    ASSERT_TRUE(server.Create(ServerlessTrainingJobType(), JobWorld::MinimalJob()).ok());
    while (asked == 0) runtime.clock.SleepFor(std::chrono::milliseconds(10));
    const ObjectName name{"default", "digits"};
    ending.before = server.Get(ServerlessTrainingJobType(), name).value();
    const Instant begin = runtime.clock.Now();
    controller.Stop();
    ending.seconds = ToSeconds(runtime.clock.Now() - begin);
    ending.after = server.Get(ServerlessTrainingJobType(), name).value();
  });
  return ending;
}

TEST(StoreBulkheads, AStoreThatHangsHoldsUpTheEndForAFewSecondsAndIsNotJudged) {
  const Ending ending = EndWhileAStoreIsAsked(std::chrono::hours(1));
  EXPECT_TRUE(ending.requests_ended);
  EXPECT_GT(ending.seconds, 1);
  EXPECT_LT(ending.seconds, 5);
  EXPECT_EQ(ending.before, ending.after) << "nothing is decided on a request that was cut off";
}

TEST(StoreBulkheads, AStoreThatAnswersInTimeEndsItsPass) {
  const Ending ending = EndWhileAStoreIsAsked(std::chrono::milliseconds(50));
  EXPECT_FALSE(ending.requests_ended);
  EXPECT_LT(ending.seconds, 3);
  EXPECT_NE(ending.before, ending.after) << "the pass wrote what it learnt";
}

}  // namespace
}  // namespace lambdadnn
