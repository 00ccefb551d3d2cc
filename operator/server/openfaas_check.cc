// SPDX-License-Identifier: Apache-2.0
#include "operator/server/openfaas_check.h"

#include <algorithm>

#include "common/base/text.h"
#include "operator/cluster_view/openfaas_timeouts.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

using Level = CheckFinding::Level;

constexpr const char* kSubject = "OpenFaaS";

}  // namespace

std::vector<CheckFinding> CheckFunctionBound(int most, int of_users) {
  if (most == 0) return {};
  return {{Level::kWarning, kSubject,
           "the gateway holds at most " + std::to_string(most) + " functions, " +
               std::to_string(of_users) +
               " of them of other users: plans have no more than the rest, all jobs together"}};
}

CheckFinding CheckTimeouts(const ClusterLimits& limits) {
  const double seconds = limits.request_timeout_seconds;
  if (IsTooShort(seconds)) {
    return {Level::kMissing, kSubject,
            TooShortText(seconds, limits.request_timeout_source) + "; " + kTimeoutRemedy};
  }
  if (seconds > 0) {
    return {Level::kGood, kSubject,
            "requests may take " + FormatDouble(seconds) + " s (" + limits.request_timeout_source +
                ")"};
  }
  return {Level::kWarning, kSubject,
          "the time-outs of gateway and provider are not known: they have to be 5 s or more "
          "(docs/operations.md, OpenFaaS)"};
}

std::vector<CheckFinding> CheckGateway(OpenFaasGateway& gateway, int max_functions) {
  const Result<OpenFaasEdition> edition = gateway.Info();
  if (!edition.ok()) return {{Level::kMissing, kSubject, edition.status().message()}};
  std::vector<CheckFinding> findings = {
      {Level::kGood, kSubject,
       edition->Text() + " answers at " + gateway.options().endpoint.Text()}};
  // Credentials are for this; gateways may tell of themselves without.
  const auto functions = gateway.Functions();
  if (!functions.ok()) {
    findings.push_back({Level::kMissing, kSubject, functions.status().message()});
    return findings;
  }
  const int most = max_functions > 0 ? max_functions : edition->max_functions;
  const auto of_users = std::count_if(
      functions->begin(), functions->end(),
      [](const DeployedFunction& each) { return !each.labels.contains(kJobUidLabel); });
  for (CheckFinding& bound : CheckFunctionBound(most, static_cast<int>(of_users))) {
    findings.push_back(std::move(bound));
  }
  findings.push_back(
      {Level::kWarning, kSubject,
       "functions of all jobs share the namespace " + gateway.options().function_namespace +
           ", without network policies and accounts of their own, and are reached in plain text: "
           "have a mesh or a policy of yours bound and encrypt it where users do not trust one "
           "another"});
  return findings;
}

}  // namespace lambdadnn
