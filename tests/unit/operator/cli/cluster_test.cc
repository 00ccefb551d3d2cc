// SPDX-License-Identifier: Apache-2.0
// The parts of the commands that speak with a cluster, on an API server in memory and virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/objectstore/memory_object_store.h"
#include "operator/api/job_codec.h"
#include "operator/cli/cluster/cluster_platform.h"
#include "operator/cli/cluster/completion_script.h"
#include "operator/cli/cluster/function_logs.h"
#include "operator/cli/cluster/job_detail.h"
#include "operator/cli/cluster/job_events.h"
#include "operator/cli/cluster/job_follow.h"
#include "operator/cli/cluster/job_list.h"
#include "operator/cli/cluster/job_table.h"
#include "operator/cli/cluster/node_check.h"
#include "operator/cli/job_outcome.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"
#include "operator/resources/knative_service.h"
#include "operator/resources/slice_requests.h"
#include "tests/support/virtual_runtime.h"

namespace lambdadnn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const ObjectName kDigits = {"team", "digits"};

Json JobObject(const std::string& name) {
  Json object = Json::parse(R"({
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"namespace": "team"},
    "spec": {"model": {"builtin": {"name": "cnn"}}, "dataset": {"renderedDigits": {}},
             "training": {"epochs": 3, "globalBatchSize": 120},
             "objective": {"deadlineSeconds": 90}}})");
  object["metadata"]["name"] = name;
  return object;
}

Json RunningStatus() {
  return Json::parse(R"({"status": {
    "phase": "Running", "usage": {"restarts": 2, "cost": "0.0042", "coldStarts": 6,
              "workerSeconds": {"compute": "12", "wait": "3.25", "evaluate": "0"}},
    "progress": {"iteration": 120, "iterations": 300, "progressPercentage": 40,
                 "loss": "0.3125", "testAccuracy": "0.9", "samplesPerSecond": "1200"},
    "startTime": "1970-01-01T00:00:00Z",
    "summary": {"functions": "4/4", "memory": "1728Mi", "epoch": "2/3", "loss": "0.3125",
                "eta": "41s", "cost": "$0.0042", "reason": "Training", "plan": "4 x 1728Mi"},
    "conditions": [{"type": "Running", "status": "True", "reason": "Training",
                    "message": "slices are under way",
                    "lastTransitionTime": "1970-01-01T00:00:00Z"}]}})");
}

// Runs a concurrent change at the n-th read of the job.
class ScriptedKube final : public KubeClient {
 public:
  explicit ScriptedKube(KubeClient& server) : server_(server) {}
  std::vector<Status> get_errors;  // taken one a Get, from the front
  std::vector<Status> watch_errors;

  // The pod and the container run whose log was requested.
  Result<std::string> PodLog(const ObjectName& pod, const std::string&, ContainerRun life,
                             int) override {
    return pod.name + (life == ContainerRun::kPrevious ? " before\n" : " now\n");
  }
  Result<Json> Get(const ResourceType& type, const ObjectName& name) override {
    if (!get_errors.empty()) {
      const Status error = get_errors.front();
      get_errors.erase(get_errors.begin());
      if (!error.ok()) return error;
    }
    return server_.Get(type, name);
  }
  Result<KubeList> List(const ResourceType& type, const std::string& namespace_name,
                        const std::string& selector, int, const std::string& token) override {
    return server_.List(type, namespace_name, selector, 2, token);  // several pages
  }
  Result<Json> Create(const ResourceType& type, const Json& object) override {
    return server_.Create(type, object);
  }
  Result<Json> Update(const ResourceType& type, const Json& object, Subresource part) override {
    return server_.Update(type, object, part);
  }
  Result<Json> Patch(const ResourceType& type, const ObjectName& name, const Json& patch,
                     Subresource part) override {
    return server_.Patch(type, name, patch, part);
  }
  Status Delete(const ResourceType& type, const ObjectName& name, const std::string& uid) override {
    return server_.Delete(type, name, uid);
  }
  Result<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const std::string& place,
                                            const std::string& selector,
                                            const std::string& version) override {
    if (!watch_errors.empty()) {
      const Status error = watch_errors.front();
      watch_errors.erase(watch_errors.begin());
      return error;
    }
    return server_.StartWatch(type, place, selector, version);
  }

 private:
  KubeClient& server_;
};

