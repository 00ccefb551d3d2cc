// SPDX-License-Identifier: Apache-2.0
#include "operator/server/operator_options.h"

#include <unistd.h>

#include "common/base/endpoint.h"
#include "common/base/text.h"
#include "operator/controller/admission/tenant_rules.h"
#include "operator/server/backend_factory.h"

namespace lambdadnn {
namespace {

constexpr int kMaxWorkers = 64;
constexpr double kMinQps = 0.1;
constexpr double kMaxQps = 10000;
constexpr int kMaxBurst = 10000;
constexpr long long kMaxPort = 65535;

Status CheckAddress(const char* flag, const std::string& text) {
  if (text.empty() || text == "0") return OkStatus();
  return ParseListenAddress(flag, text).status();
}

}  // namespace

Result<ListenAddress> ParseListenAddress(const std::string& flag, const std::string& text) {
  const std::optional<HostAndPort> parts = SplitHostAndPort(text);
  const auto port = parts && parts->port ? ParseInteger(*parts->port) : std::nullopt;
  if (!port || *port < 0 || *port > kMaxPort) {
    return InvalidArgumentError(flag + ": \"" + text +
                                "\" is no address; write HOST:PORT or :PORT, or 0 for none");
  }
  return ListenAddress{parts->host.empty() ? "0.0.0.0" : parts->host, static_cast<int>(*port)};
}

Result<NamespaceWeights> ParseNamespaceWeights(const std::vector<std::string>& entries) {
  constexpr double kMostWeight = 1000;
  NamespaceWeights weights;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    const auto weight = equals == std::string::npos || equals == 0
                            ? std::nullopt
                            : ParseDouble(entry.substr(equals + 1));
    if (!weight.has_value() || !(*weight > 0 && *weight <= kMostWeight)) {
      return InvalidArgumentError("--namespace-weights: '" + entry +
                                  "' is not NAMESPACE=WEIGHT with a weight above 0 and up to 1000");
    }
    weights[entry.substr(0, equals)] = *weight;
  }
  return weights;
}

Status OperatorOptions::Validate() const {
  LDNN_RETURN_IF_ERROR(CheckBackendFlags(*this));
  for (const std::string& name : image_pull_secrets) {
    if (name.empty()) return InvalidArgumentError("--image-pull-secrets: holds an empty name");
  }
  for (const std::string& name : namespaces) {
    if (name.empty()) {
      return InvalidArgumentError("--namespaces: holds an empty name; leave the flag away for all");
    }
  }
  LDNN_RETURN_IF_ERROR(ParseNamespaceWeights(namespace_weights).status());
  if (kube_api_qps != 0 && !(kube_api_qps >= kMinQps && kube_api_qps <= kMaxQps)) {
    return InvalidArgumentError("--kube-api-qps: must be 0 (no limit) or from 0.1 to 10000");
  }
  if (kube_api_burst < 1 || kube_api_burst > kMaxBurst) {
    return InvalidArgumentError("--kube-api-burst: must be from 1 to " + std::to_string(kMaxBurst));
  }
  if (!store.empty()) {
    LDNN_RETURN_IF_ERROR(CheckPlace(store).WithContext("--store"));
  }
  for (const std::string& folder : readable) {
    LDNN_RETURN_IF_ERROR(CheckPlace(folder).WithContext("--readable"));
  }
  if (!module_checker.empty() && ::access(module_checker.c_str(), X_OK) != 0) {
    return InvalidArgumentError("--module-checker: \"" + module_checker +
                                "\" is no program; name lambdadnn-worker (the image operator-torch "
                                "has it as /usr/bin/lambdadnn-worker)");
  }
  if (workers < 1 || workers > kMaxWorkers) {
    return InvalidArgumentError("--workers: must be from 1 to " + std::to_string(kMaxWorkers));
  }
  LDNN_RETURN_IF_ERROR(CheckAddress("--metrics-address", metrics_address));
  if (debug_endpoint) {
    LDNN_ASSIGN_OR_RETURN(const ListenAddress listen,
                          ParseListenAddress("--metrics-address", metrics_address));
    if (listen.host != "127.0.0.1" && listen.host != "::1" && listen.host != "localhost") {
      return InvalidArgumentError(
          "--enable-debug: shows jobs without authentication; set --metrics-address to "
          "127.0.0.1:PORT");
    }
  }
  return CheckAddress("--health-address", health_address);
}

}  // namespace lambdadnn
