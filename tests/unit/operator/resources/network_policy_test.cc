// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/network_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/files.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_account.h"
#include "operator/resources/knative_service.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

FunctionGroup PolicyGroup(const std::string& endpoint = "http://minio:9000") {
  FunctionGroup group;
  group.job_uid = "uid-1";
  group.namespace_name = "team";
  group.job_name = "digits";
  group.name = "workers";
  group.program = FunctionProgram::kWorker;
  group.count = 4;
  group.memory_mib = 512;
  group.timeout_seconds = 300;
  if (!endpoint.empty()) group.environment["LAMBDADNN_S3_ENDPOINT"] = endpoint;
  return group;
}

Json PeerAt(const std::string& cidr) { return {{"ipBlock", {{"cidr", cidr}}}}; }

JobNetworkOptions Options() {
  JobNetworkOptions options;
  options.operators = Json::array({PeerAt("192.0.2.1/32")});
  return options;
}

// The rules of this direction that are for `peer`.
std::vector<Json> RulesFor(const Json& policy, const char* direction, const Json& peer) {
  const char* peers = std::string_view(direction) == "ingress" ? "from" : "to";
  std::vector<Json> found;
  for (const Json& rule : policy["spec"][direction]) {
    if (!rule.contains(peers)) continue;
    for (const Json& each : rule[peers]) {
      if (each == peer) found.push_back(rule);
    }
  }
  return found;
}

std::vector<int> PortsOf(const Json& rule) {
  std::vector<int> ports;
  for (const Json& port : rule.at("ports")) {
    EXPECT_EQ(port["protocol"], "TCP");
    ports.push_back(port["port"]);
  }
  return ports;
}

TEST(JobNetworkPolicy, SelectsThePodsThatKnativeMakesOfTheJob) {
  const FunctionGroup group = PolicyGroup();
  const Json policy = JobNetworkPolicy(group, Options());
  const Json selected = policy["spec"]["podSelector"]["matchLabels"];
  ASSERT_THAT(selected, SizeIs(1));
  const Json labels = KnativeService(group, {.images = {.worker = "w"}})
                          .value()["spec"]["template"]["metadata"]["labels"];
  for (const auto& [name, value] : selected.items()) EXPECT_EQ(labels[name], value);
  EXPECT_EQ(policy["metadata"]["namespace"], "team");
  EXPECT_EQ(policy["metadata"]["ownerReferences"][0]["uid"], "uid-1");
}

TEST(JobNetworkPolicy, DeniesBothDirectionsButForWhatItLists) {
  const Json spec = JobNetworkPolicy(PolicyGroup(), Options())["spec"];
  EXPECT_EQ(spec["policyTypes"], Json::array({"Ingress", "Egress"}));
  // A rule without peers admits all: there is no such ingress rule, and egress ones name a port.
  for (const Json& rule : spec["ingress"]) {
    ASSERT_TRUE(rule.contains("from")) << rule;
    EXPECT_FALSE(rule["from"].empty()) << rule;
  }
  for (const Json& rule : spec["egress"]) {
    EXPECT_TRUE(rule.contains("to") || rule.contains("ports")) << rule;
  }
}

TEST(JobNetworkPolicy, AdmitsEachCallerAtItsPorts) {
  JobNetworkOptions options = Options();
  options.gateways = Json::array({PeerAt("192.0.2.3/32")});
  const Json policy = JobNetworkPolicy(PolicyGroup(), options);
  const auto operators = RulesFor(policy, "ingress", PeerAt("192.0.2.1/32"));
  ASSERT_THAT(operators, SizeIs(1));
  EXPECT_EQ(PortsOf(operators[0]), std::vector<int>({8012}));
  const auto knative = RulesFor(policy, "ingress", JobNetworkOptions::DefaultKnative()[0]);
  ASSERT_THAT(knative, SizeIs(1));
  EXPECT_EQ(PortsOf(knative[0]), std::vector<int>({8012, 8112, 8022, 9090}));
  const auto gateways = RulesFor(policy, "ingress", PeerAt("192.0.2.3/32"));
  ASSERT_THAT(gateways, SizeIs(1));
  EXPECT_EQ(PortsOf(gateways[0]), std::vector<int>({8012, 8112}));
}

TEST(JobNetworkPolicy, AdmitsTheOperatorAloneToThePortOfTls) {
  FunctionGroup group = PolicyGroup();
  group.environment[kTlsCertificateVariable] = "certificate";
  JobNetworkOptions options = Options();
  options.gateways = Json::array({PeerAt("192.0.2.3/32")});
  const Json policy = JobNetworkPolicy(group, options);
  const auto operators = RulesFor(policy, "ingress", PeerAt("192.0.2.1/32"));
  ASSERT_THAT(operators, SizeIs(1));
  EXPECT_EQ(PortsOf(operators[0]), std::vector<int>({8012, 8443}));
  for (const Json& other : {JobNetworkOptions::DefaultKnative()[0], PeerAt("192.0.2.3/32")}) {
    for (const Json& rule : RulesFor(policy, "ingress", other)) {
      EXPECT_THAT(PortsOf(rule), testing::Not(testing::Contains(8443)));
    }
  }
}