class OnACluster : public ::testing::Test {
 protected:
  OnACluster() : server(time.runtime), kube(server) {
    server.Define(JobDefinition());
    server.Define(EventDefinition());
    ResourceDefinition config_maps;
    config_maps.type = {"", "v1", "configmaps", "ConfigMap"};
    server.Define(config_maps);
  }
  Json Make(const std::string& name) {
    return server.Create(ServerlessTrainingJobType(), JobObject(name)).value();
  }
  void SetStatus(const ObjectName& name, const Json& patch) {
    ASSERT_TRUE(server.Patch(ServerlessTrainingJobType(), name, patch, Subresource::kStatus).ok());
  }
  Result<int> Follow(const std::function<std::optional<int>(const Json& object)>& visit) {
    return FollowJob(kube, time.runtime, kDigits, visit);
  }

  VirtualRuntime time;
  InMemoryApiServer server;
  ScriptedKube kube;
};

class Nodes : public OnACluster {
 protected:
  Nodes() {
    ResourceDefinition nodes;
    nodes.type = NodeType();
    server.Define(nodes);
  }
  void Add(const std::string& name, const std::string& architecture) {
    ASSERT_TRUE(
        server
            .Create(NodeType(), {{"apiVersion", "v1"},
                                 {"kind", "Node"},
                                 {"metadata", {{"name", name}}},
                                 {"status", {{"nodeInfo", {{"architecture", architecture}}}}}})
            .ok());
  }
};

TEST_F(Nodes, OfOneArchitectureThatHasImagesAreWell) {
  EXPECT_EQ(CheckNodes(kube).text, "there are none");
  for (const char* name : {"a", "b", "c"}) Add(name, "arm64");
  EXPECT_EQ(CheckNodes(kube).level, CheckFinding::Level::kGood);
  EXPECT_EQ(CheckNodes(kube).text, "are 3, all arm64");
}

TEST_F(Nodes, OfTwoArchitecturesAreWarnedOfWithWhatToWrite) {
  Add("a", "amd64");
  Add("b", "arm64");
  Add("c", "arm64");
  const CheckFinding found = CheckNodes(kube);
  EXPECT_EQ(found.level, CheckFinding::Level::kWarning);
  EXPECT_THAT(found.text, HasSubstr("are 1 amd64 (a), 2 arm64 (b)"));
  EXPECT_THAT(found.text, HasSubstr("nodeSelector {kubernetes.io/arch: arm64}"));
}

TEST_F(Nodes, OfAnArchitectureWithoutImagesAreMissingUnlessThereAreOthers) {
  for (const char* name : {"a", "b"}) Add(name, "s390x");
  EXPECT_EQ(CheckNodes(kube).level, CheckFinding::Level::kMissing);
  EXPECT_THAT(CheckNodes(kube).text,
              HasSubstr("are 2 s390x (a), and images of lambdadnn are for amd64 and arm64"));
  Add("c", "amd64");
  EXPECT_EQ(CheckNodes(kube).level, CheckFinding::Level::kWarning);
  EXPECT_THAT(CheckNodes(kube).text, HasSubstr("nodeSelector {kubernetes.io/arch: amd64}"));
}

TEST_F(OnACluster, NodesThatMayNotBeListedAreNotJudged) {
  const CheckFinding found = CheckNodes(kube);
  EXPECT_EQ(found.level, CheckFinding::Level::kGood);
  EXPECT_THAT(found.text, HasSubstr("cannot be judged"));
}

TEST_F(OnACluster, FollowingSeesEachChangeAndEndsWhenToldTo) {
  Make("digits");
  Make("other");
  std::vector<std::string> phases;
  const auto ended = Follow([&](const Json& object) -> std::optional<int> {
    EXPECT_EQ(NameOf(object), kDigits);
    const std::string phase = TextField(object.value("status", Json::object()), "phase");
    if (phases.empty() || phases.back() != phase) phases.push_back(phase);
    if (phase.empty()) {
      SetStatus({"team", "other"}, {{"status", {{"phase", "Failed"}}}});
      SetStatus(kDigits, RunningStatus());
    }
    if (phase == "Running") SetStatus(kDigits, {{"status", {{"phase", "Complete"}}}});
    return phase == "Complete" ? std::optional<int>(7) : std::nullopt;
  });
  EXPECT_EQ(ended.value(), 7);
  EXPECT_THAT(phases, ElementsAre("", "Running", "Complete"));
}

