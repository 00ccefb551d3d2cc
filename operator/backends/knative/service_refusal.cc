// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/service_refusal.h"

#include <string_view>
#include <vector>

#include "common/base/text.h"
#include "common/json/json_path.h"
#include "operator/cluster_view/node_capacity.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

constexpr const char* kExceeded = "exceeded quota: ";

// "a=1,b=2" up to the next part of the sentence, as a list of resources.
Json AmountsAfter(const std::string& message, const char* word) {
  Json amounts = Json::object();
  const size_t begin = message.find(word);
  if (begin == std::string::npos) return amounts;
  const size_t from = begin + std::string_view(word).size();
  const size_t end = message.find(", ", from);
  std::string_view text = std::string_view(message).substr(from, end - from);
  if (text.ends_with('.')) text.remove_suffix(1);
  for (const std::string& part : Split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals != std::string::npos) amounts[part.substr(0, equals)] = part.substr(equals + 1);
  }
  return amounts;
}

std::string Shown(const std::string& resource, double amount) {
  const std::string number = FormatDouble(amount);
  if (resource.ends_with("memory")) return number + " MiB";
  return resource.ends_with("cpu") ? number + " mCPU" : number;
}

}  // namespace

std::string ExplainQuota(const std::string& message) {
  const size_t begin = message.find(kExceeded);
  if (begin == std::string::npos) return message;
  const size_t name = begin + std::string_view(kExceeded).size();
  const std::string quota = message.substr(name, message.find(',', name) - name);
  const Json requested = AmountsAfter(message, "requested: ");
  const Json used = AmountsAfter(message, "used: ");
  const Json limited = AmountsAfter(message, "limited: ");
  std::string text;
  for (const auto& [resource, amount] : requested.items()) {
    if (!used.contains(resource) || !limited.contains(resource)) continue;
    std::vector<std::string> unknown;
    const auto read = [&, name = resource](const Json& amounts) {
      return ReadAmount(&amounts, name, "a quota", &unknown);
    };
    const double missing = read(used) + read(requested) - read(limited);
    if (!unknown.empty() || missing <= 0) continue;
    text += (text.empty() ? "" : ", ") + Shown(resource, missing) + " of " + resource +
            " are missing for the next function (" + limited[resource].get<std::string>() +
            " in all, " + used[resource].get<std::string>() + " used, " +
            amount.get<std::string>() + " needed)";
  }
  if (text.empty()) return message;
  return "exceeded quota: of ResourceQuota " + quota + " " + text;
}

Status RefusalOfPods(const Json& service) {
  const Json* conditions = FindPath(service, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return OkStatus();
  for (const Json& condition : *conditions) {
    const std::string message = TextField(condition, "message");
    const bool refused = TextField(condition, "status") == "False" &&
                         message.find("pods ") != std::string::npos &&
                         message.find("is forbidden") != std::string::npos;
    if (!refused) continue;
    if (message.find("quota") == std::string::npos) {
      return FailedPreconditionError("the API server refuses pods of functions: " + message);
    }
    return ResourceExhaustedError(ExplainQuota(message));
  }
  return OkStatus();
}

}  // namespace lambdadnn
