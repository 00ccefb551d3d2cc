// SPDX-License-Identifier: Apache-2.0
// The loop with a kind that is no job: toys, of which a pass notes when it was.
#include "operator/controller/loop/reconcile_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/objectstore/memory_object_store.h"
#include "operator/controller/loop/controller.h"
#include "operator/controller/loop/kinds.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"
#include "tests/support/fake_functions.h"
#include "tests/support/job_world.h"
#include "tests/unit/operator/controller/virtual_time.h"

namespace lambdadnn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::SizeIs;

const ResourceType kToys = {"example.org", "v1", "toys", "Toy"};
const ObjectName kToy = {"default", "bear"};

Json Toy() {
  return {{"apiVersion", "example.org/v1"},
          {"kind", "Toy"},
          {"metadata", {{"name", kToy.name}, {"namespace", kToy.namespace_name}}}};
}

// What passes over toys did; outlives the loop.
struct Notes {
  std::vector<double> seconds;  // of the passes over the one toy
  std::vector<bool> in_a_lane;
  std::vector<bool> there;
  std::function<Result<Duration>(std::optional<StoreBulkhead>* bulkhead)> pass =
      [](std::optional<StoreBulkhead>*) -> Result<Duration> { return FromSeconds(3600); };
};

class ToyReconciler final : public Reconcilable {
 public:
  ToyReconciler(const LoopView& loop, Runtime& runtime, Notes& notes)
      : loop_(loop), runtime_(runtime), notes_(notes), begin_(runtime.clock.Now()) {}

  Result<Duration> Reconcile(const ObjectName& name,
                             std::optional<StoreBulkhead>* bulkhead) override {
    EXPECT_EQ(name, kToy);
    notes_.seconds.push_back(ToSeconds(runtime_.clock.Now() - begin_));
    notes_.in_a_lane.push_back(bulkhead == nullptr);
    notes_.there.push_back(loop_.cache.Get(name) != nullptr);
    return notes_.pass(bulkhead);
  }
  void Abandon() override {}
  Result<Json> Describe(const ObjectName& name) override { return Json(name.name); }
  size_t remembered() const override { return 0; }
  size_t waiting_or_holding() const override { return 0; }

 private:
  const LoopView loop_;
  Runtime& runtime_;
  Notes& notes_;
  const Instant begin_;
};

ReconciledKind ToyKind(Runtime& runtime, Notes& notes) {
  return {.type = kToys, .controller = "toy", .noun = "toy", .make = [&](const LoopView& loop) {
            return std::make_unique<ToyReconciler>(loop, runtime, notes);
          }};
}

// A loop of toys alone at a server of its own.
void WithToys(Notes& notes,
              const std::function<void(Runtime&, InMemoryApiServer&, ReconcileLoop&)>& body) {
  InVirtualTime([&](Runtime& runtime) {
    InMemoryApiServer server(runtime);
    ResourceDefinition toys;
    toys.type = kToys;
    server.Define(toys);
    ReconcileLoop loop(runtime, server, ToyKind(runtime, notes), {}, nullptr, nullptr);
    loop.Start();
    body(runtime, server, loop);
    loop.Stop();
  });
}

TEST(ReconcileLoop, APassFollowsEachChangeAndNoneAnEnd) {
  Notes notes;
  WithToys(notes, [&](Runtime& runtime, InMemoryApiServer& server, ReconcileLoop& loop) {
    ASSERT_TRUE(server.Create(kToys, Toy()).ok());
    runtime.clock.SleepFor(FromSeconds(1));
    EXPECT_THAT(notes.there, ElementsAre(true));
    const Json painted = {{"spec", {{"colour", "red"}}}};
    ASSERT_TRUE(server.Patch(kToys, kToy, painted, Subresource::kNone).ok());
    runtime.clock.SleepFor(FromSeconds(1));
    EXPECT_THAT(notes.there, ElementsAre(true, true));
    loop.Wake(kToy);
    runtime.clock.SleepFor(FromSeconds(1));
    EXPECT_THAT(notes.there, SizeIs(3));
    EXPECT_EQ(loop.counts().cached, 1u);
    EXPECT_EQ(loop.Describe(kToy).value(), "bear");
    ASSERT_TRUE(server.Delete(kToys, kToy, "").ok());
    runtime.clock.SleepFor(FromSeconds(10000));
    EXPECT_THAT(notes.there, ElementsAre(true, true, true, false));
    EXPECT_EQ(loop.counts().cached, 0u);
    EXPECT_EQ(loop.counts().queued, 0u);
  });
}

