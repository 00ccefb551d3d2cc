// SPDX-License-Identifier: Apache-2.0
// FunctionBackend for OpenFaaS: one function of one replica for each rank, made and reached through
// a gateway. All functions lie in the gateway's namespace for functions, whatever namespace their
// job is in; they are a job's by their labels.
//
// Instances and their ends are those of the functions' pods, from one watch of that namespace.
// Where the operator may not read pods, they are what the gateway counts: whether a function is
// available, and nothing of why it ended, where it runs, or that its container was restarted.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/http/http_transport.h"
#include "operator/backends/cluster_bound.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/kubernetes/cluster_reader.h"
#include "operator/backends/kubernetes/instance_logs.h"
#include "operator/backends/kubernetes/pod_functions.h"
#include "operator/backends/kubernetes/pod_index.h"
#include "operator/backends/openfaas/function_table.h"
#include "operator/backends/openfaas/function_writer.h"
#include "operator/backends/openfaas/gateway.h"
#include "operator/backends/openfaas/openfaas_limits.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/openfaas_function.h"

namespace lambdadnn {

class OpenFaasBackend final : public FunctionBackend, public ClusterBound {
 public:
  struct Options {
    OpenFaasGateway::Options gateway = {};
    OpenFaasOptions functions = {};
    OpenFaasPlace place = {};
    // Between SIGTERM and SIGKILL of a deleted pod: its slice has ended or is given up.
    int grace_seconds = 2;
    // See PodIndex.
    double lost_node_seconds = 60;
    // How long the gateway's list of functions is cached.
    double list_seconds = 2;
    // How long the cluster's limits and the gateway's edition are.
    double limits_seconds = 30;
  };

  // `kube` and `runtime` outlive this. The watch of pods begins at once.
  OpenFaasBackend(KubeClient& kube, Runtime& runtime, std::unique_ptr<HttpTransport> transport,
                  Options options);

  BackendCapabilities capabilities() const override {
    return CapabilitiesOf(BackendKind::kOpenFaas);
  }
  Status EnsureGroup(const FunctionGroup& group) override;
  Status DeleteGroup(const JobIdentity& job, const std::string& group) override;
  // Where pods may not be deleted, its function is, and made again.
  Status DeleteInstance(const JobIdentity& job, const std::string& uid) override;
  Status ReleaseJob(const JobIdentity& job) override;
  Result<std::vector<FunctionInstance>> List(const JobIdentity& job) override;
  // kUnimplemented: a function's CPU cannot change.
  Status SetCpu(const JobIdentity& job, const std::string& uid, int milli_cpu) override;
  Result<std::string> Logs(const JobIdentity& job, const std::string& uid, int last_lines) override;
  Result<FunctionCapacity> Capacity() override;
  // Those of the functions' namespace, of the gateway's edition, and time-outs.
  Result<ClusterLimits> Limits(const std::string& namespace_name, const PodTemplate& pods) override;
  Status Preflight(const FunctionGroup& group) override;
  std::string IsolationName() const override { return "pods"; }

 private:
  bool ReadsPods() const;
  Result<std::vector<FunctionInstance>> Counted(const JobIdentity& job);
  Status DeleteCounted(const JobIdentity& job, const std::string& uid);
  // Of the functions on the gateway; 0 = no limit.
  Result<int> MaxFunctions();

  Runtime& runtime_;
  const Options options_;
  const std::unique_ptr<HttpTransport> transport_;
  OpenFaasGateway gateway_;
  ClusterReader reader_;
  InstanceLogs logs_;
  PodIndex pods_;  // it tells logs_
  PodFunctions functions_;
  FunctionTable table_;
  FunctionWriter writer_;
  std::mutex mutex_;
  std::optional<std::pair<OpenFaasEdition, Instant>> edition_;  // with the mutex
};

}  // namespace lambdadnn