TEST_F(OnACluster, FollowingSurvivesAWatchThatEndsAndHistoryThatIsGone) {
  Make("digits");
  kube.watch_errors = {UnavailableError("cut"), OutOfRangeError("410 Gone"),
                       UnavailableError("cut")};
  int visits = 0;
  const auto ended = Follow([&](const Json&) -> std::optional<int> {
    return kube.watch_errors.empty() && ++visits == 3 ? std::optional<int>(0) : std::nullopt;
  });
  EXPECT_TRUE(ended.ok());
}

TEST_F(OnACluster, FollowingIsPatientWithAServerThatDoesNotAnswerButNotForEver) {
  Make("digits");
  kube.get_errors.assign(100, UnavailableError("refused"));
  EXPECT_TRUE(Follow([](const Json&) { return std::optional<int>(0); }).ok());
  kube.get_errors.assign(1000, UnavailableError("refused"));
  const auto given_up = Follow([](const Json&) { return std::optional<int>(0); });
  EXPECT_EQ(given_up.status().code(), StatusCode::kUnavailable);
  EXPECT_LT(kube.get_errors.size(), 900u);
}

TEST_F(OnACluster, FollowingATakenAwayJobSaysSo) {
  Make("digits");
  bool deleted = false;
  const auto ended = Follow([&](const Json&) -> std::optional<int> {
    if (!deleted) {
      deleted = true;
      EXPECT_TRUE(server.Delete(ServerlessTrainingJobType(), kDigits, "").ok());
      Make("digits");  // another one of the same name
    }
    return std::nullopt;
  });
  EXPECT_EQ(ended.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(ended.status().message(), HasSubstr("was deleted"));
}

TEST_F(OnACluster, WhoMayNotWatchPolls) {
  Make("digits");
  class NoWatch final : public Watch {
    Result<WatchEvent> Next(Duration) override { return PermissionDeniedError("watch"); }
  };
  class Refusing final : public KubeClient {
   public:
    explicit Refusing(KubeClient& server) : server_(server) {}
    Result<Json> Get(const ResourceType& type, const ObjectName& name) override {
      return server_.Get(type, name);
    }
    Result<KubeList> List(const ResourceType&, const std::string&, const std::string&, int,
                          const std::string&) override {
      return PermissionDeniedError("list");
    }
    Result<Json> Create(const ResourceType&, const Json&) override {
      return PermissionDeniedError("create");
    }
    Result<Json> Update(const ResourceType&, const Json&, Subresource) override {
      return PermissionDeniedError("update");
    }
    Result<Json> Patch(const ResourceType&, const ObjectName&, const Json&, Subresource) override {
      return PermissionDeniedError("patch");
    }
    Status Delete(const ResourceType&, const ObjectName&, const std::string&) override {
      return PermissionDeniedError("delete");
    }
    Result<std::unique_ptr<Watch>> StartWatch(const ResourceType&, const std::string&,
                                              const std::string&, const std::string&) override {
      return std::unique_ptr<Watch>(std::make_unique<NoWatch>());
    }

   private:
    KubeClient& server_;
  };
  Refusing refusing(server);
  int visits = 0;
  const auto ended = FollowJob(refusing, time.runtime, kDigits, [&](const Json&) {
    return ++visits == 4 ? std::optional<int>(0) : std::nullopt;
  });
  EXPECT_TRUE(ended.ok()) << ended.status().ToString();
}

TEST_F(OnACluster, ListsReadEveryPage) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Make(name);
  EXPECT_EQ(ListJobs(kube, "team").value().items.size(), 5u);
  EXPECT_EQ(ListJobs(kube, "").value().items.size(), 5u);
  EXPECT_THAT(ListJobs(kube, "elsewhere").value().items, IsEmpty());
}