TEST(ReconcileLoop, APassComesAgainWhenItSaidSo) {
  Notes notes;
  notes.pass = [](std::optional<StoreBulkhead>*) -> Result<Duration> { return FromSeconds(10); };
  WithToys(notes, [&](Runtime& runtime, InMemoryApiServer& server, ReconcileLoop&) {
    ASSERT_TRUE(server.Create(kToys, Toy()).ok());
    runtime.clock.SleepFor(FromSeconds(25));
  });
  ASSERT_THAT(notes.seconds, SizeIs(3));
  EXPECT_NEAR(notes.seconds[2] - notes.seconds[1], 10, 0.1);
}

TEST(ReconcileLoop, FailedPassesComeAgainEachAfterTwiceAsLong) {
  Notes notes;
  int left = 4;
  notes.pass = [&](std::optional<StoreBulkhead>*) -> Result<Duration> {
    if (left-- == 0) return FromSeconds(3600);
    if (left == 1) throw std::runtime_error("a bug");
    return UnavailableError("not now");
  };
  WithToys(notes, [&](Runtime& runtime, InMemoryApiServer& server, ReconcileLoop& loop) {
    ASSERT_TRUE(server.Create(kToys, Toy()).ok());
    runtime.clock.SleepFor(FromSeconds(1));
    EXPECT_EQ(loop.counts().failing, 1u);
    runtime.clock.SleepFor(FromSeconds(5));
    EXPECT_EQ(loop.counts().failing, 0u);
  });
  ASSERT_THAT(notes.seconds, SizeIs(5));
  const double begin = notes.seconds[0];
  for (double& each : notes.seconds) each -= begin;
  EXPECT_THAT(notes.seconds, ElementsAre(0, DoubleNear(0.1, 0.01), DoubleNear(0.3, 0.01),
                                         DoubleNear(0.7, 0.01), DoubleNear(1.5, 0.01)));
}

TEST(ReconcileLoop, APassThatWouldWaitForAStoreGoesOnInALane) {
  Notes notes;
  notes.pass = [](std::optional<StoreBulkhead>* bulkhead) -> Result<Duration> {
    if (bulkhead != nullptr) *bulkhead = StoreBulkhead{"default", "s3://toys"};
    return FromSeconds(3600);
  };
  WithToys(notes, [&](Runtime& runtime, InMemoryApiServer& server, ReconcileLoop&) {
    ASSERT_TRUE(server.Create(kToys, Toy()).ok());
    runtime.clock.SleepFor(FromSeconds(1));
  });
  EXPECT_THAT(notes.in_a_lane, ElementsAre(false, true));
}

TEST(Controller, ReconcilesASecondKindThatIsRegisteredBesideJobs) {
  Notes notes;
  InVirtualTime([&](Runtime& runtime) {
    InMemoryApiServer server(runtime);
    DefineTypes(&server);
    ResourceDefinition toys;
    toys.type = kToys;
    server.Define(toys);
    MemoryObjectStore store;
    FakeFunctions functions(runtime.clock, store);
    const auto open = [&](const StoreReference&,
                          const StoreSecrets&) -> Result<std::unique_ptr<ObjectStore>> {
      return UnavailableError("not in this test");
    };
    const auto registry = [&](const ControllerDependencies& dependencies,
                              const ControllerOptions& options) {
      std::vector<ReconciledKind> kinds = ReconciledKinds(dependencies, options);
      EXPECT_THAT(kinds, SizeIs(1));
      kinds.push_back(ToyKind(runtime, notes));
      return kinds;
    };
    Controller controller({.runtime = runtime,
                           .kube = server,
                           .backend = functions,
                           .slices = functions,
                           .open_store = open},
                          JobWorld().options, registry);
    controller.Start();
    ASSERT_TRUE(server.Create(kToys, Toy()).ok());
    ASSERT_TRUE(server.Create(ServerlessTrainingJobType(), JobWorld::MinimalJob()).ok());
    runtime.clock.SleepFor(FromSeconds(1));
    EXPECT_THAT(notes.there, ElementsAre(true));
    const Json job = server.Get(ServerlessTrainingJobType(), {"default", "digits"}).value();
    EXPECT_THAT(job["metadata"]["finalizers"], SizeIs(1));
    EXPECT_EQ(controller.counts().cached, 1u);
    controller.Stop();
  });
}

}  // namespace
}  // namespace lambdadnn
