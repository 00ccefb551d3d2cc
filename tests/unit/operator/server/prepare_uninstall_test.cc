// SPDX-License-Identifier: Apache-2.0
#include "operator/server/prepare_uninstall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "operator/api/job.h"
#include "operator/api/job_schema.h"
#include "operator/backends/knative/knative_types.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"
#include "tests/support/faulty_kube_client.h"
#include "tests/support/manual_runtime.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ResourceType kDeployments{"apps", "v1", "deployments", "Deployment"};

// A cluster, and an operator that does to it what the test says while the preparation waits.
class PrepareUninstallTest : public testing::Test {
 protected:
  PrepareUninstallTest() {
    server_.Define(ReadResourceDefinition(JobCrd()).value());
    for (const ResourceType& type : {KnativeServiceType(), SecretType(), PodType(), kDeployments}) {
      ResourceDefinition definition;
      definition.type = type;
      definition.has_status = true;
      server_.Define(std::move(definition));
    }
    options_.knative = true;
  }

  ObjectName CreateJob(const std::string& name, const std::string& space = "default",
                       const Json& spec_changes = Json::object()) {
    Json job = {{"apiVersion", kApiVersion},
                {"kind", "ServerlessTrainingJob"},
                {"metadata",
                 {{"name", name},
                  {"namespace", space},
                  {"finalizers", {kCleanupFinalizer, "example.org/other"}}}},
                {"spec",
                 {{"model", {{"builtin", {{"name", "mlp"}}}}},
                  {"dataset", {{"renderedDigits", Json::object()}}},
                  {"training", {{"epochs", 1}, {"globalBatchSize", 60}}},
                  {"objective", {{"deadlineSeconds", 60}}}}}};
    job["spec"].merge_patch(spec_changes);
    const Result<Json> made = server_.Create(ServerlessTrainingJobType(), job);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return {space, name};
  }
  void SetCondition(const ObjectName& job, const std::string& type, const std::string& phase) {
    const Json status = {{"phase", phase},
                         {"conditions",
                          {{{"type", type},
                            {"status", "True"},
                            {"reason", "Because"},
                            {"message", ""},
                            {"lastTransitionTime", "2026-01-01T00:00:00Z"}}}}};
    const auto set =
        server_.Patch(ServerlessTrainingJobType(), job, {{"status", status}}, Subresource::kStatus);
    EXPECT_TRUE(set.ok()) << set.status().ToString();
  }
  void CreateGroup(const std::string& name, const std::string& space = "default",
                   bool ours = true) {
    Json meta = {{"name", name}, {"namespace", space}};
    if (ours) meta["labels"] = {{kJobUidLabel, "u"}};
    for (const ResourceType& type : {KnativeServiceType(), SecretType()}) {
      const std::string version = type.group.empty() ? "v1" : type.group + "/" + type.version;
      const auto made =
          server_.Create(type, {{"apiVersion", version}, {"kind", type.kind}, {"metadata", meta}});
      EXPECT_TRUE(made.ok()) << made.status().ToString();
    }
  }
  void CreateOperator(int ready) {
    options_.deployment = {"system", "operator"};
    const Json made = {{"apiVersion", "apps/v1"},
                       {"kind", "Deployment"},
                       {"metadata", {{"name", "operator"}, {"namespace", "system"}}},
                       {"spec", {{"replicas", 1}, {"selector", {{"matchLabels", {{"app", "o"}}}}}}},
                       {"status", {{"readyReplicas", ready}}}};
    EXPECT_TRUE(server_.Create(kDeployments, made).ok());
    EXPECT_TRUE(server_
                    .Patch(kDeployments, options_.deployment, {{"status", made["status"]}},
                           Subresource::kStatus)
                    .ok());
    const Json pod = {
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata",
         {{"name", "operator-0"}, {"namespace", "system"}, {"labels", {{"app", "o"}}}}}};
    EXPECT_TRUE(server_.Create(PodType(), pod).ok());
  }

  Result<PrepareUninstallResult> Prepare() {
    return PrepareUninstall(client_, manual_.runtime, options_);
  }
  Json Job(const ObjectName& name) {
    return server_.Get(ServerlessTrainingJobType(), name).value();
  }
  std::vector<std::string> Finalizers(const ObjectName& name) {
    return Job(name)["metadata"].value("finalizers", std::vector<std::string>());
  }
  bool Suspended(const ObjectName& name) { return Job(name)["spec"].value("suspend", false); }
  std::vector<std::string> Names(const ResourceType& type) {
    std::vector<std::string> names;
    const Result<KubeList> list = server_.List(type, "", "", 100, "");
    for (const Json& each : list->items) {
      names.push_back(NameOf(each).name);
    }
    return names;
  }

  ManualRuntime manual_;
  InMemoryApiServer server_{manual_.runtime};
  // Called before each request with what it is.
  std::function<Status(const std::string& call, const std::string& name)> before_ =
      [](const std::string&, const std::string&) { return OkStatus(); };
  FaultyKubeClient client_{
      server_,
      [this](const std::string& call, const std::string& name, FaultyKubeClient::Point point) {
        return point == FaultyKubeClient::Point::kBefore ? before_(call, name) : OkStatus();
      }};
  PrepareUninstallOptions options_;
};

