// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/pod_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "common/json/yaml.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

PodRules Rules(const Json& json) {
  auto rules = PodRulesFromJson(json);
  EXPECT_TRUE(rules.ok()) << rules.status().ToString();
  return rules.value();
}

// Of a spec.podTemplate.spec, and of what it says of workers alone.
PodTemplate Pods(const Json& spec, const Json& workers = Json::object()) {
  std::vector<FieldError> ignored;
  return DecodePodTemplate({{"spec", spec}, {"workers", workers}}, "", &ignored);
}

// tests/chart/job_policy_test.py asks an API server the same.
TEST(PodRules, AnswerAsTheTableSays) {
  const auto text = ReadFile(SourcePath("tests/data/pod_rules.yaml"));
  ASSERT_TRUE(text.ok());
  const YamlParseResult parsed = ParseYaml(*text);
  ASSERT_FALSE(parsed.error.has_value()) << parsed.error->message;
  int jobs = 0;
  const Json& sets = parsed.documents.at(0).value;
  for (size_t number = 0; number < sets.size(); ++number) {
    const Json& set = sets[number];
    const std::string job_namespace = "set-" + std::to_string(number);
    const PodRules rules = Rules(set["allowed"]);
    for (const Json& job : set["jobs"]) {
      ++jobs;
      const Json none = Json::object();
      const PodTemplate pods = Pods(job.value("pod", none), job.value("workers", none));
      const Status checked = CheckPods(rules, pods, job_namespace);
      EXPECT_EQ(checked.message(), job.value("refused", "")) << DumpJson(job);
      EXPECT_EQ(checked.ok(), !job.contains("refused"));
    }
  }
  EXPECT_GE(jobs, 80);
}

// What an API server with the CRD would not take.
TEST(PodRules, WhatIsNotUnderstoodIsRefusedWhereThereIsAList) {
  Json none = Json::object();
  for (const char* list : {"images", "serviceAccounts", "priorityClasses", "tolerationKeys",
                           "nodeLabels", "secrets", "resources"}) {
    none[list] = Json::array();
  }
  constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const auto worker = [](const char* field, const Json& value) {
    return Json::array({{{"name", "worker"}, {field, value}}});
  };
  const std::tuple<const char*, Json, const char*> kRows[] = {
      {"tolerations", Json::array({7}), ""},
      {"tolerations", Json::array({{{"key", 7}}}), ""},
      {"affinity", {{"nodeAffinity", nullptr}}, ""},
      {"affinity", {{"nodeAffinity", {{kRequired, 7}}}}, ""},
      {"affinity", {{"nodeAffinity", {{kRequired, {{"nodeSelectorTerms", 7}}}}}}, ""},
      {"affinity",
       {{"nodeAffinity",
         {{kRequired, {{"nodeSelectorTerms", Json::array({{{"matchExpressions", "disk"}}})}}}}}},
       ""},
      {"affinity", {{"nodeAffinity", {{kPreferred, 7}}}}, ""},
      {"affinity", {{"nodeAffinity", {{kPreferred, Json::array({7})}}}}, ""},
      {"affinity",
       {{"nodeAffinity", {{kPreferred, Json::array({{{"preference", nullptr}}})}}}},
       ""},
      {"containers", worker("env", Json::array({{{"valueFrom", nullptr}}})), "[].env"},
      {"containers", worker("env", Json::array({{{"valueFrom", {{"secretKeyRef", "s"}}}}})),
       "[].env"},
      {"containers",
       worker("env", Json::array({{{"valueFrom", {{"secretKeyRef", {{"name", 7}}}}}}})), "[].env"},
      {"containers", worker("resources", {{"limits", 7}}), "[].resources"},
      {"volumes", Json::array({7}), ""},
      {"volumes", Json::array({{{"secret", "s"}}}), ""},
      {"volumes", Json::array({{{"secret", {{"secretName", 7}}}}}), ""},
      {"volumes", Json::array({{{"projected", nullptr}}}), ""},
      {"volumes", Json::array({{{"projected", {{"sources", 7}}}}}), ""},
      {"volumes", Json::array({{{"projected", {{"sources", Json::array({7})}}}}}), ""},
      {"volumes", Json::array({{{"csi", 7}}}), ""},
      {"volumes", Json::array({{{"csi", {{"nodePublishSecretRef", "s"}}}}}), ""},
  };
  for (const auto& [field, value, part] : kRows) {
    const PodTemplate pods = Pods({{field, value}});
    const Status checked = CheckPods(Rules(none), pods, "team");
    EXPECT_EQ(checked.code(), StatusCode::kPermissionDenied) << DumpJson(value);
    EXPECT_THAT(checked.message(),
                HasSubstr(std::string("spec.podTemplate.spec.") + field + part + ": no "));
    EXPECT_TRUE(CheckPods(PodRules{}, pods, "team").ok()) << DumpJson(value);
  }
  const PodRules typed = Rules({{"volumeTypes", {"projected"}}});
  for (const char* volume : {"7", R"({"projected": 7})", R"({"projected": {"sources": 7}})",
                             R"({"projected": {"sources": [7]}})"}) {
    const PodTemplate pods = Pods({{"volumes", {Json::parse(volume)}}});
    EXPECT_FALSE(CheckPods(typed, pods, "team").ok()) << volume;
  }
}

