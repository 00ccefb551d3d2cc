// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/pod_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// tests/chart/job_policy_test.py asks an API server the same.
TEST(PodRules, AnswerAsTheTableSays) {
  const auto text = ReadFile(SourcePath("tests/data/pod_rules.yaml"));
  ASSERT_TRUE(text.ok());
  const YamlParseResult parsed = ParseYaml(*text);
  ASSERT_FALSE(parsed.error.has_value()) << parsed.error->message;
  int jobs = 0;
  for (const Json& set : parsed.documents.at(0).value) {
    const PodRules rules = Rules(set["allowed"]);
    for (const Json& job : set["jobs"]) {
      ++jobs;
      const Status checked = CheckPods(rules, job["runtime"]);
      EXPECT_EQ(checked.message(), job.value("refused", "")) << DumpJson(job["runtime"]);
      EXPECT_EQ(checked.ok(), !job.contains("refused"));
    }
  }
  EXPECT_GE(jobs, 50);
}

// What an API server with the CRD would not take.
TEST(PodRules, WhatIsNotUnderstoodIsRefusedWhereThereIsAList) {
  Json none = Json::object();
  for (const char* list : {"images", "serviceAccounts", "priorityClasses", "tolerationKeys",
                           "nodeLabels", "secrets"}) {
    none[list] = Json::array();
  }
  constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const std::pair<const char*, Json> kRows[] = {
      {"image", 7},
      {"serverImage", Json::array()},
      {"serviceAccountName", nullptr},
      {"priorityClassName", Json::object()},
      {"tolerations", "gpu"},
      {"tolerations", Json::array({7})},
      {"tolerations", Json::array({{{"key", 7}}})},
      {"nodeSelector", "disk"},
      {"affinity", 7},
      {"affinity", {{"nodeAffinity", nullptr}}},
      {"affinity", {{"nodeAffinity", {{kRequired, 7}}}}},
      {"affinity", {{"nodeAffinity", {{kRequired, {{"nodeSelectorTerms", 7}}}}}}},
      {"affinity",
       {{"nodeAffinity",
         {{kRequired, {{"nodeSelectorTerms", Json::array({{{"matchExpressions", "disk"}}})}}}}}}},
      {"affinity", {{"nodeAffinity", {{kPreferred, 7}}}}},
      {"affinity", {{"nodeAffinity", {{kPreferred, Json::array({7})}}}}},
      {"affinity", {{"nodeAffinity", {{kPreferred, Json::array({{{"preference", nullptr}}})}}}}},
      {"env", "A"},
      {"env", Json::array({{{"valueFrom", nullptr}}})},
      {"env", Json::array({{{"valueFrom", {{"secretKeyRef", "s"}}}}})},
      {"env", Json::array({{{"valueFrom", {{"secretKeyRef", {{"name", 7}}}}}}})},
  };
  for (const auto& [field, value] : kRows) {
    const Json runtime = {{field, value}};
    const Status checked = CheckPods(Rules(none), runtime);
    EXPECT_EQ(checked.code(), StatusCode::kPermissionDenied) << DumpJson(runtime);
    EXPECT_THAT(checked.message(), HasSubstr(std::string("spec.runtime.") + field + ": no "));
    EXPECT_TRUE(CheckPods(PodRules{}, runtime).ok()) << DumpJson(runtime);
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
