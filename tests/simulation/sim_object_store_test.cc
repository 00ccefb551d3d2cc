// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_object_store.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace lambdadnn::simulation {
namespace {

using std::chrono::seconds;

struct Bucket {
  explicit Bucket(uint64_t seed = 1, FaultRates rates = {},
                  std::vector<CrashAppointment> appointments = {}, StoreTiming timing = {})
      : scheduler(seed),
        faults(scheduler.random(), rates, std::move(appointments)),
        bucket(scheduler, faults, timing) {}

  // Runs `body` as process `role` until it returns or dies, then `settle` more seconds.
  void Run(const char* role, const std::function<void(ObjectStore&)>& body, int settle = 0) {
    SimProcess& process = scheduler.NewProcess(role);
    process.set_role(role);
    auto* store = new SimObjectStore(bucket, process);  // a dying process frees nothing
    bool done = false;
    (void)process.Spawn("main", [&] {
      body(*store);
      done = true;
    });
    const auto over = [&] { return done || !process.alive(); };
    ASSERT_TRUE(scheduler.Run(over, {}).ok());
    bool settled = false;
    scheduler.At(scheduler.Now() + seconds(settle), [&] { settled = true; });
    ASSERT_TRUE(scheduler.Run([&] { return settled; }, {}).ok());
    if (!process.alive()) return;
    process.Kill();
    delete store;
  }

  SimScheduler scheduler;
  FaultInjector faults;
  SimBucket bucket;
};

std::string TextOf(const Result<Bytes>& bytes) {
  return bytes.ok() ? std::string(AsText(*bytes)) : bytes.status().ToString();
}

TEST(SimObjectStore, KeepsObjectsAndListsThemInOrder) {
  Bucket world;
  world.Run("writer", [](ObjectStore& store) {
    for (const char* key : {"a/2", "a/1", "b/1"}) EXPECT_TRUE(store.Put(key, AsBytes(key)).ok());
    EXPECT_EQ(TextOf(store.Get("a/1")), "a/1");
    EXPECT_EQ(TextOf(store.Get("a/1", ByteRange{1, 1})), "/");
    EXPECT_EQ(store.Get("a/1", ByteRange{9, 1}).status().code(), StatusCode::kOutOfRange);
    EXPECT_EQ(store.Get("a/3").status().code(), StatusCode::kNotFound);
    EXPECT_EQ(store.Head("b/1")->size, 3u);
    const Result<ObjectList> page = store.List("a/", "", 1);
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(page->next_start_after, "a/1");
    EXPECT_EQ(store.List("a/", page->next_start_after, 10)->objects.at(0).key, "a/2");
    const std::vector<std::string> both = {"a/1", "a/2"};
    EXPECT_TRUE(store.DeleteMany(both).ok());
    EXPECT_TRUE(store.List("a/", "", 10)->objects.empty());
  });
  EXPECT_EQ(world.bucket.objects().size(), 1u);
}

TEST(SimObjectStore, ACrashBeforeThePutLeavesNothingAndOneAfterItLeavesTheObject) {
  for (const FaultPoint point : {FaultPoint::kBefore, FaultPoint::kAfter}) {
    Bucket world(1, {}, {{"writer", "put", point, 2}});
    bool survived = false;
    world.Run("writer", [&](ObjectStore& store) {
      (void)store.Put("one", AsBytes("1"));
      (void)store.Put("two", AsBytes("2"));
      survived = true;
    });
    EXPECT_FALSE(survived);
    EXPECT_EQ(world.bucket.objects().size(), point == FaultPoint::kBefore ? 1u : 2u);
  }
}

TEST(SimObjectStore, ALostReplyHasHadItsEffect) {
  FaultRates rates;
  rates.lost_reply = 1;
  Bucket world(1, rates);
  world.Run("writer", [](ObjectStore& store) {
    EXPECT_EQ(store.Put("key", AsBytes("1")).code(), StatusCode::kUnavailable);
  });
  EXPECT_EQ(world.bucket.objects().size(), 1u);
}

TEST(SimObjectStore, A503AndAFullDiskHaveNone) {
  FaultRates refused;
  refused.unavailable = 1;
  FaultRates full;
  full.full = 1;
  for (const FaultRates& rates : {refused, full}) {
    Bucket world(1, rates);
    world.Run("writer", [](ObjectStore& store) { EXPECT_FALSE(store.Put("k", {}).ok()); });
    EXPECT_TRUE(world.bucket.objects().empty());
  }
}

TEST(SimObjectStore, ALateRepetitionOverwritesWhatCameInBetween) {
  FaultRates rates;
  rates.late = 1;
  Bucket world(1, rates);
  world.Run(
      "writer",
      [&](ObjectStore& store) {
        EXPECT_TRUE(store.Put("key", AsBytes("old")).ok());
        world.faults.Calm();
        EXPECT_TRUE(store.Put("key", AsBytes("new")).ok());
        EXPECT_EQ(TextOf(store.Get("key")), "new");
      },
      10);
  EXPECT_EQ(AsText(*world.bucket.objects().at("key")), "old");
}

TEST(SimObjectStore, ARequestUnderWayOutlivesItsSender) {
  Bucket world;
  SimProcess& process = world.scheduler.NewProcess("sender");
  SimObjectStore store(world.bucket, process);
  (void)process.Spawn("main", [&] { (void)store.Put("key", AsBytes("1")); });
  world.scheduler.At(world.scheduler.Now() + std::chrono::milliseconds(1), [&] { process.Kill(); });
  bool later = false;
  world.scheduler.At(world.scheduler.Now() + seconds(5), [&] { later = true; });
  ASSERT_TRUE(world.scheduler.Run([&] { return later; }, {}).ok());
  EXPECT_EQ(world.bucket.objects().size(), 1u);
}

// A protocol as simple as one can be that survives all of the above: a producer writes numbered
// objects, a consumer polls for each and acknowledges; both are started again when they die.
struct Exchange {
  static constexpr int kItems = 30;

