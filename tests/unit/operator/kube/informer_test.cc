// SPDX-License-Identifier: Apache-2.0
// Informers in virtual time: servers that fail, forget, end watches or fall silent.
#include "operator/kube/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/object_metadata.h"
#include "tests/simulation/sim_runtime.h"
#include "tests/simulation/sim_scheduler.h"
#include "tests/support/faulty_kube_client.h"

namespace lambdadnn {
namespace {

using simulation::SimProcess;
using simulation::SimScheduler;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ResourceType kThing{"", "v1", "things", "Thing"};

class Informers : public testing::Test {
 protected:
  using Point = FaultyKubeClient::Point;

  Informers()
      : server_process_(scheduler_.NewProcess("server")),
        process_(scheduler_.NewProcess("operator")),
        server_(server_process_.runtime(), ServerOptions()) {
    ResourceDefinition things;
    things.type = kThing;
    server_.Define(std::move(things));
    client_ = std::make_unique<FaultyKubeClient>(
        server_, [this](const std::string& call, const std::string&, Point point) {
          if (point == Point::kBefore) ++calls_[call];
          return decide_ ? decide_(call, point) : OkStatus();
        });
  }
  ~Informers() override { (void)informer_.release(); }  // its fibers go with the scheduler

  static InMemoryApiServerOptions ServerOptions() {
    return {.bookmark_interval = std::chrono::minutes(1), .watch_timeout = std::chrono::minutes(5)};
  }

  void Start(InformerOptions options = {}) {
    options.type = kThing;
    informer_ = std::make_unique<Informer>(*client_, process_.runtime(), options);
    (void)process_.Spawn("main", [this] {
      informer_->SetHandler([this](const ObjectName& name) {
        told_.push_back(name.namespace_name + "/" + name.name);
      });
      informer_->Start();
    });
  }
  static Json Thing(const std::string& name, const std::string& namespace_name = "default",
                    const std::string& label = "x") {
    return {{"apiVersion", "v1"},
            {"kind", "Thing"},
            {"metadata",
             {{"name", name}, {"namespace", namespace_name}, {"labels", {{"app", label}}}}}};
  }
  void Create(const Json& thing) { ASSERT_TRUE(server_.Create(kThing, thing).ok()); }
  void Change(const std::string& name, const Json& patch) {
    ASSERT_TRUE(server_.Patch(kThing, {"default", name}, patch, Subresource::kNone).ok());
  }
  void Delete(const std::string& name) {
    ASSERT_TRUE(server_.Delete(kThing, {"default", name}, "").ok());
  }
  void RunFor(double duration) {
    bool done = false;
    scheduler_.At(scheduler_.Now() + FromSeconds(duration), [&] { done = true; });
    const Status ran = scheduler_.Run([&] { return done; }, {});
    ASSERT_TRUE(ran.ok()) << ran.ToString();
  }
  std::vector<std::string> Told() { return std::exchange(told_, {}); }
  std::vector<std::string> Cached() const {
    std::vector<std::string> names;
    for (const ObjectName& name : informer_->cache().Names()) names.push_back(name.name);
    return names;
  }