TEST(JobNetworkPolicy, NobodyIsNamedMeansNobodyNotEverybody) {
  JobNetworkOptions options = Options();
  options.knative = Json::array();
  // The job's own pods and the operator.
  EXPECT_THAT(JobNetworkPolicy(PolicyGroup(), options)["spec"]["ingress"], SizeIs(2));
}

TEST(JobNetworkPolicy, PodsOfTheJobReachEachOtherAtThePortOfTheirChannelAlone) {
  const Json peer = {{"podSelector", {{"matchLabels", {{kJobUidLabel, "uid-1"}}}}}};
  const Json policy = JobNetworkPolicy(PolicyGroup(), Options());
  for (const char* direction : {"ingress", "egress"}) {
    const auto rules = RulesFor(policy, direction, peer);
    ASSERT_THAT(rules, SizeIs(1)) << direction;
    EXPECT_EQ(PortsOf(rules[0]), std::vector<int>{8444});
  }
}

TEST(JobNetworkPolicy, NamesAreAskedAnywhereUnlessServersAreNamed) {
  const auto at_53 = [](const Json& policy) {
    for (const Json& rule : policy["spec"]["egress"]) {
      if (rule.contains("ports") && rule["ports"][0]["port"] == 53) return rule;
    }
    return Json();
  };
  JobNetworkOptions options = Options();
  Json rule = at_53(JobNetworkPolicy(PolicyGroup(), options));
  EXPECT_FALSE(rule.contains("to"));
  EXPECT_EQ(rule["ports"][0]["protocol"], "UDP");
  EXPECT_EQ(rule["ports"][1], Json({{"port", 53}, {"protocol", "TCP"}}));
  options.names = Json::array({PeerAt("10.96.0.10/32")});
  rule = at_53(JobNetworkPolicy(PolicyGroup(), options));
  EXPECT_EQ(rule["to"], options.names);
}

TEST(JobNetworkPolicy, TheStoreIsReachedByItsPortOrByWhatIsNamed) {
  JobNetworkOptions options = Options();
  EXPECT_EQ(JobNetworkPolicy(PolicyGroup(), options)["spec"]["egress"].back(),
            Json({{"ports", Json::array({{{"port", 9000}, {"protocol", "TCP"}}})}}));
  options.store = Json::array({{{"to", Json::array({PeerAt("192.0.2.9/32")})}}});
  const Json policy = JobNetworkPolicy(PolicyGroup(), options);
  EXPECT_EQ(policy["spec"]["egress"].back(), options.store[0]);
  EXPECT_THAT(policy["spec"]["egress"], SizeIs(3));
}

TEST(JobNetworkPolicy, MoreRulesComeLast) {
  JobNetworkOptions options = Options();
  options.extra_ingress = Json::array({{{"from", Json::array({PeerAt("192.0.2.4/32")})}}});
  options.extra_egress = Json::array({{{"to", Json::array({PeerAt("192.0.2.5/32")})}}});
  const Json spec = JobNetworkPolicy(PolicyGroup(), options)["spec"];
  EXPECT_EQ(spec["ingress"].back(), options.extra_ingress[0]);
  EXPECT_EQ(spec["egress"].back(), options.extra_egress[0]);
}

TEST(StorePort, IsThatOfTheEndpoint) {
  for (const auto& [endpoint, port] :
       std::vector<std::pair<std::string, int>>{{"", 443},
                                                {"http://minio:9000", 9000},
                                                {"https://s3.example", 443},
                                                {"http://s3.example", 80},
                                                {"http://s3.example/path:7", 80},
                                                {"https://s3.example:8443/path", 8443},
                                                {"http://[fd00::1]:9000", 9000},
                                                {"http://[fd00::1]", 80},
                                                {"s3.example:9001", 9001},
                                                {"s3.example", 443},
                                                {"https://s3.example:0", 443},
                                                {"https://s3.example:70000", 443},
                                                {"https://s3.example:nine", 443}}) {
    EXPECT_EQ(StorePort(PolicyGroup(endpoint)), port) << endpoint;
  }
}

TEST(JobNetworkOptions, AreReadAsTheApiServerWouldStoreThem) {
  const auto options = JobNetworkOptionsFromJson(
      Json::parse(R"({"operators": [{"ipBlock": {"cidr": "192.0.2.1/32"}}],
                      "store": [{"to": [], "ports": [{"port": 9000}]}]})"));
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  EXPECT_EQ(options->store,
            Json::array({{{"ports", Json::array({{{"port", 9000}, {"protocol", "TCP"}}})}}}));
  EXPECT_EQ(options->knative, JobNetworkOptions::DefaultKnative());
}

