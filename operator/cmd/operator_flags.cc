// SPDX-License-Identifier: Apache-2.0
#include "operator/cmd/operator_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "operator/server/backend_factory.h"

namespace lambdadnn {
namespace {

constexpr int kExitUsage = 2;

// "--leader-elect" -> "LAMBDADNN_LEADER_ELECT".
std::string VariableOf(const std::string& flag) {
  std::string name = "LAMBDADNN_";
  for (const char c : flag.substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

template <typename T>
CLI::Option* AddValue(CLI::App& app, const std::string& flag, T& value, const std::string& help) {
  return app.add_option(flag, value, help)->envname(VariableOf(flag))->capture_default_str();
}

CLI::Option* AddSwitch(CLI::App& app, const std::string& flag, bool& value,
                       const std::string& help) {
  return app.add_flag(flag, value, help)->envname(VariableOf(flag));
}

void AddFlags(CLI::App& app, OperatorFlags& flags) {
  OperatorOptions& options = flags.options;
  AddValue(app, "--kubeconfig", options.kubeconfig,
           "Kubeconfig of the API server; without it this pod's service account, else what "
           "kubectl would use");
  AddValue(app, "--context", options.context, "Context of the kubeconfig, if not the current one");
  AddValue(app, "--kube-api-qps", options.kube_api_qps,
           "Most requests to the API server a second, on average; 0 = no limit of this process");
  AddValue(
      app, "--kube-api-burst", options.kube_api_burst,
      "With --kube-api-qps: requests that may go out at once before the limit holds them back");
  AddValue(app, "--namespaces", options.namespaces,
           "Look after the jobs of these namespaces only (separated by commas)")
      ->delimiter(',');
  AddValue(app, "--namespace-weights", options.namespace_weights,
           "How namespaces share the capacity: NAMESPACE=WEIGHT, separated by commas; a namespace "
           "that is not named has the weight 1")
      ->delimiter(',');
  AddValue(app, "--backend", flags.backend, "Where functions run: Local, Knative or OpenFaaS");
  AddValue(app, "--host-socket", options.host_socket,
           "Backend Local: the socket of the function host (lambdadnn host)");
  AddValue(app, "--worker-image", options.worker_image,
           "Backends Knative, OpenFaaS: the image of workers, where a job names none");
  AddValue(app, "--server-image", options.server_image,
           "Backends Knative, OpenFaaS: the image of parameter servers, where a job names none");
  AddValue(
      app, "--worker-gpu-image", options.worker_gpu_image,
      "Backend Knative: the image of workers with a GPU (spec.functions.gpu), where a job names "
      "none");
  AddValue(app, "--module-checker", options.module_checker,
           "The program lambdadnn-worker on this machine: modules of jobs "
           "(spec.model.torchScript) are tried by it, in a process with limits and without "
           "network, before a function starts; without it functions try them");
  AddValue(app, "--image-pull-secrets", options.image_pull_secrets,
           "Secrets with registry credentials that the images of functions are pulled with (names, "
           "separated by commas); backend Knative: in each namespace with jobs, OpenFaaS: in that "
           "of functions")
      ->delimiter(',');
  AddValue(
      app, "--network-policies", options.network_policies_file,
      "Backend Knative: limit the traffic of functions by a NetworkPolicy for each job, as this "
      "file says (docs/formats.md); without it none is made");
  app.add_flag("--function-tls,!--no-function-tls", options.function_tls,
               "Backend Knative: reach the functions of new jobs over TLS, which shows their job's "
               "certificate (the default). With --no-function-tls keys and credentials go to them "
               "in plain text, unless a mesh encrypts it")
      ->envname(VariableOf("--function-tls"));
  AddValue(app, "--openfaas-gateway", options.openfaas_gateway,
           "Backend OpenFaaS: the URL of its gateway, such as http://gateway.openfaas:8080");
  AddValue(app, "--openfaas-namespace", options.openfaas_namespace,
           "Backend OpenFaaS: the namespace of its functions");
  AddValue(app, "--openfaas-gateway-namespace", options.openfaas_gateway_namespace,
           "Backend OpenFaaS: the namespace of its gateway and provider, whose Deployments tell "
           "their time-outs");
  AddValue(app, "--openfaas-timeout-seconds", options.openfaas_timeout_seconds,
           "Backend OpenFaaS: the shortest time-out of gateway and provider; 0 = as their "
           "Deployments say");
  AddValue(
      app, "--openfaas-auth-dir", options.openfaas_auth_dir,
      "Backend OpenFaaS: folder with the files basic-auth-user and basic-auth-password, such as "
      "a mounted Secret; without it the gateway is asked without credentials");
  AddValue(
      app, "--openfaas-max-functions", options.openfaas_max_functions,
      "Backend OpenFaaS: how many functions the gateway allows in all; 0 = as its edition says");
  AddValue(app, "--platform", options.platform_file,
           "Prices, sizes and limits of functions (docs/formats.md); without it this machine's");
  AddValue(app, "--store", options.store,
           "The operator's own store, for jobs that name none: s3://bucket/prefix at "
           "LAMBDADNN_S3_ENDPOINT, or file:///folder; without it every job names a Secret");
  AddValue(app, "--readable", options.readable,
           "Folders that jobs may read with the operator's rights (separated by commas), e.g. "
           "s3://data/public or s3://data/{namespace}; {namespace} stands for the job's")
      ->delimiter(',');
  AddValue(app, "--store-endpoints", options.store_endpoints_file,
           "File that lists the object stores that jobs may name beside the operator's own, and "
           "where the packets to each go (docs/formats.md); without it they may name every one");
  AddValue(
      app, "--pod-rules", options.pod_rules_file,
      "File that lists which images, service accounts, priority classes, taints, nodes and "
      "Secrets jobs may name in spec.podTemplate (docs/formats.md); without it they may name all");
  app.add_flag("--require-job-credentials,!--expose-operator-credentials",
               options.require_job_credentials,
               "Jobs in the operator's store run with credentials that the store gives for them "
               "alone, or with those of their own Secret, else they fail (the default). With "
               "--expose-operator-credentials their functions get the operator's own then, and "
               "users who may read pods or Secrets in a namespace with jobs can read them")
      ->envname(VariableOf("--require-job-credentials"));
  AddValue(app, "--store-ca-file", options.store_ca_file,
           "PEM file of the authorities that the object stores' certificates are signed by");
  AddSwitch(app, "--leader-elect", options.leader_elect,
            "Be one of several replicas, of which one acts");
  AddValue(app, "--lease-namespace", options.lease_namespace,
           "Namespace of the Lease; without it the pod's or the context's");
  AddValue(app, "--lease-name", options.lease_name, "Name of the Lease");
  AddValue(app, "--identity", options.identity,
           "Name of this process in the Lease; without it the host's name and a random part");
  AddValue(app, "--metrics-address", options.metrics_address,
           "Serve /metrics here (HOST:PORT or :PORT; 0 = nowhere)");
  AddValue(app, "--health-address", options.health_address,
           "Serve /healthz and /readyz here (HOST:PORT or :PORT; 0 = nowhere)");
  AddSwitch(
      app, "--enable-debug", options.debug_endpoint,
      "Serve /debug/jobs/NAMESPACE/NAME at the metrics address, which must be of this machine");
  AddValue(app, "--workers", options.workers, "Jobs reconciled at once");
  AddValue(app, "--log-format", flags.log_format, "Lines for people or for machines: text, json")
      ->check(CLI::IsMember({"text", "json"}));
  AddValue(app, "--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_flag("--check", flags.check,
               "Verify access to the API server, its version of the CRD, the function host and "
               "the platform; say what is missing and end");
  app.add_option("--check-store", options.check_store,
                 "With --check: an object store to try as well, e.g. s3://bucket");
  app.add_flag(
      "--prepare-uninstall", flags.prepare_uninstall,
      "Prepare the uninstallation of an operator: suspend its jobs, end it, delete what functions "
      "are left and take the jobs' finalizers off; then end");
  app.add_option("--uninstall-deployment", flags.uninstall_deployment,
                 "With --prepare-uninstall: NAMESPACE/NAME of the operator's Deployment");
  app.add_option("--uninstall-wait", flags.uninstall_wait_seconds,
                 "With --prepare-uninstall: seconds that jobs may take to quiesce")
      ->capture_default_str();
}

Status Validate(OperatorFlags& flags) {
  LDNN_ASSIGN_OR_RETURN(flags.options.backend, ParseBackend(flags.backend));
  if (!flags.prepare_uninstall) return flags.options.Validate();
  const std::string& name = flags.uninstall_deployment;
  const size_t slash = name.find('/');
  if (!name.empty() && (slash == std::string::npos || slash == 0 || slash + 1 == name.size())) {
    return InvalidArgumentError("--uninstall-deployment: \"" + name + "\" is no NAMESPACE/NAME");
  }
  if (!(flags.uninstall_wait_seconds >= 0)) {
    return InvalidArgumentError("--uninstall-wait: must be a number of seconds of at least 0");
  }
  return OkStatus();
}

}  // namespace

std::optional<OperatorFlags> ParseOperatorFlags(int argc, char** argv, int* exit_code) {
  CLI::App app{
      "Looks after ServerlessTrainingJobs: plans them, launches their functions, drives "
      "and reports them.",
      "lambdadnn-operator"};
  app.set_version_flag("--version", std::string("lambdadnn-operator ") + LAMBDADNN_VERSION);
  app.footer(
      "Example: lambdadnn host --socket /run/lambdadnn/host.sock --dir /var/lib/lambdadnn &\n"
      "         lambdadnn-operator --kubeconfig ~/.kube/config "
      "--host-socket /run/lambdadnn/host.sock");
  OperatorFlags flags;
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      *exit_code = app.exit(error);  // --help, --version
      return std::nullopt;
    }
    std::fprintf(stderr, "error: %s; lambdadnn-operator --help lists the flags\n", error.what());
    *exit_code = kExitUsage;
    return std::nullopt;
  }
  if (const Status valid = Validate(flags); !valid.ok()) {
    std::fprintf(stderr, "error: %s\n", valid.message().c_str());
    *exit_code = kExitUsage;
    return std::nullopt;
  }
  return flags;
}

}  // namespace lambdadnn
