// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/node_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json Node(const std::string& name, const std::string& memory = "8Gi") {
  return {
      {"apiVersion", "v1"},
      {"kind", "Node"},
      {"metadata", {{"name", name}, {"labels", {{"disk", "ssd"}}}, {"annotations", {{"a", "b"}}}}},
      {"spec", {{"taints", Json::array({{{"key", "k"}, {"effect", "NoSchedule"}}})}}},
      {"status",
       {{"allocatable", {{"memory", memory}, {"cpu", "4"}, {"pods", "20"}}},
        {"images", Json::array({{{"sizeBytes", 1}}})}}}};
}

// With two containers, one for the initialization, and an overhead.
Json Pod(const std::string& name, const std::string& node, const std::string& job = "",
         const std::string& space = "team") {
  const auto container = [](const char* memory, const char* cpu) {
    return Json{{"name", "c"},
                {"image", "i"},
                {"resources", {{"requests", {{"memory", memory}, {"cpu", cpu}}}}}};
  };
  Json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", name}, {"namespace", space}, {"annotations", {{"a", "b"}}}}},
      {"spec",
       {{"containers", Json::array({container("100Mi", "100m"), container("28Mi", "1500u")})},
        {"initContainers", Json::array({container("64Mi", "1")})},
        {"overhead", {{"memory", "1Ki"}, {"cpu", "1m"}}}}},
      {"status", {{"phase", "Running"}, {"podIP", "10.0.0.1"}}}};
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  if (!job.empty()) pod["metadata"]["labels"] = {{kJobUidLabel, job}, {"team", "a"}};
  return pod;
}

void ExpectSame(const PodResources& a, const PodResources& b) {
  EXPECT_DOUBLE_EQ(a.memory_mib, b.memory_mib);
  EXPECT_DOUBLE_EQ(a.milli_cpu, b.milli_cpu);
  EXPECT_EQ(a.pods, b.pods);
}

TEST(ReducePod, KeepsTheSumOfItsRequestsAndLittleElse) {
  Json ended = Pod("b", "n");
  ended["status"]["phase"] = "Succeeded";
  for (const Json& pod : {Pod("a", "n", "job"), Pod("a", ""), ended}) {
    std::vector<std::string> unknown;
    Json reduced = pod;
    WatchedNodeUsage::ReducePod(&reduced);
    ExpectSame(ReadPodResources(reduced, &unknown), ReadPodResources(pod, &unknown));
    EXPECT_THAT(unknown, IsEmpty());
    EXPECT_EQ(NameOf(reduced), NameOf(pod));
    EXPECT_EQ(LabelText(reduced, kJobUidLabel), LabelText(pod, kJobUidLabel));
    EXPECT_EQ(reduced["spec"].contains("nodeName"), pod["spec"].contains("nodeName"));
    EXPECT_FALSE(reduced["spec"].contains("containers"));
    EXPECT_LT(reduced.dump().size(), 250u);
  }
}

TEST(ReducePod, KeepsAllOfOneThatCannotBeReadSoThatItIsNamedEachTime) {
  Json pod = Pod("a", "n");
  pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "much";
  Json reduced = pod;
  WatchedNodeUsage::ReducePod(&reduced);
  EXPECT_EQ(reduced, pod);
}

class Usage : public AtStandIn {
 protected:
  Usage()
      : client_(server_,
                [this](const std::string& call, const std::string& what,
                       FaultyKubeClient::Point point) -> Status {
                  if (point != FaultyKubeClient::Point::kBefore) return OkStatus();
                  ++calls_[call];
                  return forbidden_.empty() || what.find(forbidden_) == std::string::npos
                             ? OkStatus()
                             : PermissionDeniedError(what + " is forbidden");
                }) {}
  ~Usage() override { (void)watched_.release(); }  // its fibers go with the scheduler

