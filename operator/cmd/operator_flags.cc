// SPDX-License-Identifier: Apache-2.0
#include "operator/cmd/operator_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>

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

void AddFlags(CLI::App& app, OperatorFlags& flags) {
  OperatorOptions& options = flags.options;
  AddValue(app, "--kubeconfig", options.kubeconfig,
           "Kubeconfig of the API server; without it this pod's service account, else what "
           "kubectl would use");
  AddValue(app, "--context", options.context, "Context of the kubeconfig, if not the current one");
  AddValue(app, "--namespace", options.namespace_name,
           "Look after the jobs of this namespace only");
  AddValue(app, "--backend", options.backend, "Where functions run: Local");
  AddValue(app, "--host-socket", options.host_socket,
           "Backend Local: the socket of the function host (lambdadnn host)");
  AddValue(app, "--platform", options.platform_file,
           "Prices, sizes and limits of functions (docs/formats.md); without it this machine's");
  AddValue(app, "--store-ca-file", options.store_ca_file,
           "PEM file of the authorities that the object stores' certificates are signed by");
  AddValue(app, "--workers", options.workers, "Jobs reconciled at once");
  AddValue(app, "--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
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
  if (const Status valid = flags.options.Validate(); !valid.ok()) {
    std::fprintf(stderr, "error: %s\n", valid.message().c_str());
    *exit_code = kExitUsage;
    return std::nullopt;
  }
  return flags;
}

}  // namespace lambdadnn