TEST(JobNetworkOptions, WhatMakesNoSenseIsNamed) {
  const auto message = [](const std::string& text) {
    const Json operators = Json::parse(R"([{"ipBlock": {"cidr": "192.0.2.1/32"}}])");
    Json json = Json::parse(text);
    if (json.is_object() && !json.contains("operators")) json["operators"] = operators;
    return JobNetworkOptionsFromJson(json).status().message();
  };
  EXPECT_EQ(message("{}"), "");
  EXPECT_THAT(message(R"({"operators": []})"), HasSubstr("operators"));
  EXPECT_THAT(message(R"({"knative": {}})"), HasSubstr("knative"));
  EXPECT_THAT(message(R"({"knative": [{}]})"), HasSubstr("knative[0]"));
  EXPECT_THAT(message(R"({"names": ["all"]})"), HasSubstr("names[0]"));
  EXPECT_THAT(message(R"({"gateways": [{"podSelectr": {}}]})"),
              HasSubstr("gateways[0].podSelectr"));
  EXPECT_THAT(message(R"({"gateways": [{"ipBlock": "192.0.2.0/24"}]})"),
              HasSubstr("gateways[0].ipBlock"));
  EXPECT_THAT(message(R"({"store": [{"from": []}]})"), HasSubstr("store[0].from"));
  EXPECT_THAT(message(R"({"store": [{"ports": 9000}]})"), HasSubstr("store[0].ports"));
  EXPECT_THAT(message(R"({"store": [7]})"), HasSubstr("store[0]"));
  EXPECT_THAT(message(R"({"extraEgress": [{"to": [{}]}]})"), HasSubstr("extraEgress[0].to[0]"));
  EXPECT_THAT(message(R"({"shop": []})"), HasSubstr("shop"));
  EXPECT_NE(message("[]"), "");
}

TEST(JobNetworkOptions, OfAFileSayWhichFile) {
  const std::string file = MakeTempDir() + "/policies.yaml";
  EXPECT_THAT(ReadJobNetworkOptions(file).status().message(), HasSubstr(file));
  const auto read = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(file, text).ok());
    return ReadJobNetworkOptions(file).status();
  };
  EXPECT_TRUE(read("operators: [{podSelector: {}}]\n").ok());
  EXPECT_THAT(read("operators: [").message(), HasSubstr(file + ":"));
  EXPECT_THAT(read("").message(), HasSubstr("write exactly one"));
  EXPECT_THAT(read("operators: []\n").message(), AllOf(HasSubstr(file), HasSubstr("operators")));
}

TEST(JobAccount, HasNoTokenAndPullsAsTheDefaultAccountDoes) {
  const Json account = JobAccount(PolicyGroup(), {"registry", "mirror", "registry"});
  EXPECT_EQ(account["automountServiceAccountToken"], false);
  EXPECT_EQ(account["imagePullSecrets"],
            Json::array({{{"name", "registry"}}, {{"name", "mirror"}}}));
  EXPECT_EQ(account["metadata"]["name"], JobChildName("digits"));
  EXPECT_TRUE(IsOfJob(account, "uid-1"));
  EXPECT_FALSE(IsOfJob(account, "uid-2"));
  EXPECT_FALSE(JobAccount(PolicyGroup(), {}).contains("imagePullSecrets"));
}

TEST(JobAccount, PodsNameSecretsOnlyWhereTheirAccountLacksSome) {
  using Names = std::vector<std::string>;
  const Json account = JobAccount(PolicyGroup(), {"registry", "mirror"});
  EXPECT_EQ(PullSecretsBeside(account, {}), Names());
  EXPECT_EQ(PullSecretsBeside(account, {"mirror"}), Names());
  EXPECT_EQ(PullSecretsBeside(account, {"mirror", "other"}),
            (Names{"registry", "mirror", "mirror", "other"}));
  EXPECT_EQ(PullSecretsBeside(Json(), {"other"}), (Names{"other"}));
  for (const char* odd : {"5", "[]", "{\"imagePullSecrets\":{\"a\":1}}",
                          "{\"imagePullSecrets\":[1,{},{\"name\":5},[]]}"}) {
    EXPECT_EQ(PullSecretsIn(Json::parse(odd)), Names()) << odd;
  }
}

TEST(JobAccount, IsThatOfThePodsUnlessTheJobNamesItsOwn) {
  FunctionGroup group = PolicyGroup();
  const KnativeOptions options{.images = {.worker = "w"}};
  const auto account_of = [&](const std::string& made) {
    return KnativeService(group, options, made)
        .value()["spec"]["template"]["spec"]
        .value("serviceAccountName", "");
  };
  EXPECT_EQ(account_of("digits-lambdadnn"), "digits-lambdadnn");
  EXPECT_EQ(account_of(""), "");
  group.pods.service_account_name = "mine";
  EXPECT_EQ(account_of("digits-lambdadnn"), "mine");
  const Json spec = KnativeService(group, options).value()["spec"]["template"]["spec"];
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
}

}  // namespace
}  // namespace lambdadnn
