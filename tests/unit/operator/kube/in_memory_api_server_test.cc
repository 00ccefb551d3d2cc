// SPDX-License-Identifier: Apache-2.0
// What the in-memory API server does with time, history and files; everything that a real server
// does as well is in kube_client_conformance.cc.
#include "operator/kube/in_memory_api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "common/base/files.h"
#include "operator/kube/object_metadata.h"
#include "tests/simulation/sim_runtime.h"
#include "tests/simulation/sim_scheduler.h"
#include "tests/support/faulty_kube_client.h"
#include "tests/support/paths.h"
#include "tests/unit/operator/kube/kube_client_conformance.h"

namespace lambdadnn {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

struct World {
  SystemClock clock;
  ThreadExecutor executor;
  SeededRandom random{1};
  Runtime runtime{clock, executor, random};

  std::unique_ptr<InMemoryApiServer> NewServer(InMemoryApiServerOptions options = {}) {
    auto server = std::make_unique<InMemoryApiServer>(runtime, std::move(options));
    server->Define(ReadResourceDefinition(ConformanceCrd()).value());
    server->Define(EventDefinition());
    return server;
  }
};

Json OwnedBy(Json child, const Json& owner) {
  child["metadata"]["ownerReferences"] = {{{"apiVersion", "test.lambdadnn.io/v1"},
                                           {"kind", "Widget"},
                                           {"name", NameOf(owner).name},
                                           {"uid", MetadataText(owner, "uid")}}};
  return child;
}

// Runs `body` as the only process of a simulated world: virtual time, one fiber at a time.
void RunOnFibers(const std::function<void(Runtime&)>& body) {
  simulation::SimScheduler scheduler(1);
  simulation::SimProcess& process = scheduler.NewProcess("test");
  bool done = false;
  process.Spawn("main", [&] {
    body(process.runtime());
    done = true;
  });
  const Status ran = scheduler.Run([&] { return done; }, {});
  EXPECT_TRUE(ran.ok()) << ran.ToString();
}

TEST(InMemoryApiServer, UnknownResourcesAreNotFound) {
  World world;
  const auto server = world.NewServer();
  const ResourceType pods{"", "v1", "pods", "Pod"};
  EXPECT_EQ(server->Get(pods, {"default", "x"}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(server->StartWatch(pods, "", "", "").status().code(), StatusCode::kNotFound);
}

TEST(InMemoryApiServer, RulesSeeTheOldObjectOfAnUpdate) {
  World world;
  InMemoryApiServer server(world.runtime);
  ResourceDefinition definition = ReadResourceDefinition(ConformanceCrd()).value();
  definition.rules = [](const Json& object, const Json* old, std::vector<FieldError>* errors) {
    if (old != nullptr && object["spec"]["size"] < (*old)["spec"]["size"]) {
      errors->push_back({"spec.size", "must not shrink"});
    }
  };
  server.Define(std::move(definition));
  ASSERT_TRUE(server.Create(WidgetType(), MakeWidget("a")).ok());
  const ObjectName name{"default", "a"};
  const Status refused =
      server.Patch(WidgetType(), name, {{"spec", {{"size", 2}}}}, Subresource::kNone).status();
  EXPECT_THAT(refused.message(), HasSubstr("spec.size: must not shrink"));
  EXPECT_TRUE(server.Patch(WidgetType(), name, {{"spec", {{"size", 4}}}}, Subresource::kNone).ok());
}

TEST(InMemoryApiServer, AWatchThatFellBehindGetsGone) {
  World world;
  const auto server = world.NewServer({.history_limit = 2});
  const auto watch = server->StartWatch(WidgetType(), "", "", "");
  const std::string start = server->List(WidgetType(), "", "", 0, "")->resource_version;
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(server->Create(WidgetType(), MakeWidget(name)).ok());
  }
  EXPECT_EQ((*watch)->Next(seconds(1)).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(server->StartWatch(WidgetType(), "", "", "0").status().code(), StatusCode::kOk);
  EXPECT_NE(start, "");
}

TEST(InMemoryApiServer, CompactionEndsOldVersionsAndContinueTokensButNotTheNewestVersion) {
  World world;
  const auto server = world.NewServer();
  ASSERT_TRUE(server->Create(WidgetType(), MakeWidget("a")).ok());
  const std::string old = server->List(WidgetType(), "", "", 0, "")->resource_version;
  ASSERT_TRUE(server->Create(WidgetType(), MakeWidget("b")).ok());
  const auto page = server->List(WidgetType(), "", "", 1, "");
  server->CompactHistory();
  EXPECT_EQ(server->StartWatch(WidgetType(), "", "", old).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(server->List(WidgetType(), "", "", 1, page->continue_token).status().code(),
            StatusCode::kOutOfRange);
  const auto watch = server->StartWatch(WidgetType(), "", "", page->resource_version);
  ASSERT_TRUE(watch.ok());
  ASSERT_TRUE(server->Create(WidgetType(), MakeWidget("c")).ok());
  EXPECT_EQ((*watch)->Next(seconds(1))->kind, WatchEvent::Kind::kAdded);
}

TEST(InMemoryApiServer, NonsenseVersionsAndTokensAreRefused) {
  World world;
  const auto server = world.NewServer();
  EXPECT_EQ(server->StartWatch(WidgetType(), "", "", "abc").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(server->StartWatch(WidgetType(), "", "", "99").status().code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(server->List(WidgetType(), "", "", 1, "x").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(server->List(WidgetType(), "", "", 1, "7:1").status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(server->Patch(WidgetType(), {"default", "a"}, 7, Subresource::kNone).status().code(),
            StatusCode::kNotFound);
}

TEST(InMemoryApiServer, BookmarksComeWhileNothingElseDoesAndStreamsEnd) {
  RunOnFibers([](Runtime& runtime) {
    InMemoryApiServer server(
        runtime, {.bookmark_interval = minutes(1), .watch_timeout = minutes(2) + seconds(30)});
    server.Define(ReadResourceDefinition(ConformanceCrd()).value());
    const auto watch = server.StartWatch(WidgetType(), "", "", "");
    const Instant start = runtime.clock.Now();
    ASSERT_TRUE(server.Create(WidgetType(), MakeWidget("a")).ok());
    EXPECT_EQ((*watch)->Next(minutes(9))->kind, WatchEvent::Kind::kAdded);
    auto bookmark = (*watch)->Next(minutes(9));
    ASSERT_TRUE(bookmark.ok());
    EXPECT_EQ(bookmark->kind, WatchEvent::Kind::kBookmark);
    EXPECT_EQ(MetadataText(bookmark->object, "resourceVersion"), "1");
    EXPECT_EQ(runtime.clock.Now() - start, minutes(1));
    EXPECT_EQ((*watch)->Next(seconds(10)).status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ((*watch)->Next(minutes(9))->kind, WatchEvent::Kind::kBookmark);
    EXPECT_EQ((*watch)->Next(minutes(9)).status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(runtime.clock.Now() - start, minutes(2) + seconds(30));
  });
}

TEST(InMemoryApiServer, AWaitingWatchWakesForAnotherFibersWriteAndForDueGarbage) {
  RunOnFibers([](Runtime& runtime) {
    InMemoryApiServer server(runtime, {.garbage_collection_delay = seconds(10)});
    server.Define(ReadResourceDefinition(ConformanceCrd()).value());
    const Json owner = *server.Create(WidgetType(), MakeWidget("owner"));
    ASSERT_TRUE(server.Create(WidgetType(), OwnedBy(MakeWidget("child"), owner)).ok());
    const std::string version = server.List(WidgetType(), "", "", 0, "")->resource_version;
    const auto watch = server.StartWatch(WidgetType(), "", "", version);
    const Instant start = runtime.clock.Now();
    const auto writer = runtime.executor.Spawn("writer", [&] {
      runtime.clock.SleepFor(seconds(5));
      EXPECT_TRUE(server.Delete(WidgetType(), {"default", "owner"}, "").ok());
    });
    EXPECT_EQ((*watch)->Next(minutes(9))->kind, WatchEvent::Kind::kDeleted);
    EXPECT_EQ(runtime.clock.Now() - start, seconds(5));
    const auto child = (*watch)->Next(minutes(9));
    EXPECT_EQ(child->kind, WatchEvent::Kind::kDeleted);
    EXPECT_EQ(NameOf(child->object).name, "child");
    EXPECT_EQ(runtime.clock.Now() - start, seconds(15));
  });
}

TEST(InMemoryApiServer, AChildOfAnOwnerThatIsGoneIsCollected) {
  World world;
  const auto server = world.NewServer();
  const Json owner = *server->Create(WidgetType(), MakeWidget("owner"));
  ASSERT_TRUE(server->Delete(WidgetType(), {"default", "owner"}, "").ok());
  ASSERT_TRUE(server->Create(WidgetType(), OwnedBy(MakeWidget("late"), owner)).ok());
  EXPECT_EQ(server->Get(WidgetType(), {"default", "late"}).status().code(), StatusCode::kNotFound);
}

TEST(InMemoryApiServer, AGrandchildWaitsForItsParentsFinalizer) {
  World world;
  const auto server = world.NewServer();
  const Json owner = *server->Create(WidgetType(), MakeWidget("owner"));
  Json child = OwnedBy(MakeWidget("child"), owner);
  child["metadata"]["finalizers"] = {"lambdadnn.io/cleanup"};
  child = *server->Create(WidgetType(), child);
  ASSERT_TRUE(server->Create(WidgetType(), OwnedBy(MakeWidget("grandchild"), child)).ok());
  ASSERT_TRUE(server->Delete(WidgetType(), {"default", "owner"}, "").ok());
  EXPECT_TRUE(IsBeingDeleted(*server->Get(WidgetType(), {"default", "child"})));
  EXPECT_TRUE(server->Get(WidgetType(), {"default", "grandchild"}).ok());
  ASSERT_TRUE(server
                  ->Patch(WidgetType(), {"default", "child"},
                          {{"metadata", {{"finalizers", Json::array()}}}}, Subresource::kNone)
                  .ok());
  EXPECT_EQ(server->List(WidgetType(), "", "", 0, "")->items.size(), 0u);
}

TEST(InMemoryApiServer, OldEventsGoWhenNewOnesCome) {
  RunOnFibers([](Runtime& runtime) {
    InMemoryApiServer server(runtime);
    server.Define(EventDefinition());
    const auto event = [](const std::string& name) {
      return Json{{"apiVersion", "events.k8s.io/v1"},
                  {"kind", "Event"},
                  {"metadata", {{"name", name}}},
                  {"note", "text"}};
    };
    ASSERT_TRUE(server.Create(EventType(), event("a")).ok());
    runtime.clock.SleepFor(minutes(40));
    ASSERT_TRUE(server.Create(EventType(), event("b")).ok());
    runtime.clock.SleepFor(minutes(40));
    ASSERT_TRUE(server.Create(EventType(), event("c")).ok());
    const auto list = server.List(EventType(), "", "", 0, "");
    ASSERT_EQ(list->items.size(), 2u);
    EXPECT_EQ(NameOf(list->items[0]).name, "b");
  });
}

TEST(InMemoryApiServer, ASavedStateIsRestoredAndOldWatchesListAgain) {
  World world;
  const std::string file = MakeTempDir() + "/state.json";
  const auto server = world.NewServer({.file = file});
  Json widget = MakeWidget("a");
  widget["metadata"]["finalizers"] = {"lambdadnn.io/cleanup"};
  ASSERT_TRUE(server->Create(WidgetType(), widget).ok());
  const auto patched = server->Patch(WidgetType(), {"default", "a"}, {{"status", {{"ready", 2}}}},
                                     Subresource::kStatus);
  const auto heir = world.NewServer({.file = file});
  const auto watch = heir->StartWatch(WidgetType(), "", "", "");
  ASSERT_TRUE(heir->RestoreFile().ok());
  EXPECT_EQ(*heir->Get(WidgetType(), {"default", "a"}), *patched);
  EXPECT_EQ((*watch)->Next(seconds(1)).status().code(), StatusCode::kOutOfRange);
  const auto more = heir->Patch(WidgetType(), {"default", "a"}, {{"status", {{"ready", 3}}}},
                                Subresource::kStatus);
  EXPECT_GT(std::stoi(MetadataText(*more, "resourceVersion")),
            std::stoi(MetadataText(*patched, "resourceVersion")));
}

TEST(InMemoryApiServer, ABadStateFileIsAnErrorThatNamesIt) {
  World world;
  const std::string file = MakeTempDir() + "/state.json";
  const auto server = world.NewServer({.file = file});
  EXPECT_EQ(server->RestoreFile().code(), StatusCode::kNotFound);
  for (const char* text :
       {"", "{", "7", "{}", R"({"resourceVersion": 1, "objects": [7]})",
        R"({"resourceVersion": 1, "objects": [{"kind": "Pod", "apiVersion": "v1"}]})",
        R"({"resourceVersion": 1, "objects":
            [{"kind": "Widget", "apiVersion": "test.lambdadnn.io/v1", "metadata": {}}]})"}) {
    ASSERT_TRUE(WriteFileAtomically(file, text).ok());
    const Status restored = server->RestoreFile();
    EXPECT_EQ(restored.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(restored.message(), HasSubstr(file)) << text;
  }
}

TEST(InMemoryApiServer, AChangeThatCannotBeSavedSaysSoAfterItsEffect) {
  World world;
  const auto server = world.NewServer({.file = "/proc/no-such-folder/state.json"});
  EXPECT_EQ(server->Create(WidgetType(), MakeWidget("a")).status().code(),
            StatusCode::kUnavailable);
  EXPECT_TRUE(server->Get(WidgetType(), {"default", "a"}).ok());
}

TEST(InMemoryApiServer, ThousandsOfWritesASecond) {
  World world;
  const auto server = world.NewServer();
  ASSERT_TRUE(server->Create(WidgetType(), MakeWidget("a")).ok());
  const Instant start = world.clock.Now();
  constexpr int kWrites = 5000;
  for (int i = 1; i <= kWrites; ++i) {
    ASSERT_TRUE(server
                    ->Patch(WidgetType(), {"default", "a"}, {{"status", {{"ready", i}}}},
                            Subresource::kStatus)
                    .ok());
  }
  const double seconds_per_write = ToSeconds(world.clock.Now() - start) / kWrites;
  RecordProperty("microseconds_per_write", std::to_string(seconds_per_write * 1e6));
  EXPECT_LT(seconds_per_write, 1e-3);  // a bound for a very busy machine
}

TEST(FaultyKubeClient, LosesARepliesAfterTheEffectAndRefusesBeforeIt) {
  World world;
  const auto server = world.NewServer();
  FaultyKubeClient::Point point = FaultyKubeClient::Point::kAfter;
  FaultyKubeClient faulty(*server, [&](const std::string& call, const std::string& name,
                                       FaultyKubeClient::Point at) {
    return call == "create" && name == "a" && at == point ? UnavailableError("cut") : OkStatus();
  });
  EXPECT_EQ(faulty.Create(WidgetType(), MakeWidget("a")).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(faulty.Get(WidgetType(), {"default", "a"}).ok());
  ASSERT_TRUE(faulty.Delete(WidgetType(), {"default", "a"}, "").ok());
  point = FaultyKubeClient::Point::kBefore;
  EXPECT_EQ(faulty.Create(WidgetType(), MakeWidget("a")).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(faulty.Get(WidgetType(), {"default", "a"}).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace lambdadnn
