// SPDX-License-Identifier: Apache-2.0
// The Knative backend, or a part of it, at a stand-in for Knative, in virtual time; header only.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/backends/knative/knative_backend.h"
#include "operator/kinds/serverless_training_job.h"
#include "tests/simulation/sim_runtime.h"
#include "tests/simulation/sim_scheduler.h"
#include "tests/simulation/virtual_run.h"
#include "tests/support/faulty_kube_client.h"
#include "tests/support/knative_stand_in.h"

namespace lambdadnn {

class AtStandIn : public testing::Test {
 protected:
  AtStandIn()
      : server_process_(scheduler_.NewProcess("server")),
        process_(scheduler_.NewProcess("operator")),
        server_(server_process_.runtime()),
        stand_in_(server_) {}

  // In the operator's process, to its end.
  void Do(const std::function<void()>& work) { simulation::RunIn(scheduler_, process_, work); }
  void RunFor(double seconds) { simulation::RunAllFor(scheduler_, seconds); }

  simulation::SimScheduler scheduler_{1};
  simulation::SimProcess& server_process_;
  simulation::SimProcess& process_;
  InMemoryApiServer server_;
  KnativeStandIn stand_in_;
  std::map<std::string, int> calls_;
};

class Knative : public AtStandIn {
 protected:
  using Point = FaultyKubeClient::Point;

  Knative()
      : client_(server_, [this](const std::string& call, const std::string& name, Point point) {
          if (point == Point::kBefore) ++calls_[call];
          if (call == "list" && name == forbidden_list_) return PermissionDeniedError("no");
          return decide_ ? decide_(call, point) : OkStatus();
        }) {}
  ~Knative() override { (void)backend_.release(); }  // its fibers go with the scheduler

  // The uid of a job, which is created at the first call: objects without an owner are
  // garbage-collected.
  std::string JobUid(const std::string& job) {
    std::string& uid = job_uids_[job];
    if (uid.empty()) {
      const Json object = {{"apiVersion", "lambdadnn.io/v1alpha1"},
                           {"kind", "ServerlessTrainingJob"},
                           {"metadata", {{"name", job}, {"namespace", "team"}}}};
      uid = UidOf(server_.Create(ServerlessTrainingJobType(), object).value());
    }
    return uid;
  }
  JobIdentity Identity(const std::string& job) { return {JobUid(job), "team", job}; }
  FunctionGroup Group(int count, const std::string& name = "workers",
                      const std::string& job = "digits") {
    FunctionGroup group;
    group.job_uid = JobUid(job);
    group.namespace_name = "team";
    group.job_name = job;
    group.name = name;
    group.program = name == "servers" ? FunctionProgram::kServer : FunctionProgram::kWorker;
    group.count = count;
    group.memory_mib = 512;
    group.milli_cpu = 250;
    group.timeout_seconds = 300;
    group.environment = {{"LAMBDADNN_JOB_KEY", "secret-key"}};
    return group;
  }
  void Start(KnativeBackend::Options options = {}) {
    options.services.images.worker = "worker:1";
    options.services.images.server = "server:1";
    Do([&] { backend_ = std::make_unique<KnativeBackend>(client_, process_.runtime(), options); });
    RunFor(1);
  }
  Status Ensure(const FunctionGroup& group) {
    Status status;
    Do([&] { status = backend_->EnsureGroup(group); });
    return status;
  }
  // What the watch has seen after Knative has acted.
  void Settle() {
    stand_in_.Reconcile();
    RunFor(1);
  }
  void MakeAllReady() {
    for (const Json& pod : stand_in_.All(PodType())) stand_in_.MakeReady(pod);
    RunFor(1);
  }
  // Its kubelet, which alone could end it, is cut off.
  void DeleteOnALostNode(const Json& pod) {
    Do([&] {
      const Json held = {{"metadata", {{"finalizers", {"test/kubelet"}}}}};
      ASSERT_TRUE(server_.Patch(PodType(), NameOf(pod), held, Subresource::kNone).ok());
      ASSERT_TRUE(server_.Delete(PodType(), NameOf(pod), "").ok());
    });
  }
  std::vector<FunctionInstance> List(const std::string& job = "digits") {
    std::vector<FunctionInstance> instances;
    Do([&] { instances = backend_->List(Identity(job)).value(); });
    return instances;
  }
  // The end of a container, as the kubelet tells it.
  static Json Ended(int exit_code, const std::string& reason) {
    return {{"terminated", {{"exitCode", exit_code}, {"reason", reason}}}};
  }
  void SetContainer(const Json& pod, Json container) {
    container["name"] = kFunctionContainer;
    stand_in_.SetStatus(pod, {{"containerStatuses", Json::array({container})}});
    RunFor(1);
  }

  std::function<Status(const std::string& call, Point point)> decide_;
  std::string forbidden_list_;  // a kind's plural
  std::map<std::string, std::string> job_uids_;
  FaultyKubeClient client_;
  std::unique_ptr<KnativeBackend> backend_;
};

}  // namespace lambdadnn