TEST_F(OnACluster, AWatchedTableGrowsALineForAChangeButNotForAge) {
  for (const char* name : {"a", "b", "c"}) Make(name);
  kube.watch_errors.assign(3, UnavailableError("cut"));
  kube.watch_errors.push_back(PermissionDeniedError("enough"));
  std::string text;
  JobTableWatch watch(kube, time.runtime, "team", {});
  int lines = 0;
  const Status ended = watch.Run([&](const std::string& line) {
    text += line;
    // Header, a, b, c: then something happens to b.
    if (++lines == 4) SetStatus({"team", "b"}, RunningStatus());
  });
  EXPECT_EQ(ended.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(lines, 5) << text;
  EXPECT_THAT(text, HasSubstr("NAME   STATE"));
  EXPECT_THAT(text, HasSubstr("b      Running"));
}

TEST_F(OnACluster, AWatchedTableShowsWhatWasDeletedWhileTheWatchWasAway) {
  for (const char* name : {"a", "b", "c"}) Make(name);
  kube.watch_errors = {UnavailableError("cut"), OutOfRangeError("410"),
                       PermissionDeniedError("enough")};
  std::vector<std::string> lines;
  JobTableWatch watch(kube, time.runtime, "team", {});
  const Status ended = watch.Run([&](const std::string& line) {
    lines.push_back(line);
    // All are shown: the watch ends, and b goes before the next list.
    if (lines.size() == 4) {
      ASSERT_TRUE(server.Delete(ServerlessTrainingJobType(), {"team", "b"}, "").ok());
    }
  });
  EXPECT_EQ(ended.code(), StatusCode::kPermissionDenied);
  ASSERT_EQ(lines.size(), 5u) << "once";
  EXPECT_THAT(lines[4], testing::StartsWith("b "));
  EXPECT_THAT(lines[4], HasSubstr("Deleted"));
}

TEST_F(OnACluster, EventsAreThoseAboutTheJob) {
  const auto event = [&](const char* id, const char* kind, const char* api, const char* name) {
    Json json = {{"apiVersion", "events.k8s.io/v1"},
                 {"kind", "Event"},
                 {"metadata", {{"name", id}, {"namespace", "team"}}},
                 {"eventTime", "1970-01-01T00:00:00.000000Z"},
                 {"reason", id},
                 {"type", "Normal"},
                 {"note", "a sentence"},
                 {"regarding", {{"apiVersion", api}, {"kind", kind}, {"name", name}}}};
    ASSERT_TRUE(server.Create(EventType(), json).ok());
  };
  event("one", "ServerlessTrainingJob", kApiVersion, "digits");
  event("two", "Pod", "v1", "digits");
  event("three", "ServerlessTrainingJob", kApiVersion, "other");
  event("four", "ServerlessTrainingJob", kApiVersion, "digits");
  EXPECT_EQ(ListJobEvents(kube, kDigits).value().size(), 2u);
  EXPECT_EQ(ListJobEvents(kube, {"team", ""}).value().size(), 3u);
  EXPECT_THAT(ListJobEvents(kube, {"other", ""}).value(), IsEmpty());
}

TEST_F(OnACluster, ThePlatformIsReadWhereItIsPublished) {
  EXPECT_THAT(ReadClusterPlatform(kube).status().message(), HasSubstr("give --platform FILE"));
  ASSERT_TRUE(
      server
          .Create({"", "v1", "configmaps", "ConfigMap"},
                  {{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", {{"name", kPlatformConfigMap}, {"namespace", kPlatformNamespace}}},
                   {"data", {{kPlatformKey, "maxFunctions: 4"}}}})
          .ok());
  EXPECT_EQ(ReadClusterPlatform(kube).value(), "maxFunctions: 4");
}

TEST_F(OnACluster, AProfileIsTakenFromTheSameJobOnly) {
  const Json created = Make("digits");
  Job job = DecodeJob(created).value();
  EXPECT_FALSE(FindMeasuredProfile(kube, kDigits, job));
  SetStatus(kDigits, {{"status",
                       {{"profile",
                         {{"trainingSamples", 12000},
                          {"modelBytes", 4000},
                          {"trainingRate", {{"slope", "2"}, {"intercept", "0"}}}}}}}});
  ASSERT_TRUE(FindMeasuredProfile(kube, kDigits, job));
  EXPECT_EQ(FindMeasuredProfile(kube, kDigits, job)->training_samples, 12000);
  job.spec.training.global_batch_size = 60;
  EXPECT_FALSE(FindMeasuredProfile(kube, kDigits, job));
}

WallTime At(int seconds) { return WallTime{} + FromSeconds(seconds); }

TEST(JobTable, ShowsWhatTheOperatorSummarised) {
  Json object = JobObject("digits");
  object["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z";
  object.merge_patch(RunningStatus());
  const auto table = [&](const JobTableOptions& options) {
    return FormatTable({JobTableHeader(options), JobTableEntry(object, options, At(65))});
  };
  EXPECT_EQ(table({}),
            "NAME     STATE     FUNCTIONS   MEMORY   EPOCH   LOSS     ETA   COST      AGE\n"
            "digits   Running   4/4         1728Mi   2/3     0.3125   41s   $0.0042   1m5s\n");
  EXPECT_EQ(table({.with_namespace = true, .wide = true}),
            "NAMESPACE   NAME     STATE     FUNCTIONS   MEMORY   EPOCH   LOSS     ETA   COST      "
            "AGE    REASON     PLAN         RESTARTS\n"
            "team        digits   Running   4/4         1728Mi   2/3     0.3125   41s   $0.0042   "
            "1m5s   Training   4 x 1728Mi   2\n");
  object["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:01Z";
  EXPECT_THAT(table({}), HasSubstr("Terminating"));
}

TEST(JobTable, AJobThatNobodyHasLookedAtHasEmptyColumns) {
  const TableRow row = JobTableEntry(JobObject("digits"), {}, At(0));
  EXPECT_THAT(row, ElementsAre("digits", "<none>", "", "", "", "", "", "", "<unknown>"));
}

TEST(JobTable, EventsAreInOrderOfTheirLastTime) {
  const auto event = [](const char* reason, const char* time, int count, const char* last) {
    Json json = {{"eventTime", time}, {"reason", reason}, {"type", "Normal"}, {"note", "why"}};
    if (count > 0) json["series"] = {{"count", count}, {"lastObservedTime", last}};
    return json;
  };
  EXPECT_EQ(FormatEvents({event("B", "1970-01-01T00:00:01Z", 3, "1970-01-01T00:01:00.000000Z"),
                          event("A", "1970-01-01T00:00:30.000000Z", 0, "")},
                         {}, At(90)),
            "LAST SEEN   TYPE     REASON   COUNT   MESSAGE\n"
            "1m0s        Normal   A        1       why\n"
            "30s         Normal   B        3       why\n");
}

TEST(JobTable, EventsOfManyJobsNameTheirs) {
  const Json event = Json::parse(R"({"kind": "Event", "eventTime": "1970-01-01T00:00:30Z",
      "metadata": {"name": "digits.17f3", "namespace": "team"}, "type": "Normal", "reason": "A",
      "note": "why", "reportingController": "lambdadnn.io/controller",
      "regarding": {"name": "digits"}})");
  EXPECT_EQ(FormatEvents({event}, {.with_job = true}, At(90)),
            "LAST SEEN   JOB      TYPE     REASON   COUNT   MESSAGE\n"
            "1m0s        digits   Normal   A        1       why\n");
  EXPECT_EQ(
      FormatEvents({event}, {.with_namespace = true, .with_job = true, .wide = true}, At(90)),
      "NAMESPACE   LAST SEEN   JOB      TYPE     REASON   COUNT   FROM                      NAME"
      "          MESSAGE\n"
      "team        1m0s        digits   Normal   A        1       lambdadnn.io/controller   "
      "digits.17f3   why\n");
  EXPECT_EQ(FormatObjects({event}, "name"), "event.events.k8s.io/digits.17f3\n");
  // What is no event of a server that can be trusted.
  EXPECT_THAT(FormatEvents({Json::parse(R"({"regarding": 5})")}, {.with_job = true}, At(90)),
              HasSubstr("<unknown>"));
}

TEST(JobTable, MachineFormatsAreLists) {
  const std::vector<Json> jobs = {JobObject("a"), JobObject("b")};
  EXPECT_EQ(FormatObjects(jobs, "name"),
            "serverlesstrainingjob.lambdadnn.io/a\nserverlesstrainingjob.lambdadnn.io/b\n");
  const Json list = Json::parse(FormatObjects(jobs, "json"));
  EXPECT_EQ(list["kind"], "List");
  EXPECT_EQ(list["items"].size(), 2u);
  EXPECT_THAT(FormatObjects({}, "yaml"), HasSubstr("items: []"));
}

TEST(JobDetail, TellsTheWholeStory) {
  Json object = JobObject("digits");
  object.merge_patch(RunningStatus());
  std::vector<FieldError> ignored;
  const std::string text = FormatJobDetail(DecodeJob(object, &ignored), At(65));
  for (const char* part :
       {"digits (namespace team): Running", "built-in cnn on 12000 rendered digits",
        "done within 1m30s", "iteration 120/300", "loss 0.3125", "test accuracy 90.00 %",
        "1200 samples/s", "2 restarts", "compute 12s, wait 3s\n", "1m5s ago",
        "Running     True     1m5s    Training   slices are under way"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(FormatJobDetail(DecodeJob(JobObject("new")).value(), At(0)),
              HasSubstr("no operator has reconciled it yet"));
  object["metadata"]["annotations"] = {{"lambdadnn.io/paused", "true"}};
  EXPECT_THAT(FormatJobDetail(DecodeJob(object, &ignored), At(65)),
              HasSubstr("paused      by the annotation lambdadnn.io/paused"));
}

TEST(JobOutcome, ExitCodesFollowTheReason) {
  const auto code = [](const char* type, const char* reason) {
    Job job = DecodeJob(JobObject("digits")).value();
    job.status.conditions = {{type, "True", reason, "why", "", 1}};
    return ExitCodeOfFinished(job);
  };
  EXPECT_EQ(code("Complete", "Trained"), 0);
  EXPECT_EQ(code("Failed", "BackoffLimitExceeded"), 1);
  EXPECT_EQ(code("Failed", "InvalidSpec"), 2);
  EXPECT_EQ(code("Failed", "UnsupportedBackend"), 2);
  EXPECT_EQ(code("Failed", "Infeasible"), 3);
  EXPECT_EQ(code("Failed", "FunctionStartFailed"), 4);
}

TEST(FunctionLogs, OnlyWhatIsNewIsPrinted) {
  EXPECT_EQ(NewText("", "a\nb\n"), "a\nb\n");
  EXPECT_EQ(NewText("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(NewText("a\nb\n", "a\nb\nc\n"), "c\n");
  EXPECT_EQ(NewText("a\nb\nc\n", "b\nc\nd\n"), "d\n");  // "a" has left the window
  EXPECT_EQ(NewText("a\na\n", "a\na\na\n"), "a\n");
  EXPECT_EQ(NewText("a\nb\n", "x\ny\n"), "x\ny\n");  // all of it is new
}

class ThreeFunctions final : public FunctionLogSource {
 public:
  Result<std::vector<std::pair<std::string, std::string>>> Functions(const Job&) override {
    return functions;
  }
  Result<std::string> Tail(const std::string& uid, int) override {
    if (!texts.contains(uid)) return NotFoundError("nothing yet");
    return texts[uid];
  }
  std::vector<std::pair<std::string, std::string>> functions = {
      {"a", "workers"}, {"b", "servers"}, {"c", "workers"}};
  std::map<std::string, std::string> texts = {{"a", "one\n"}, {"b", "two\nhal"}};
};

Job BoundJob() {
  Job job;
  job.metadata.name = "digits";
  job.metadata.namespace_name = "team";
  job.metadata.uid = "uid-1";
  job.status.plan.emplace().functions = 1;
  job.status.plan->aggregation.layers = {1, 1};
  job.status.execution.functions = {{"worker-0", 1, "a"}, {"server-0", 1, "b"}};
  return job;
}

TEST(FunctionLogs, AreNamedByRankAndGoOnWhereTheyWere) {
  ThreeFunctions source;
  FunctionLogs logs(source, std::nullopt, 100);
  std::string printed;
  const auto print = [&](const std::string& text) { printed += text; };
  EXPECT_TRUE(logs.Read(BoundJob(), print).value());
  EXPECT_EQ(printed, "[worker-0] one\n[server-0] two\n");
  source.texts = {{"a", "one\n"}, {"b", "two\nhalf\n"}, {"c", "idle\n"}};
  printed.clear();
  EXPECT_TRUE(logs.Read(BoundJob(), print).value());
  EXPECT_EQ(printed, "[server-0] half\n[workers] idle\n");
  source.texts.clear();
  EXPECT_FALSE(logs.Read(BoundJob(), print).value());
  FunctionLogs of_one(source, 0, 100);
  source.texts["a"] = "alone\n";
  printed.clear();
  EXPECT_TRUE(of_one.Read(BoundJob(), print).value());
  EXPECT_EQ(printed, "alone\n");
}

TEST_F(OnACluster, LogsOfAPodAreThoseOfBothRunsOfItsContainer) {
  ResourceDefinition pods;
  pods.type = PodType();
  server.Define(pods);
  Job job = BoundJob();
  const Json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata",
                     {{"name", "a"},
                      {"namespace", "team"},
                      {"labels", {{kJobUidLabel, job.metadata.uid}, {kGroupLabel, "workers"}}}}},
                    {"status",
                     {{"containerStatuses",
                       Json::array({{{"name", kFunctionContainer},
                                     {"restartCount", 1},
                                     {"lastState", {{"terminated", {{"exitCode", 137}}}}}}})}}}};
  const std::string uid = UidOf(server.Create(PodType(), pod).value());
  // The slice was bound to the run that was killed.
  job.status.execution.functions = {{"worker-0", 1, uid + ".0"}};
  const auto source = LogsOfPods(kube);
  FunctionLogs logs(*source, std::nullopt, 100);
  std::string printed;
  EXPECT_TRUE(logs.Read(job, [&](const std::string& text) { printed += text; }).value());
  EXPECT_EQ(printed, "[worker-0] a before\n[workers] a now\n");
}

TEST(FunctionLogs, OfFunctionsThatAreGoneStandBesideTheResults) {
  MemoryObjectStore store;
  const Job job = BoundJob();
  const std::string folder = JobPrefix(job) + "/results/logs/";
  std::string printed;
  const auto print = [&](const std::string& text) { printed += text; };
  EXPECT_EQ(PrintKeptLogs(store, job, std::nullopt, 10, print).code(), StatusCode::kNotFound);
  ASSERT_TRUE(store.ObjectStore::Put(folder + "server-0.log", AsBytes("x\n")).ok());
  ASSERT_TRUE(store.ObjectStore::Put(folder + "worker-0.log", AsBytes("a\nb\nc\n")).ok());
  EXPECT_TRUE(PrintKeptLogs(store, job, std::nullopt, 10, print).ok());
  EXPECT_EQ(printed, "[server-0] x\n[worker-0] a\n[worker-0] b\n[worker-0] c\n");
  printed.clear();
  EXPECT_TRUE(PrintKeptLogs(store, job, 0, 2, print).ok());
  EXPECT_EQ(printed, "b\nc\n");
  EXPECT_THAT(PrintKeptLogs(store, job, 7, 2, print).message(), HasSubstr("worker 7"));
}

TEST(Completion, KnowsEveryCommandAndFlag) {
  CLI::App app{"", "lambdadnn"};
  CLI::App* status = app.add_subcommand("status", "Show the jobs' state\nand more");
  std::string name;
  bool watch = false;
  status->add_option("name", name, "Name");
  status->add_flag("-w,--watch", watch, "Show changes");
  app.add_subcommand("version", "Print it");
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = CompletionScript(app, shell, "lambdadnn");
    for (const char* part : {"status", "version", "watch", "lambdadnn status -o name"}) {
      EXPECT_THAT(script, HasSubstr(part)) << shell;
    }
    EXPECT_THAT(script, Not(HasSubstr("and more"))) << shell;
  }
}

}  // namespace
}  // namespace lambdadnn
