// SPDX-License-Identifier: Apache-2.0
// Connects a command to the cluster, with kubectl's flags.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "common/base/runtime.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

struct ClusterFlags {
  std::string namespace_name = "";  // empty = the context's
  bool all_namespaces = false;
  std::string context = "";
  std::string kubeconfig = "";
};

// -n, --context, --kubeconfig and, where a command is about many jobs, -A.
void AddClusterFlags(CLI::App* command, ClusterFlags* flags, bool many_jobs = false);

struct Cluster {
  std::unique_ptr<KubeClient> kube;
  std::string server;          // its URL
  std::string namespace_name;  // of -n, else of the context; never empty
};

// As kubectl would: --kubeconfig, $KUBECONFIG, ~/.kube/config, else this pod's service account.
// Nothing is contacted yet. kInvalidArgument and kNotFound say what to give.
Result<Cluster> OpenCluster(Runtime& runtime, const ClusterFlags& flags);

// What a user wants to know when a call about jobs failed: a cluster without the CRD, a job that is
// not there, an API server that does not answer.
Status ExplainJobError(const Status& status, const ObjectName& job, const std::string& server);

}  // namespace lambdadnn
