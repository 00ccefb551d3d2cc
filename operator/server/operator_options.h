// SPDX-License-Identifier: Apache-2.0
// Options of the operator's process: plain values, from flags and LAMBDADNN_* variables
// (operator/cmd).
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "operator/api/backend_kind.h"
#include "operator/controller/admission/fair_share.h"

namespace lambdadnn {

struct OperatorOptions {
  // The API server. Both empty: this pod's service account, else what kubectl would use.
  std::string kubeconfig = "";
  std::string context = "";
  // This process's own limit of requests to it: a second on average, and at once; 0 = none (the
  // server has its own). The Lease is exempt.
  double kube_api_qps = 0;
  int kube_api_burst = 100;
  // Namespaces whose jobs are managed; empty = all.
  std::vector<std::string> namespaces = {};
  // "NAMESPACE=WEIGHT": shares of the capacity (controller/admission/fair_share.h).
  std::vector<std::string> namespace_weights = {};

  // Where functions run (server/backend_factory.h). Local: the function host (`lambdadnn host`)
  // that serves this socket. Knative and OpenFaaS: pods of these images, where a job names none.
  BackendKind backend = BackendKind::kLocal;
  std::string host_socket = "";
  std::string worker_image = "";
  std::string server_image = "";
  std::string worker_gpu_image = "";  // Knative alone: of workers with a GPU
  // lambdadnn-worker of this machine, which tries a job's module (spec.model.torchScript) before a
  // function starts; empty = functions try it before they load it.
  std::string module_checker = "";
  // Backend Knative: ingress and egress of functions (resources/network_policy.h); empty = no
  // network policies.
  std::string network_policies_file = "";
  // Backend Knative: Secrets of each job's namespace that its pods pull images with. OpenFaaS: of
  // the functions' namespace.
  std::vector<std::string> image_pull_secrets = {};
  // Backend Knative: functions of new jobs are reached over TLS, and show their job's certificate.
  bool function_tls = true;
  // Backend OpenFaaS: its gateway (http://HOST:PORT), the namespaces of all functions and of
  // OpenFaaS itself, a folder with the files of the gateway's credentials (empty = it wants none),
  // how many functions it allows in all (0 = as its edition says), and the shortest time-out of
  // gateway and provider (0 = as their Deployments say).
  std::string openfaas_gateway = "";
  std::string openfaas_namespace = "openfaas-fn";
  std::string openfaas_gateway_namespace = "openfaas";
  std::string openfaas_auth_dir = "";
  int openfaas_max_functions = 0;
  double openfaas_timeout_seconds = 0;
  // Prices, sizes and limits of functions; empty = this machine's, for the backend Local alone.
  std::string platform_file = "";
  // The operator's own store and what jobs may read with its rights
  // (controller/admission/tenant_rules.h). The endpoint of an S3 store is LAMBDADNN_S3_ENDPOINT, as
  // its credentials are of the environment.
  std::string store = "";
  std::vector<std::string> readable = {};
  // Other stores that jobs may name as endpoints, with their NetworkPolicy peers
  // (resources/store_endpoints.h); empty = every store.
  std::string store_endpoints_file = "";
  // What jobs may put into their pods (resources/pod_rules.h); empty = everything.
  std::string pod_rules_file = "";
  // Jobs in that store run with credentials of their own, or fail. If false, functions get the
  // operator's where the store gives no others (TenantRules::expose_operator_credentials).
  bool require_job_credentials = true;
  // PEM file with the CA certificates of the object stores; empty = the system's.
  std::string store_ca_file = "";

  // One of several replicas leads, the others are on standby.
  bool leader_elect = false;
  std::string lease_namespace = "";  // empty = the namespace of this pod or context
  std::string lease_name = "lambdadnn-operator";
  std::string identity = "";  // empty = host name and a random part

  // "HOST:PORT", port 0 = a free one, which the log names; "0" or empty = not served.
  std::string metrics_address = "127.0.0.1:8080";
  std::string health_address = "127.0.0.1:8081";
  // /debug/jobs/NAMESPACE/NAME beside the metrics, which must then be served to this machine alone.
  bool debug_endpoint = false;

  // Jobs reconciled at once. Passes that wait for a store do so in a bulkhead
  // (controller/store/store_bulkheads.h).
  int workers = 8;

  // --check: an object store to try, e.g. s3://bucket; empty = none.
  std::string check_store = "";

  Status Validate() const;
};

// kInvalidArgument names the flag and the entry.
Result<NamespaceWeights> ParseNamespaceWeights(const std::vector<std::string>& entries);

// "HOST:PORT" or ":PORT" (all addresses) taken apart; kInvalidArgument names `flag`.
struct ListenAddress {
  std::string host;
  int port = 0;
};
Result<ListenAddress> ParseListenAddress(const std::string& flag, const std::string& text);

}  // namespace lambdadnn