TEST_F(PrepareUninstallTest, AClusterWithoutJobsIsReady) {
  const auto done = Prepare();
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->suspended + done->groups + done->released + done->unsettled, 0);
}

TEST_F(PrepareUninstallTest, AClusterWithoutTheKindsIsReady) {
  InMemoryApiServer empty(manual_.runtime);
  EXPECT_TRUE(PrepareUninstall(empty, manual_.runtime, options_).ok());
}

TEST_F(PrepareUninstallTest, ARunningJobIsSuspendedWaitedForAndReleased) {
  const ObjectName job = CreateJob("digits");
  int lists = 0;
  before_ = [&](const std::string& call, const std::string&) {
    if (call == "list" && ++lists == 3) SetCondition(job, "Suspended", "Suspended");
    return OkStatus();
  };
  const auto done = Prepare();
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_TRUE(Suspended(job));
  EXPECT_THAT(Finalizers(job), ElementsAre("example.org/other"));
  EXPECT_EQ(done->suspended, 1);
  EXPECT_EQ(done->unsettled, 0);
  EXPECT_EQ(done->released, 1);
}

TEST_F(PrepareUninstallTest, AJobThatIsCreatedMeanwhileIsMetToo) {
  const ObjectName first = CreateJob("first");
  ObjectName second;
  int lists = 0;
  before_ = [&](const std::string& call, const std::string&) {
    if (call != "list") return OkStatus();
    ++lists;
    if (lists == 2) {
      SetCondition(first, "Suspended", "Suspended");
      second = CreateJob("second");
    }
    if (lists == 4) SetCondition(second, "Suspended", "Suspended");
    return OkStatus();
  };
  ASSERT_TRUE(Prepare().ok());
  EXPECT_TRUE(Suspended(second));
  EXPECT_THAT(Finalizers(second), ElementsAre("example.org/other"));
}

TEST_F(PrepareUninstallTest, WhatDoesNotQuiesceLosesItsFunctionsAndIsReleased) {
  const ObjectName job = CreateJob("digits");
  CreateGroup("digits-workers");
  CreateGroup("mine", "default", false);
  const Instant begin = manual_.clock.Now();
  const auto done = Prepare();
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->unsettled, 1);
  EXPECT_THAT(done->Brief(), HasSubstr("1 jobs did not quiesce"));
  EXPECT_GE(ToSeconds(manual_.clock.Now() - begin), options_.wait_seconds);
  EXPECT_LT(ToSeconds(manual_.clock.Now() - begin), options_.wait_seconds + 5);
  EXPECT_THAT(Names(KnativeServiceType()), ElementsAre("mine"));
  EXPECT_THAT(Names(SecretType()), ElementsAre("mine"));
  EXPECT_THAT(Finalizers(job), ElementsAre("example.org/other"));
}

TEST_F(PrepareUninstallTest, FinishedJobsAreNotSuspendedAndThoseOfOthersNotTouched) {
  const ObjectName finished = CreateJob("finished");
  SetCondition(finished, "Complete", "Complete");
  const ObjectName others = CreateJob("others", "default", {{"managedBy", "example.org/other"}});
  const auto done = Prepare();
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->suspended, 0);
  EXPECT_FALSE(Suspended(finished));
  EXPECT_FALSE(Suspended(others));
  EXPECT_THAT(Finalizers(finished), ElementsAre("example.org/other"));
}

