// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/json/dump_json.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_key.h"
#include "operator/resources/slice_requests.h"
#include "operator/resources/training_config_builder.h"
#include "tests/support/hostile_values.h"

namespace lambdadnn {
namespace {

Job PlannedJob(int functions, std::vector<int> layers, int spread, int shards) {
  Job job;
  job.metadata.name = "digits";
  job.metadata.namespace_name = "team";
  job.metadata.uid = "uid-1";
  job.spec.object_store.uri = "file:///data";
  job.status.plan.emplace();
  Plan& plan = *job.status.plan;
  plan.functions = functions;
  plan.memory_mib = 512;
  plan.server_memory_mib = 256;
  plan.global_batch_size = 64;
  plan.aggregation.layers = std::move(layers);
  plan.aggregation.spread = spread;
  plan.aggregation.shards = shards;
  return job;
}

TEST(FunctionGroups, WorkersAndServersGetTheirShareOfCpu) {
  const Job job = PlannedJob(4, {1, 2, 4}, 2, 2);
  Platform platform;
  platform.milli_cpu_per_gib = 1000;
  const auto groups = PlannedGroups(job, platform, {{"key"}, {{"A", "b"}}});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "workers");
  EXPECT_EQ(groups[0].count, 4);
  EXPECT_EQ(groups[0].milli_cpu, 500);
  // The bits of its products depend on it, whatever the backend.
  EXPECT_EQ(groups[0].environment.at("OPENBLAS_NUM_THREADS"), "1");
  EXPECT_EQ(groups[1].name, "servers");
  EXPECT_EQ(groups[1].count, 6);  // (1 + 2) x spread
  EXPECT_EQ(groups[1].milli_cpu, 250);
  EXPECT_EQ(groups[1].environment.at(kJobKeyVariable), "key");
  EXPECT_EQ(groups[1].environment.at("A"), "b");
}

// Else OpenBLAS takes every core for itself.
TEST(FunctionGroups, WithoutQuotasOneThreadMultiplies) {
  const auto groups = PlannedGroups(PlannedJob(2, {1, 2}, 1, 1), Platform(), {{"key"}, {}});
  EXPECT_EQ(groups[0].environment.at("OPENBLAS_NUM_THREADS"), "1");
}

TEST(FunctionGroups, WorkersHaveGpusAndTheNodesThatAreNamedForThemAlone) {
  Job job = PlannedJob(4, {1, 4}, 1, 1);
  job.status.plan->gpu = job.spec.functions.gpu = 1;
  PodTemplate& pods = job.spec.pod_template;
  pods.node_selector = {{"disk", "ssd"}, {"pool", "cpu"}};
  pods.tolerations = Json::array({{{"key", "spot"}}});
  pods.workers.node_selector = {{"pool", "gpu"}};
  pods.workers.tolerations = Json::array({{{"key", "nvidia.com/gpu"}}});
  const auto groups = PlannedGroups(job, Platform{}, {});
  ASSERT_EQ(groups.size(), 2u);
  for (const FunctionGroup& workers : {groups[0], ProfileGroup(job, Platform{}, 1, 512, {})}) {
    EXPECT_EQ(workers.gpu, 1);
    EXPECT_EQ(workers.environment.at("LAMBDADNN_DEVICE"), "cuda");
    EXPECT_EQ(workers.pods.node_selector.at("disk"), "ssd");
    EXPECT_EQ(workers.pods.node_selector.at("pool"), "gpu");
    EXPECT_EQ(DumpJson(workers.pods.tolerations), R"([{"key":"spot"},{"key":"nvidia.com/gpu"}])");
  }
  EXPECT_EQ(groups[1].gpu, 0);
  EXPECT_FALSE(groups[1].environment.contains("LAMBDADNN_DEVICE"));
  EXPECT_EQ(groups[1].pods.node_selector.at("pool"), "cpu");
  EXPECT_EQ(DumpJson(groups[1].pods.tolerations), R"([{"key":"spot"}])");
}

TEST(FunctionGroups, ACertificateIsForFunctionsThatAreReachedAtTheirPods) {
  Job job = PlannedJob(4, {1, 2, 4}, 2, 2);
  const FunctionSecrets secrets = {{"key", TlsIdentity{"certificate", "private"}}, {}};
  for (const FunctionGroup& group : PlannedGroups(job, Platform{}, secrets)) {
    EXPECT_TRUE(ServesTls(group)) << group.name;
    EXPECT_EQ(group.environment.at("LAMBDADNN_TLS_CERTIFICATE"), "certificate");
    EXPECT_EQ(group.environment.at("LAMBDADNN_TLS_KEY"), "private");
    EXPECT_EQ(group.environment.at("LAMBDADNN_TLS_PORT"), "8443");
  }
  EXPECT_TRUE(ServesTls(ProfileGroup(job, Platform{}, 1, 512, secrets)));
  EXPECT_FALSE(ServesTls(PlannedGroups(job, Platform{}, {{"key"}, {}})[0]));
  job.spec.addressing = Addressing::kService;
  EXPECT_FALSE(ServesTls(PlannedGroups(job, Platform{}, secrets)[0]));
}

TEST(FunctionGroups, ConnectToEachOtherAsTheSpecSays) {
  struct Row {
    PeerChannelMode mode;
    Addressing addressing;
    std::string says;  // empty = no channel
  };
  const FunctionSecrets secrets = {{"key"}, {}};
  for (const Row& row : {Row{PeerChannelMode::kTls, Addressing::kPod, "TLS"},
                         Row{PeerChannelMode::kPlain, Addressing::kPod, "Plain"},
                         Row{PeerChannelMode::kNone, Addressing::kPod, ""},
                         Row{PeerChannelMode::kTls, Addressing::kService, ""}}) {
    Job job = PlannedJob(4, {1, 2, 4}, 2, 2);
    job.spec.peer_channel = row.mode;
    job.spec.addressing = row.addressing;
    for (const FunctionGroup& group : PlannedGroups(job, Platform{}, secrets)) {
      EXPECT_EQ(HasPeerChannel(group), !row.says.empty());
      if (row.says.empty()) continue;
      EXPECT_EQ(group.environment.at("LAMBDADNN_PEER_PORT"), "8444");
      EXPECT_EQ(group.environment.at("LAMBDADNN_PEER_CHANNEL"), row.says);
    }
    EXPECT_EQ(HasPeerChannel(ProfileGroup(job, Platform{}, 1, 512, secrets)), !row.says.empty())
        << "exchanges are measured as they will be";
  }
}

TEST(SliceRequests, ARoleIsToldOfThoseThatItConnectsTo) {
  const Job job = PlannedJob(4, {1, 2, 4}, 2, 2);
  const auto address_of = [](const Role& role) { return "at " + role.Name(); };
  const auto names = [&](const Role& role) {
    std::string all;
    for (const Peer& peer : PeersOf(*job.status.plan, role, address_of)) {
      EXPECT_EQ(peer.address, "at " + peer.role.Name());
      all += peer.role.Name() + " ";
    }
    return all;
  };
  // Leaves are servers 0 to 3 (two of each group), roots 4 and 5.
  EXPECT_EQ(names({RoleKind::kWorker, 0, {}}), "server-0 server-1 server-4 server-5 ");
  EXPECT_EQ(names({RoleKind::kWorker, 3, {}}), "server-2 server-3 server-4 server-5 ");
  EXPECT_EQ(names({RoleKind::kServer, 2, {1, 1, 0}}), "server-4 ");
  EXPECT_EQ(names({RoleKind::kServer, 4, {2, 0, 0}}), "server-5 ");
  EXPECT_EQ(names({RoleKind::kServer, 5, {2, 0, 1}}), "");
  Job serving = PlannedJob(3, {1, 3}, 3, 3);
  serving.status.plan->aggregation.placement = Placement::kWorkers;
  std::vector<std::string> workers;
  for (const Peer& peer : PeersOf(*serving.status.plan, {RoleKind::kWorker, 1, {}}, address_of)) {
    workers.push_back(peer.role.Name());
  }
  EXPECT_EQ(workers, std::vector<std::string>{"worker-2"}) << "the first one connects to it";
  const auto unknown = [](const Role&) { return std::string(); };
  EXPECT_TRUE(PeersOf(*job.status.plan, {RoleKind::kWorker, 0, {}}, unknown).empty());
}

TEST(FunctionGroups, LaterRevisionsHaveGroupsOfTheirOwn) {
  EXPECT_EQ(WorkersGroupName(1), "workers");
  EXPECT_EQ(WorkersGroupName(2), "workers-r2");
  EXPECT_EQ(ServersGroupName(3), "servers-r3");
}

TEST(FunctionGroups, NoCpuLimitWithoutAShare) {
  EXPECT_EQ(MilliCpuOf(Platform{}, 1024), 0);
  Platform platform;
  platform.milli_cpu_per_gib = 1;
  EXPECT_EQ(MilliCpuOf(platform, 128), 10);  // never nothing
}

TEST(SliceRequests, EveryRoleHasAnInvocationOfItsOwn) {
  const Job job = PlannedJob(4, {1, 2, 4}, 2, 2);
  std::set<std::string> ids;
  const auto roles = PlannedRoles(*job.status.plan);
  ASSERT_EQ(roles.size(), 10u);
  for (const Role& role : roles) ids.insert(MakeTrainingSlice(job, {role, 1}, 1, 10).invocation);
  EXPECT_EQ(ids.size(), roles.size());
}

TEST(SliceRequests, TheSameStateGivesTheSameInvocation) {
  Job job = PlannedJob(2, {1, 2}, 1, 1);
  const AssignedRole role = {PlannedRoles(*job.status.plan)[0], 1};
  const std::string first = MakeTrainingSlice(job, role, 1, 10).invocation;
  EXPECT_EQ(MakeTrainingSlice(job, role, 2, 20).invocation, first);
  job.status.execution.incarnation = 1;
  EXPECT_NE(MakeTrainingSlice(job, role, 1, 10).invocation, first);
}

TEST(SliceRequests, ARoleThatIsTakenOverHasASliceOfItsOwn) {
  Job job = PlannedJob(2, {1, 2}, 1, 1);
  const std::vector<Role> roles = PlannedRoles(*job.status.plan);
  job.status.execution.functions = {{"worker-1", 3, "uid-b"}, {"server-0", 1, "uid-c"}};
  const Binding binding(job.status.execution);
  EXPECT_EQ(binding.Find(roles[0]), nullptr);
  EXPECT_EQ(binding.Find(roles[1])->uid, "uid-b");
  EXPECT_EQ(binding.Assigned(roles[0]), (AssignedRole{roles[0], 1}));
  EXPECT_EQ(binding.Assigned(roles[1]), (AssignedRole{roles[1], 3}));
  EXPECT_EQ(binding.Assigned(roles[2]), (AssignedRole{roles[2], 1}));
  const SliceRequest third = MakeTrainingSlice(job, binding.Assigned(roles[1]), 1, 10);
  EXPECT_EQ(third.roles, (std::vector<AssignedRole>{{roles[1], 3}}));
  EXPECT_NE(third.invocation, MakeTrainingSlice(job, {roles[1], 2}, 1, 10).invocation);
}

TEST(SliceRequests, AProfileRunsTheThreadsOfAPlanOfItsSize) {
  Platform platform;
  const auto threads = [&](int memory_mib) {
    return MakeProfileSlice(Job{}, platform, {{RoleKind::kProfile, 0, {}}, 1}, memory_mib, {}, 1,
                            10)
        .plan.threads;
  };
  EXPECT_EQ(threads(4096), 1) << "without quotas a plan has one";
  platform.milli_cpu_per_gib = 1000;
  EXPECT_EQ(threads(512), 1);
  EXPECT_EQ(threads(2048), 2);
}

TEST(SliceRequests, StartsAtTheCheckpointOfStatus) {
  Job job = PlannedJob(2, {1, 2}, 1, 1);
  const CheckpointReference checkpoint{"p/q", 40, 1, 3};
  job.status.execution.first_iteration = 40;
  job.status.execution.start_checkpoint = CheckpointToJson(checkpoint);
  const SliceRequest request =
      MakeTrainingSlice(job, {PlannedRoles(*job.status.plan)[0], 1}, 1, 10);
  EXPECT_EQ(request.start, checkpoint);
  EXPECT_EQ(request.first_iteration, 40);
}

TEST(SliceRequests, PrefixIsTheTenantsOwn) {
  Job job = PlannedJob(2, {1, 2}, 1, 1);
  EXPECT_EQ(JobPrefix(job), "lambdadnn/team/digits-uid1");
  job.spec.object_store.prefix = "root/";
  EXPECT_EQ(JobPrefix(job), "root/team/digits-uid1");
  job.metadata.annotations["lambdadnn.io/job-id"] = "digits-of-another";  // no id of this job
  EXPECT_EQ(JobPrefix(job), "root/team/digits-uid1");
  job.metadata.annotations["lambdadnn.io/job-id"] = "digits-restored";
  EXPECT_EQ(JobPrefix(job), "root/team/digits-restored");
}

TEST(CheckpointJson, GarbageIsNoCheckpoint) {
  EXPECT_EQ(CheckpointFromJson(Json::parse(R"({"iteration": 3})")), std::nullopt);
  EXPECT_EQ(CheckpointFromJson(Json::parse("[]")), std::nullopt);
}

TEST(TrainingConfig, LearningRateFollowsTheEffectiveBatch) {
  JobSpec spec;
  spec.training.local_batch_size = 16;
  spec.training.optimizer.learning_rate = 0.1;
  EXPECT_DOUBLE_EQ(BuildTrainingConfig(spec, 0, 64).optimizer.learning_rate, 0.1);
  spec.training.optimizer.learning_rate_scaling = LearningRateScaling::kLinear;
  EXPECT_DOUBLE_EQ(BuildTrainingConfig(spec, 0, 64).optimizer.learning_rate, 0.4);
  spec.training.optimizer.learning_rate_scaling = LearningRateScaling::kSquareRoot;
  EXPECT_DOUBLE_EQ(BuildTrainingConfig(spec, 0, 64).optimizer.learning_rate, 0.2);
}

TEST(TrainingConfig, RenderedDigitsAreDrawnByTheFunctions) {
  JobSpec spec;
  spec.dataset.format = DatasetFormat::kIdx;
  EXPECT_FALSE(BuildTrainingConfig(spec, 600, 64).dataset.rendered_digits.has_value());
  spec.dataset.rendered_digits = DatasetSpec::RenderedDigits{600, 100, 7};
  const DatasetConfig config = BuildTrainingConfig(spec, 600, 64).dataset;
  ASSERT_TRUE(config.rendered_digits.has_value());
  EXPECT_EQ(config.rendered_digits->train, 600);
  EXPECT_EQ(config.rendered_digits->test, 100);
  EXPECT_EQ(config.rendered_digits->seed, 7u);
}

TEST(TrainingConfig, ModelParametersAreListsOfNumbers) {
  JobSpec spec;
  spec.model.builtin_name = "mlp";
  spec.model.builtin_parameters = Json::parse(R"({"hidden": [128, 64], "dropout": 0.5})");
  const TrainingConfig config = BuildTrainingConfig(spec, 100, 64);
  EXPECT_THAT(config.model.parameters.at("hidden"), testing::ElementsAre(128, 64));
  EXPECT_THAT(config.model.parameters.at("dropout"), testing::ElementsAre(0.5));
  EXPECT_EQ(config.training_samples, 100);
}

TEST(TrainingLimits, CountsTheOptimizersVectors) {
  JobSpec spec;
  EXPECT_EQ(BuildTrainingLimits(spec).optimizer_state_vectors, 0);
  spec.training.optimizer.momentum = 0.9;
  EXPECT_EQ(BuildTrainingLimits(spec).optimizer_state_vectors, 1);
  spec.training.optimizer.name = OptimizerKind::kAdam;
  EXPECT_EQ(BuildTrainingLimits(spec).optimizer_state_vectors, 2);
  spec.training.optimizer.amsgrad = true;
  EXPECT_EQ(BuildTrainingLimits(spec).optimizer_state_vectors, 3);
}

TEST(JobKey, SecretGivesTheKeyBackToItsOwnJobOnly) {
  Job job = PlannedJob(1, {1, 1}, 1, 1);
  SeededRandom random(1);
  const std::string key = MakeJobKey(random);
  EXPECT_EQ(key.size(), 64u);
  const Json secret = JobKeySecret(job, {key});
  EXPECT_EQ(KeyOfSecret(job, secret), JobKey{key});
  const Json& labels = secret["metadata"]["labels"];
  EXPECT_EQ(labels["app.kubernetes.io/managed-by"], "lambdadnn-operator");
  EXPECT_EQ(labels["lambdadnn.io/job-name"], job.metadata.name);
  EXPECT_EQ(labels["lambdadnn.io/job-uid"], job.metadata.uid);
  job.metadata.uid = "another";
  EXPECT_EQ(KeyOfSecret(job, secret), std::nullopt);
  EXPECT_EQ(KeyOfSecret(job, Json::parse("{}")), std::nullopt);
  // Whatever answers in the API server's place.
  ForEachHostileField(Json::array({secret}), Json::json_pointer(""), [&](const Json& answer) {
    EXPECT_EQ(KeyOfSecret(job, answer), std::nullopt);
    if (answer.is_array() && !answer.empty()) (void)KeyOfSecret(job, answer[0]);
  });
}

TEST(JobKey, ACertificateComesWithItsKeyOrNotAtAll) {
  const Job job = PlannedJob(1, {1, 1}, 1, 1);
  const JobKey key = {"key", TlsIdentity{"certificate", "private"}};
  Json secret = JobKeySecret(job, key);
  EXPECT_EQ(KeyOfSecret(job, secret), key);
  // As an operator before certificates left it.
  Json earlier = secret;
  earlier["data"].erase("tls.crt");
  earlier["data"].erase("tls.key");
  EXPECT_EQ(KeyOfSecret(job, earlier), JobKey{"key"});
  for (const char* name : {"tls.crt", "tls.key"}) {
    for (const Json& value : {Json(), Json(""), Json(7), Json("no base64!")}) {
      Json odd = secret;
      odd["data"][name] = value;
      EXPECT_EQ(KeyOfSecret(job, odd), std::nullopt) << odd["data"];
    }
    Json half = secret;
    half["data"].erase(name);
    EXPECT_EQ(KeyOfSecret(job, half), std::nullopt) << half["data"];
  }
}

}  // namespace
}  // namespace lambdadnn