  void Make(const ResourceType& type, const Json& object) {
    Do([&] { ASSERT_TRUE(server_.Create(type, object).ok()); });
  }
  void Watch(std::vector<std::string> namespaces = {}) {
    Do([&] {
      watched_ = std::make_unique<WatchedNodeUsage>(client_, process_.runtime(), namespaces);
    });
    RunFor(1);
  }
  Result<NodeUsage> Listed(const std::vector<std::string>& namespaces = {}) {
    Result<NodeUsage> usage = NodeUsage{};
    Do([&] { usage = ListNodeUsage(client_, namespaces); });
    return usage;
  }
  Result<NodeUsage> Watched() {
    Result<NodeUsage> usage = NodeUsage{};
    Do([&] { usage = watched_->Read(); });
    return usage;
  }
  void ExpectBothSame(const std::vector<std::string>& namespaces) {
    const auto listed = Listed(namespaces);
    const auto watched = Watched();
    ASSERT_TRUE(listed.ok() && watched.ok()) << watched.status().ToString();
    ASSERT_EQ(watched->nodes.has_value(), listed->nodes.has_value());
    ASSERT_EQ(watched->nodes->size(), listed->nodes->size());
    for (size_t i = 0; i < listed->nodes->size(); ++i) {
      EXPECT_EQ((*watched->nodes)[i].name, (*listed->nodes)[i].name);
      EXPECT_EQ((*watched->nodes)[i].labels, (*listed->nodes)[i].labels);
      EXPECT_EQ((*watched->nodes)[i].taints, (*listed->nodes)[i].taints);
      ExpectSame((*watched->nodes)[i].allocatable, (*listed->nodes)[i].allocatable);
    }
    ASSERT_EQ(watched->others.size(), listed->others.size());
    for (const auto& [node, requests] : listed->others) {
      ExpectSame(watched->others.at(node), requests);
    }
    ASSERT_EQ(watched->own->size(), listed->own->size());
    for (const auto& [space, requests] : *listed->own) {
      ExpectSame(watched->own->at(space), requests);
    }
    EXPECT_EQ(watched->unknown, listed->unknown);
  }

  std::string forbidden_;  // what is asked for with this in its name
  FaultyKubeClient client_;
  std::unique_ptr<WatchedNodeUsage> watched_;
};

TEST_F(Usage, IsTheSameWatchedAndListed) {
  Watch({"team"});
  Make(NodeType(), Node("a"));
  Make(NodeType(), Node("b"));
  Make(PodType(), Pod("other", "a"));
  Make(PodType(), Pod("more", "a"));
  Make(PodType(), Pod("function", "b", "job"));
  Make(PodType(), Pod("unbound", "", "job"));
  Make(PodType(), Pod("elsewhere", "b", "job", "foreign"));  // of a namespace that is not ours
  Make(PodType(), Pod("queued", ""));
  RunFor(1);
  ExpectBothSame({"team"});
  const auto usage = Watched();
  EXPECT_EQ(usage->others.at("a").pods, 2);
  EXPECT_EQ(usage->others.at("b").pods, 1);
  EXPECT_EQ(usage->own->at("team").pods, 2);
  Do([&] { ASSERT_TRUE(server_.Delete(PodType(), {"team", "more"}, "").ok()); });
  Do([&] {
    const Json cordon = {{"spec", {{"unschedulable", true}}}};
    ASSERT_TRUE(server_.Patch(NodeType(), {"", "b"}, cordon, Subresource::kNone).ok() ||
                server_.Patch(NodeType(), {"default", "b"}, cordon, Subresource::kNone).ok());
  });
  RunFor(1);
  ExpectBothSame({"team"});
  EXPECT_EQ(Watched()->nodes->size(), 1u);
  EXPECT_EQ(Watched()->others.at("a").pods, 1);
}

TEST_F(Usage, OfAWatchCostsNoRequestHoweverOftenItIsRead) {
  Make(NodeType(), Node("a"));
  Watch();
  const int before = calls_["list"];
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Watched().ok());
    RunFor(30);
  }
  EXPECT_EQ(calls_["list"], before);
  EXPECT_EQ(before, 2);
}

TEST_F(Usage, OfAServerWithoutNodesIsNotKnown) {
  Watch();
  EXPECT_FALSE(Watched()->nodes.has_value());
  EXPECT_FALSE(Listed()->nodes.has_value());
}

TEST_F(Usage, WhatIsForbiddenIsNamedAndTheRestIsKnown) {
  Make(NodeType(), Node("a"));
  Make(PodType(), Pod("other", "a"));
  forbidden_ = "pods";
  Watch();
  const auto listed = Listed();
  const auto watched = Watched();
  for (const auto* usage : {&listed, &watched}) {
    ASSERT_TRUE(usage->ok()) << usage->status().ToString();
    EXPECT_EQ((*usage)->nodes->size(), 1u);
    EXPECT_TRUE((*usage)->others.empty());
    EXPECT_FALSE((*usage)->own.has_value());
    EXPECT_THAT((*usage)->unknown,
                ElementsAre(HasSubstr("the requests of other pods on the nodes: ")));
  }
  // The right is given later.
  forbidden_ = "";
  RunFor(70);
  EXPECT_EQ(Watched()->others.at("a").pods, 1);
  EXPECT_THAT(Watched()->unknown, IsEmpty());
}

TEST_F(Usage, BeforeTheFirstListIsAnErrorThatPasses) {
  Make(NodeType(), Node("a"));
  Do([&] {
    watched_ =
        std::make_unique<WatchedNodeUsage>(client_, process_.runtime(), std::vector<std::string>{});
    const auto usage = watched_->Read();
    EXPECT_EQ(usage.status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(usage.status().message(), HasSubstr("the nodes' capacity is not known yet"));
  });
  RunFor(1);
  EXPECT_TRUE(Watched().ok());
}

}  // namespace
}  // namespace lambdadnn