TEST(PodRules, TermsOfPodAffinityThatAreNotUnderstoodAreRefusedWhereThereIsAList) {
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const PodRules rules = Rules({{"affinityNamespaces", Json::array()}});
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    for (const Json& terms : {
             Json(nullptr),
             Json(7),
             Json{{kRequired, 7}},
             Json{{kRequired, {{"namespaces", Json::array()}}}},
             Json{{kRequired, Json::array({7})}},
             Json{{kRequired, Json::array({{{"namespaces", "team"}}})}},
             Json{{kRequired, Json::array({{{"namespaces", nullptr}}})}},
             Json{{kRequired, Json::array({{{"namespaces", Json::array({7})}}})}},
             Json{{kRequired, Json::array({{{"namespaceSelector", nullptr}}})}},
             Json{{kPreferred, nullptr}},
             Json{{kPreferred, Json::array({7})}},
             Json{{kPreferred, Json::array({{{"podAffinityTerm", 7}}})}},
         }) {
      const PodTemplate pods = Pods({{"affinity", {{kind, terms}}}});
      const Status checked = CheckPods(rules, pods, "team");
      EXPECT_EQ(checked.code(), StatusCode::kPermissionDenied) << DumpJson(terms);
      EXPECT_THAT(checked.message(), HasSubstr(std::string("affinity.") + kind + ": no other "));
      EXPECT_TRUE(CheckPods(PodRules{}, pods, "team").ok()) << DumpJson(terms);
    }
  }
}

TEST(PodRules, AnInvalidFileNamesTheField) {
  const auto message = [](const std::string& text) {
    return PodRulesFromJson(Json::parse(text)).status().message();
  };
  EXPECT_EQ(message("{}"), "");
  EXPECT_EQ(message(R"({"images": null, "secrets": [], "nodeLabels": ["*"]})"), "");
  EXPECT_NE(message("[]"), "");
  EXPECT_THAT(message(R"({"image": []})"), AllOf(HasSubstr("image"), HasSubstr("images")));
  EXPECT_THAT(message(R"({"images": "*"})"), HasSubstr("images: must be a list"));
  EXPECT_THAT(message(R"({"secrets": ["a", 7]})"), HasSubstr("secrets[1]"));
  for (const char* entry : {"", " ", "a b", "a\\n", "*a", "a*b", "a**"}) {
    EXPECT_THAT(message(std::string(R"({"secrets": ["a", ")") + entry + R"("]})"),
                HasSubstr("secrets[1]"))
        << entry;
  }
  // A registry of another name may begin so, too.
  EXPECT_THAT(message(R"({"images": ["registry.example*"]})"), HasSubstr("images[0]"));
  EXPECT_EQ(message(R"({"images": ["registry.example/*", "*"], "secrets": ["a*"]})"), "");
}

TEST(PodRules, OfAFileSayWhichFile) {
  const std::string file = MakeTempDir() + "/rules.yaml";
  EXPECT_THAT(ReadPodRules(file).status().message(), HasSubstr(file));
  const auto read = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(file, text).ok());
    return ReadPodRules(file);
  };
  EXPECT_THAT(read("images: [").status().message(), HasSubstr(file + ":"));
  EXPECT_THAT(read("images: 7\n").status().message(), HasSubstr(file));
  const auto rules = read("priorityClasses: []\nimages: [a/*]\n");
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  EXPECT_EQ(rules->images, PodRules::Names({"a/*"}));
  EXPECT_EQ(rules->priority_classes, PodRules::Names(std::vector<std::string>{}));
  EXPECT_EQ(rules->secrets, std::nullopt);
}

}  // namespace
}  // namespace lambdadnn