TEST_F(PrepareUninstallTest, OtherNamespacesAreLeftAlone) {
  options_.namespaces = {"team"};
  const ObjectName ours = CreateJob("a", "team");
  const ObjectName others = CreateJob("b", "default");
  CreateGroup("b-workers", "default");
  CreateGroup("a-workers", "team");
  ASSERT_TRUE(Prepare().ok());
  EXPECT_TRUE(Suspended(ours));
  EXPECT_FALSE(Suspended(others));
  EXPECT_EQ(Finalizers(others).size(), 2U);
  EXPECT_THAT(Names(KnativeServiceType()), ElementsAre("b-workers"));
}

TEST_F(PrepareUninstallTest, TheOperatorIsEndedBeforeTheFinalizersGo) {
  CreateOperator(1);
  const ObjectName job = CreateJob("digits");
  SetCondition(job, "Complete", "Complete");
  int lists_of_pods_left = 2;
  before_ = [&](const std::string& call, const std::string& name) {
    const Json operator_now = server_.Get(kDeployments, options_.deployment).value();
    const bool scaled = operator_now["spec"]["replicas"] == 0;
    if (call == "patch" && name == job.name) {
      EXPECT_TRUE(scaled);
      EXPECT_THAT(Names(PodType()), IsEmpty());
    }
    if (call == "list" && scaled && --lists_of_pods_left == 0) {
      EXPECT_TRUE(server_.Delete(PodType(), {"system", "operator-0"}, "").ok());
    }
    return OkStatus();
  };
  ASSERT_TRUE(Prepare().ok());
  EXPECT_THAT(Finalizers(job), ElementsAre("example.org/other"));
}

TEST_F(PrepareUninstallTest, FinalizersStayWhileAnOperatorMayRun) {
  CreateOperator(1);
  const ObjectName job = CreateJob("digits");
  const auto done = Prepare();
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.status().message(), HasSubstr("operator-0 does not end"));
  EXPECT_TRUE(Suspended(job));
  EXPECT_EQ(Finalizers(job).size(), 2U);
}

TEST_F(PrepareUninstallTest, NothingIsWaitedForWhereNoReplicaIsReady) {
  CreateOperator(0);
  CreateJob("digits");
  ASSERT_TRUE(server_.Delete(PodType(), {"system", "operator-0"}, "").ok());
  const Instant begin = manual_.clock.Now();
  ASSERT_TRUE(Prepare().ok());
  EXPECT_LT(ToSeconds(manual_.clock.Now() - begin), 2);
}

TEST_F(PrepareUninstallTest, AJobThatIsBeingDeletedGoesOnceItIsReleased) {
  const ObjectName job = CreateJob("digits");
  ASSERT_TRUE(server_
                  .Patch(ServerlessTrainingJobType(), job,
                         {{"metadata", {{"finalizers", {kCleanupFinalizer}}}}}, Subresource::kNone)
                  .ok());
  ASSERT_TRUE(server_.Delete(ServerlessTrainingJobType(), job, "").ok());
  ASSERT_TRUE(Prepare().ok());
  EXPECT_EQ(server_.Get(ServerlessTrainingJobType(), job).status().code(), StatusCode::kNotFound);
}

TEST_F(PrepareUninstallTest, AFinalizerIsTakenOffAgainstOtherWriters) {
  const ObjectName job = CreateJob("digits");
  SetCondition(job, "Complete", "Complete");
  int conflicts = 3;
  before_ = [&](const std::string& call, const std::string& name) {
    if (call == "patch" && name == job.name && conflicts-- > 0) return AbortedError("conflict");
    return OkStatus();
  };
  const auto done = Prepare();
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->released, 1);
  EXPECT_THAT(Finalizers(job), ElementsAre("example.org/other"));
}

TEST_F(PrepareUninstallTest, AnErrorSaysWhatCouldNotBeDone) {
  CreateJob("digits");
  before_ = [&](const std::string& call, const std::string&) {
    return call == "patch" ? PermissionDeniedError("may not") : OkStatus();
  };
  EXPECT_THAT(Prepare().status().message(), HasSubstr("cannot suspend job digits"));
  before_ = [&](const std::string& call, const std::string&) {
    return call == "list" ? UnavailableError("down") : OkStatus();
  };
  EXPECT_THAT(Prepare().status().message(), HasSubstr("cannot list serverlesstrainingjobs"));
}

}  // namespace
}  // namespace lambdadnn
