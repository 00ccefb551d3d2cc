// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_view/openfaas_timeouts.h"

#include <algorithm>
#include <array>

#include "common/base/go_duration.h"
#include "common/base/text.h"
#include "common/json/json_path.h"

namespace lambdadnn {
namespace {

// The provider is beside the gateway in one pod, or in its own; "operator" is what it is called
// where it watches functions as objects.
constexpr std::array kContainers = {"gateway", "faas-netes", "operator"};
constexpr std::array kVariables = {"read_timeout", "write_timeout", "upstream_timeout"};

template <typename Names>
bool IsAmong(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void TakeTimeouts(const Json& deployment, OpenFaasTimeout* shortest) {
  const Json* containers = FindPath(deployment, {"spec", "template", "spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return;
  for (const Json& container : *containers) {
    const std::string name = TextAt(container, {"name"});
    const Json* variables = FindPath(container, {"env"});
    if (!IsAmong(kContainers, name) || variables == nullptr || !variables->is_array()) continue;
    for (const Json& each : *variables) {
      const std::string variable = TextAt(each, {"name"});
      const auto seconds = ParseGoDuration(TextAt(each, {"value"}));
      if (!IsAmong(kVariables, variable) || !seconds.has_value() || *seconds <= 0) continue;
      if (shortest->seconds > 0 && *seconds >= shortest->seconds) continue;
      *shortest = {*seconds, variable + " of OpenFaaS' container " + name};
    }
  }
}

bool IsTooShort(double seconds) { return seconds > 0 && seconds < kLeastOpenFaasTimeoutSeconds; }

std::string TooShortText(double seconds, const std::string& source) {
  return source + " is " + FormatDouble(seconds) + " s, and a request to a function takes up to " +
         FormatDouble(kLeastOpenFaasTimeoutSeconds) + " s";
}

}  // namespace lambdadnn
