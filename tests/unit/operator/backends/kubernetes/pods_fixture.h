// SPDX-License-Identifier: Apache-2.0
// Pods of one job on an API server, made by hand, in virtual time; header only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "operator/backends/kubernetes/pod_index.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {

class OfPods : public AtStandIn {
 protected:
  OfPods()
      : client_(server_,
                [this](const std::string& call, const std::string&,
                       FaultyKubeClient::Point point) -> Status {
                  if (point == FaultyKubeClient::Point::kBefore) ++calls_[call];
                  return refusal_;
                }) {}
  ~OfPods() override { (void)pods_.release(); }  // its fibers go with the scheduler

  void Start() {
    Do([&] {
      pods_ = std::make_unique<PodIndex>(client_, process_.runtime(), PodIndex::Options{},
                                         [this](const ObjectName& pod) { gone_.push_back(pod); });
      pods_->Start();
    });
    RunFor(1);
  }
  // Of the job with this uid; its owner is its controller.
  Json MakePod(const std::string& name, const std::string& job_uid, bool controlled = true,
               const std::string& space = "team") {
    Json made;
    Do([&] {
      const Json owner = {{"apiVersion", "v1"},
                          {"kind", "Pod"},
                          {"metadata", {{"name", "c"}, {"namespace", space}}}};
      const Result<Json> there = server_.Get(PodType(), {space, "c"});
      const Json controller = there.ok() ? *there : server_.Create(PodType(), owner).value();
      Json pod = {{"apiVersion", "v1"},
                  {"kind", "Pod"},
                  {"metadata",
                   {{"name", name},
                    {"namespace", space},
                    {"labels", {{kJobUidLabel, job_uid}, {kGroupLabel, "workers"}}}}}};
      if (controlled) {
        pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                           {"kind", "Pod"},
                                                           {"name", "c"},
                                                           {"controller", true},
                                                           {"uid", UidOf(controller)}}});
      }
      made = server_.Create(PodType(), pod).value();
    });
    RunFor(1);
    return made;
  }
  void DeletePod(const std::string& name) {
    Do([&] { ASSERT_TRUE(server_.Delete(PodType(), {"team", name}, "").ok()); });
    RunFor(1);
  }
  static JobIdentity Job(const std::string& uid) { return {uid, "team", "digits"}; }

  Status refusal_;
  FaultyKubeClient client_;
  std::vector<ObjectName> gone_;
  std::unique_ptr<PodIndex> pods_;
};

}  // namespace lambdadnn