  static void Produce(ObjectStore& store) {
    for (int i = 0; i < kItems; ++i) {
      const std::string number = std::to_string(i);
      while (!store.Put("item/" + number, AsBytes("value " + number)).ok()) {
      }
    }
  }
  static void Consume(ObjectStore& store, Clock& clock) {
    for (int i = 0; i < kItems; ++i) {
      const std::string number = std::to_string(i);
      Result<Bytes> item = NotFoundError("not yet");
      while (!item.ok()) {
        item = store.Get("item/" + number);
        if (!item.ok()) clock.SleepFor(std::chrono::milliseconds(20));
      }
      while (!store.Put("seen/" + number, AsBytes(TextOf(item))).ok()) {
      }
    }
  }
};

std::string RunExchange(uint64_t seed) {
  FaultRates rates;
  rates.unavailable = rates.lost_reply = rates.late = 0.03;
  Bucket world(seed, rates,
               {{"producer", "put", FaultPoint::kBefore, 5},
                {"producer", "put", FaultPoint::kAfter, 17},
                {"consumer", "get", FaultPoint::kAfter, 9},
                {"consumer", "put", FaultPoint::kBefore, 3}});
  bool produced = false;
  bool consumed = false;
  const std::function<void(bool)> start = [&](bool producer) {
    SimProcess& process = world.scheduler.NewProcess(producer ? "producer" : "consumer");
    process.set_role(producer ? "producer" : "consumer");
    auto* store = new SimObjectStore(world.bucket, process);
    (void)process.Spawn("main", [&, store, producer] {
      if (producer) {
        Exchange::Produce(*store);
      } else {
        Exchange::Consume(*store, process.runtime().clock);
      }
      (producer ? produced : consumed) = true;
    });
    const std::shared_ptr<std::function<void()>> watch = std::make_shared<std::function<void()>>();
    *watch = [&, producer, watch] {
      if (!process.alive()) return start(producer);
      if (!(producer ? produced : consumed)) {
        world.scheduler.At(world.scheduler.Now() + seconds(1), *watch);
      }
    };
    world.scheduler.At(world.scheduler.Now() + seconds(1), *watch);
  };
  start(true);
  start(false);
  EXPECT_TRUE(world.scheduler.Run([&] { return produced && consumed; }, {}).ok());
  std::string history = std::to_string((world.scheduler.Now() - Instant{}).count()) + "\n" +
                        world.faults.ledger().Serialize();
  for (const auto& [key, bytes] : world.bucket.objects()) {
    history += key + "=" + std::string(AsText(*bytes)) + "\n";
  }
  EXPECT_EQ(world.bucket.objects().size(), 2u * Exchange::kItems);
  EXPECT_GE(world.faults.ledger().TotalFaults(), 4);
  return history;
}

TEST(SimObjectStore, AnExchangeSurvivesCrashesAndReplaysToTheSameHistory) {
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(RunExchange(seed), RunExchange(seed));
  EXPECT_NE(RunExchange(1), RunExchange(2));
}

TEST(FaultLedger, SurvivesSerializationAndNamesWhatWasNeverStruck) {
  FaultLedger ledger;
  ledger.At("worker", "put", FaultPoint::kBefore).calls = 1;
  ledger.At("worker", "put", FaultPoint::kBefore).of(FaultKind::kTwice) = 1;
  ledger.At("worker", "get", FaultPoint::kAfter).calls = 1;
  ledger.CountEvent("zombie");
  FaultLedger read;
  const std::string text = ledger.Serialize();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    EXPECT_TRUE(read.MergeLine(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  EXPECT_EQ(read.Serialize(), text);
  EXPECT_EQ(read.TotalFaults(), 2);
  EXPECT_EQ(read.Count("worker", "put", FaultPoint::kBefore).of(FaultKind::kTwice), 1);
  EXPECT_EQ(read.Count("worker", "list", FaultPoint::kBefore).calls, 0);
  ASSERT_EQ(read.Unstruck().size(), 1u);
  EXPECT_EQ(std::get<1>(read.Unstruck()[0]), "get");
  EXPECT_FALSE(read.MergeLine("something else"));
}

}  // namespace
}  // namespace lambdadnn::simulation
