// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/openfaas_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/resources/function_groups.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

FunctionGroup Member(const std::string& job = "digits", const std::string& group = "workers",
                     int member = 3) {
  FunctionGroup of;
  of.job_uid = "uid-1";
  of.namespace_name = "team";
  of.job_name = job;
  of.name = group;
  of.program = group.starts_with("servers") ? FunctionProgram::kServer : FunctionProgram::kWorker;
  of.count = 1;
  of.member = member;
  of.memory_mib = 384;
  of.milli_cpu = 113;
  of.environment = {{"LAMBDADNN_JOB_KEY", "secret-key"}, {"OPENBLAS_NUM_THREADS", "1"}};
  return of;
}

OpenFaasOptions Images() { return {.images = {.worker = "worker:1", .server = "server:1"}}; }

TEST(OpenFaasFunction, TellsByALabelWhereOthersConnect) {
  FunctionGroup member = Member();
  EXPECT_FALSE(OpenFaasFunction(member, "digits-worker-3", Images())
                   .value()["labels"]
                   .contains(kPeerPortLabel));
  member.environment[kPeerPortVariable] = "8444";
  member.environment[kPeerChannelVariable] = "TLS";
  const Json deployed = OpenFaasFunction(member, "digits-worker-3", Images()).value();
  EXPECT_EQ(deployed["labels"][kPeerPortLabel], "8444");
  EXPECT_EQ(deployed["envVars"][kPeerPortVariable], "8444");
  EXPECT_EQ(deployed["envVars"][kPeerChannelVariable], "TLS");
}

TEST(OpenFaasFunctionName, IsTheJobsAndTheRanks) {
  EXPECT_EQ(OpenFaasFunctionName(Member()).value(), "digits-worker-3");
  EXPECT_EQ(OpenFaasFunctionName(Member("digits", "servers", 0)).value(), "digits-server-0");
  EXPECT_EQ(OpenFaasFunctionName(Member("digits", "workers-r2", 1)).value(), "digits-worker-r2-1");
  EXPECT_EQ(OpenFaasFunctionName(Member("digits", "profile", 0)).value(), "digits-profile-0");
  EXPECT_EQ(OpenFaasFunctionName(Member("7up")).value(), "j7up-worker-3");
}

TEST(OpenFaasFunctionName, OfALongJobIsCutAndToldApartByAHash) {
  constexpr size_t kLongest = 45;
  const std::string fits(kLongest - std::string("-worker-3").size(), 'a');
  EXPECT_EQ(OpenFaasFunctionName(Member(fits)).value(), fits + "-worker-3");
  const std::string cut = OpenFaasFunctionName(Member(fits + "b")).value();
  EXPECT_EQ(cut.size(), kLongest);
  EXPECT_TRUE(cut.starts_with("aaaa"));
  EXPECT_TRUE(cut.ends_with("-worker-3"));
  FunctionGroup other = Member(fits + "b");
  other.job_uid = "uid-2";
  EXPECT_NE(OpenFaasFunctionName(other).value(), cut);
}

TEST(OpenFaasFunctionName, AUniqueOneHasTheHashInAnyCase) {
  const std::string unique = UniqueOpenFaasFunctionName(Member()).value();
  EXPECT_THAT(unique, ::testing::MatchesRegex("digits-[0-9a-f]{8}-worker-3"));
  FunctionGroup other = Member();
  other.job_uid = "uid-2";
  EXPECT_NE(UniqueOpenFaasFunctionName(other).value(), unique);
}

TEST(OpenFaasFunctionName, IsRefusedWhereAGroupLeavesNoRoom) {
  EXPECT_EQ(
      OpenFaasFunctionName(Member("digits", "workers-r" + std::string(40, '1'))).status().code(),
      StatusCode::kInvalidArgument);
}

TEST(OpenFaasFunction, HasWhatThePlanAndTheJobSay) {
  FunctionGroup member = Member();
  member.pods.labels = {{"team", "vision"},
                        {kJobUidLabel, "forged"},
                        {"faas_function", "forged"},
                        {"com.openfaas.scale.max", "20"}};
  member.pods.annotations = {{"com.openfaas.profile", "spot"}};
  member.pods.node_selector = {{"disk", "ssd"}};
  member.pods.image_pull_secrets = {"registry"};
  ContainerTemplate container;
  container.name = "worker";
  container.env = Json::array(
      {{{"name", "EXTRA"}, {"value", "1"}}, {{"name", "exec_timeout"}, {"value", "5m"}}});
  member.pods.containers = {container};
  const Json function = OpenFaasFunction(member, "digits-worker-3", Images()).value();
  EXPECT_EQ(function["service"], "digits-worker-3");
  EXPECT_EQ(function["image"], "worker:1");
  EXPECT_EQ(function["namespace"], "openfaas-fn");
  EXPECT_EQ(function["limits"], (Json{{"memory", "384Mi"}, {"cpu", "113m"}}));
  EXPECT_EQ(function["requests"], function["limits"]);
  EXPECT_EQ(function["constraints"], Json::array({"disk=ssd"}));
  EXPECT_EQ(function["annotations"], (Json{{"com.openfaas.profile", "spot"}}));
  EXPECT_EQ(function["readOnlyRootFilesystem"], true);
  const Json& labels = function["labels"];
  EXPECT_EQ(labels["team"], "vision");
  EXPECT_EQ(labels[kJobUidLabel], "uid-1");
  EXPECT_EQ(labels[kJobNameLabel], "digits");
  EXPECT_EQ(labels[kJobNamespaceLabel], "team");
  EXPECT_EQ(labels[kGroupLabel], "workers");
  EXPECT_EQ(labels[kMemberLabel], "3");
  EXPECT_EQ(labels["com.openfaas.scale.min"], "1");
  EXPECT_EQ(labels["com.openfaas.scale.max"], "1");
  EXPECT_FALSE(labels.contains("faas_function"));
  EXPECT_EQ(function["envVars"]["EXTRA"], "1");
  EXPECT_EQ(function["envVars"]["exec_timeout"], "5m");
  EXPECT_EQ(function["envVars"]["OPENBLAS_NUM_THREADS"], "1");
}