  SimScheduler scheduler_{1};
  SimProcess& server_process_;
  SimProcess& process_;
  InMemoryApiServer server_;
  std::unique_ptr<FaultyKubeClient> client_;
  std::function<Status(const std::string& call, Point point)> decide_;
  std::map<std::string, int> calls_;
  std::unique_ptr<Informer> informer_;
  std::vector<std::string> told_;
};

TEST_F(Informers, ListsInPagesAndThenWatches) {
  for (int i = 0; i < 7; ++i) Create(Thing("t" + std::to_string(i)));
  Start({.page_size = 3});
  RunFor(1);
  EXPECT_TRUE(informer_->synced());
  EXPECT_EQ(calls_["list"], 3);
  EXPECT_EQ(Told().size(), 7u);
  Create(Thing("new"));
  Change("t1", {{"data", "1"}});
  Delete("t2");
  RunFor(1);
  EXPECT_THAT(Told(), ElementsAre("default/new", "default/t1", "default/t2"));
  EXPECT_EQ(informer_->cache().size(), 7u);
  EXPECT_EQ((*informer_->cache().Get({"default", "t1"}))["data"], "1");
}

TEST_F(Informers, OneWatchHoweverManyObjectsAndHoweverLong) {
  for (int i = 0; i < 300; ++i) Create(Thing("t" + std::to_string(i)));
  Start();
  RunFor(3600);
  EXPECT_EQ(informer_->counts().lists, 1);
  // The server ends each after five minutes.
  EXPECT_LE(informer_->counts().watches, 13);
  EXPECT_TRUE(informer_->Problem().ok());
}

TEST_F(Informers, ABookmarkSavesTheListAfterCompaction) {
  Create(Thing("a"));
  Start();
  RunFor(1);
  // Objects of another kind change, none of this kind: only the bookmark's version is recent
  // enough.
  const ResourceType other{"", "v1", "others", "Other"};
  ResourceDefinition others;
  others.type = other;
  server_.Define(std::move(others));
  ASSERT_TRUE(
      server_
          .Create(other, {{"apiVersion", "v1"}, {"kind", "Other"}, {"metadata", {{"name", "o"}}}})
          .ok());
  RunFor(290);  // four bookmarks
  server_.CompactHistory();
  RunFor(60);  // the watch has ended and begun anew
  EXPECT_EQ(informer_->counts().lists, 1);
  EXPECT_EQ(informer_->counts().expired, 0);
  EXPECT_GE(informer_->counts().watches, 2);
}

TEST_F(Informers, AnExpiredWatchListsAnewAndTellsWhatWentMeanwhile) {
  for (const char* name : {"a", "b", "c"}) Create(Thing(name));
  Start();
  RunFor(1);
  Told();
  // Cut off; meanwhile the world changes and the server forgets how.
  decide_ = [](const std::string&, Point) { return UnavailableError("cut off"); };
  RunFor(1);
  Delete("a");
  Change("b", {{"data", "1"}});
  Create(Thing("d"));
  server_.CompactHistory();
  RunFor(5);
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_THAT(informer_->Problem().message(), HasSubstr("cut off"));
  decide_ = nullptr;
  RunFor(30);
  EXPECT_THAT(Told(), testing::UnorderedElementsAre("default/a", "default/b", "default/d"));
  EXPECT_THAT(Cached(), ElementsAre("b", "c", "d"));
  EXPECT_EQ(informer_->counts().lists, 2);
  EXPECT_EQ(informer_->counts().expired, 1);
  EXPECT_TRUE(informer_->synced());
}

TEST_F(Informers, ACutWatchGoesOnFromTheLastVersionWithoutAList) {
  Create(Thing("a"));
  Start();
  RunFor(1);
  for (int i = 0; i < 20; ++i) {
    bool cut = false;
    decide_ = [&cut](const std::string& call, Point point) {
      if (call != "next" || point != Point::kBefore || cut) return OkStatus();
      cut = true;
      return UnavailableError("the stream ended");
    };
    RunFor(1);
    Create(Thing("t" + std::to_string(i)));
    RunFor(5);
    EXPECT_TRUE(cut);
  }
  EXPECT_EQ(informer_->cache().size(), 21u);
  EXPECT_EQ(informer_->counts().lists, 1);
  EXPECT_GE(informer_->counts().watches, 21);
}

TEST_F(Informers, AServerThatIsDownIsAskedEverLessOften) {
  decide_ = [](const std::string&, Point) { return UnavailableError("connection refused"); };
  Start();
  RunFor(60);
  EXPECT_FALSE(informer_->synced());
  const int in_a_minute = calls_["list"];
  EXPECT_GE(in_a_minute, 5);
  EXPECT_LE(in_a_minute, 9) << "0.2, 0.4, 0.8, ... 30 s, each up to twice as long";
  RunFor(3600);
  EXPECT_LE(calls_["list"] - in_a_minute, 125);
  EXPECT_GE(calls_["list"] - in_a_minute, 55);
  decide_ = nullptr;
  Create(Thing("a"));
  RunFor(61);
  EXPECT_TRUE(informer_->synced());
  EXPECT_THAT(Cached(), ElementsAre("a"));
}

TEST_F(Informers, WatchesThatEndAtOnceAreNotBegunInALoop) {
  decide_ = [](const std::string& call, Point) {
    return call == "next" ? UnavailableError("the stream ended") : OkStatus();
  };
  Start();
  RunFor(600);
  EXPECT_LE(calls_["watch"], 40);
  EXPECT_EQ(calls_["list"], 1);
}

TEST_F(Informers, AServerThatForgetsAtOnceIsNotListedInALoop) {
  decide_ = [](const std::string& call, Point) {
    return call == "next" ? OutOfRangeError("410") : OkStatus();
  };
  Start();
  RunFor(600);
  EXPECT_LE(calls_["list"], 40);
  EXPECT_GE(calls_["list"], 10);
}

TEST_F(Informers, OnlyWhatTheSelectorMatches) {
  Create(Thing("mine", "default", "x"));
  Create(Thing("other", "default", "y"));
  Start({.label_selector = "app=x"});
  RunFor(1);
  EXPECT_THAT(Told(), ElementsAre("default/mine"));
  Create(Thing("new", "default", "x"));
  Create(Thing("newother", "default", "y"));
  Change("other", {{"metadata", {{"labels", {{"app", "x"}}}}}});
  Change("mine", {{"metadata", {{"labels", {{"app", "y"}}}}}});
  RunFor(1);
  EXPECT_THAT(Told(), ElementsAre("default/new", "default/other", "default/mine"));
  EXPECT_THAT(Cached(), ElementsAre("new", "other"));
}

TEST_F(Informers, NamedNamespacesOnlyEachByAWatch) {
  for (const char* space : {"one", "two", "three"}) Create(Thing(space, space));
  Start({.namespaces = {"one", "three"}});
  RunFor(1);
  EXPECT_THAT(Told(), testing::UnorderedElementsAre("one/one", "three/three"));
  EXPECT_EQ(informer_->counts().watches, 2);
  EXPECT_TRUE(informer_->synced());
}

TEST_F(Informers, IsNotSyncedBeforeEveryNamespaceWasListed) {
  int lists = 0;
  decide_ = [&](const std::string& call, Point point) {
    const bool refuse = call == "list" && point == Point::kBefore && ++lists > 1;
    return refuse ? PermissionDeniedError("forbidden") : OkStatus();
  };
  Start({.namespaces = {"one", "two"}});
  RunFor(10);
  EXPECT_FALSE(informer_->synced());
  EXPECT_THAT(informer_->Problem().message(), HasSubstr("forbidden"));
}

TEST_F(Informers, ANewHandlerIsToldOfAllThatIsThere) {
  Create(Thing("a"));
  Create(Thing("b"));
  Start();
  RunFor(1);
  std::vector<std::string> second;
  (void)process_.Spawn("lead", [&] {
    informer_->SetHandler([&](const ObjectName& name) { second.push_back(name.name); });
  });
  RunFor(1);
  EXPECT_THAT(second, ElementsAre("a", "b"));
  Told();
  Create(Thing("c"));
  RunFor(1);
  EXPECT_THAT(second, ElementsAre("a", "b", "c"));
  EXPECT_THAT(Told(), IsEmpty()) << "the old one is not called any more";
}

TEST_F(Informers, OwnWritesInTheCacheAreNotTakenBackByTheWatch) {
  Create(Thing("a"));
  Start();
  RunFor(1);
  const Json older = server_.Get(kThing, {"default", "a"}).value();
  Json written = older;
  Change("a", {{"data", "1"}});
  written = server_.Get(kThing, {"default", "a"}).value();
  informer_->cache().Put(written);
  RunFor(1);
  EXPECT_EQ((*informer_->cache().Get({"default", "a"}))["data"], "1");
  EXPECT_FALSE(informer_->cache().Put(older));
}

TEST_F(Informers, StopEndsWhateverItIsIn) {
  decide_ = [](const std::string&, Point) { return UnavailableError("down"); };
  Start();
  RunFor(300);  // in a long wait
  bool stopped = false;
  (void)process_.Spawn("stop", [&] {
    informer_->Stop();
    stopped = true;
  });
  RunFor(1);
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace lambdadnn