TEST(OpenFaasFunction, KeysComeByFiles) {
  FunctionGroup member = Member();
  member.environment["LAMBDADNN_S3_SECRET_ACCESS_KEY"] = "word";
  const Json function = OpenFaasFunction(member, "digits-worker-3", Images()).value();
  EXPECT_THAT(function.dump(), ::testing::Not(HasSubstr("secret-key")));
  EXPECT_THAT(function.dump(), ::testing::Not(HasSubstr("\"word\"")));
  const std::vector<OpenFaasSecret> secrets = OpenFaasSecrets(member);
  ASSERT_EQ(secrets.size(), 2u);
  EXPECT_EQ(secrets[0].value, "secret-key");
  EXPECT_EQ(function["envVars"]["LAMBDADNN_JOB_KEY_FILE"],
            "/var/openfaas/secrets/" + secrets[0].name);
  EXPECT_EQ(function["secrets"], Json::array({secrets[0].name, secrets[1].name}));
  for (const OpenFaasSecret& secret : secrets) {
    EXPECT_TRUE(secret.name.starts_with(OpenFaasSecretPrefix("uid-1")));
    EXPECT_THAT(OpenFaasSecretNames("uid-1", "workers"), ::testing::Contains(secret.name));
    EXPECT_THAT(OpenFaasSecretNames("uid-1", "servers"),
                ::testing::Not(::testing::Contains(secret.name)));
  }
  EXPECT_NE(OpenFaasSecretPrefix("uid-1"), OpenFaasSecretPrefix("uid-2"));
}

TEST(OpenFaasFunction, WhatAFunctionCannotHaveIsNamed) {
  struct Row {
    const char* field;
    std::function<void(PodTemplate&)> set;
  };
  ContainerTemplate mounts;
  mounts.volume_mounts = Json::array({{{"name", "data"}}});
  ContainerTemplate resources;
  resources.resources = {{"limits", {{"nvidia.com/gpu", "1"}}}};
  ContainerTemplate reference;
  reference.env = Json::array({{{"name", "X"}, {"valueFrom", Json::object()}}});
  const Json one = Json::array({Json::object()});
  for (const Row& row : std::vector<Row>{
           {"tolerations", [&](PodTemplate& pods) { pods.tolerations = one; }},
           {"affinity",
            [&](PodTemplate& pods) { pods.affinity = {{"nodeAffinity", Json::object()}}; }},
           {"runtimeClassName", [](PodTemplate& pods) { pods.runtime_class_name = "gvisor"; }},
           {"priorityClassName", [](PodTemplate& pods) { pods.priority_class_name = "high"; }},
           {"topologySpreadConstraints",
            [&](PodTemplate& pods) { pods.topology_spread_constraints = one; }},
           {"serviceAccountName", [](PodTemplate& pods) { pods.service_account_name = "me"; }},
           {"schedulerName", [](PodTemplate& pods) { pods.scheduler_name = "volcano"; }},
           {"containers[].volumeMounts", [&](PodTemplate& pods) { pods.containers = {mounts}; }},
           {"containers[].resources", [&](PodTemplate& pods) { pods.containers = {resources}; }},
           {"containers[].env[].valueFrom",
            [&](PodTemplate& pods) { pods.containers = {reference}; }},
       }) {
    FunctionGroup member = Member();
    row.set(member.pods);
    for (ContainerTemplate& each : member.pods.containers) each.name = "worker";
    const Status refused = OpenFaasFunction(member, "x", Images()).status();
    EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << row.field;
    EXPECT_THAT(refused.message(),
                HasSubstr(std::string("spec.podTemplate.spec.") + row.field + ":"));
  }
  EXPECT_TRUE(CheckOpenFaasPods(Member()).ok());
}

TEST(OpenFaasFunction, WithoutAnImageTheNextStepIsNamed) {
  const Status refused =
      OpenFaasFunction(Member("digits", "servers"), "x", {.images = {.worker = "w"}}).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("--server-image"));
}

TEST(OpenFaasFunction, ATimeoutOfItsWatchdogThatARequestDoesNotFitInIsRefused) {
  struct Row {
    const char* name;
    const char* value;
    const char* refused;  // "" = it is not
  };
  for (const Row& row :
       {Row{"exec_timeout", "1s", "exec_timeout is 1 s, and a request to a function takes up to"},
        Row{"read_timeout", "500ms", "read_timeout is 0.5 s"},
        Row{"write_timeout", "long", "write_timeout is 'long'; write a duration, such as 20s"},
        Row{"exec_timeout", "2s", ""}, Row{"exec_timeout", "0s", ""}, Row{"other", "1s", ""}}) {
    FunctionGroup member = Member();
    ContainerTemplate container;
    container.name = "worker";
    container.env = Json::array({{{"name", row.name}, {"value", row.value}}});
    member.pods.containers = {container};
    const Status checked = CheckOpenFaasPods(member);
    EXPECT_EQ(checked.ok(), *row.refused == '\0') << row.name << row.value;
    EXPECT_THAT(checked.message(), HasSubstr(row.refused));
  }
}

}  // namespace
}  // namespace lambdadnn
