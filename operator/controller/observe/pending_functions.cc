// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/pending_functions.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace lambdadnn {
namespace {

struct Kind {
  Reason reason;
  const char* what;  // functions …
  const char* next;
};

// New addresses and network policies take a moment to be known everywhere.
constexpr Duration kSettling = std::chrono::seconds(5);

constexpr Kind kImage = {Reason::kImagePullFailed, "cannot get their image",
                         "check the images in spec.podTemplate (the operator's --worker-image and "
                         "--server-image without them) "
                         "and their imagePullSecrets, or load the image into the nodes"};
constexpr Kind kNode = {Reason::kUnschedulable, "fit on no node",
                        "wait until others end, add nodes, or lower the memory of spec.functions"};
constexpr Kind kContainer = {Reason::kFunctionNotCreated, "cannot be created",
                             "mend what the message names; it is tried again"};

// Of FunctionInstance::reason.
const Kind* KindOf(std::string_view reason) {
  static const std::map<std::string_view, const Kind*> kinds = {
      {"ErrImagePull", &kImage},
      {"ImagePullBackOff", &kImage},
      {"InvalidImageName", &kImage},
      {"ErrImageNeverPull", &kImage},
      {"RegistryUnavailable", &kImage},
      {"Unschedulable", &kNode},
      {"CreateContainerConfigError", &kContainer},
      {"CreateContainerError", &kContainer},
      {"RunContainerError", &kContainer},
  };
  const auto found = kinds.find(reason);
  return found == kinds.end() ? nullptr : found->second;
}

}  // namespace

std::optional<PendingObstacle> FindPendingObstacle(const Observations& observed,
                                                   const std::set<std::string>& groups) {
  std::map<const Kind*, std::multiset<std::string>> words;
  for (const auto& [uid, fact] : observed.instances) {
    const FunctionInstance& instance = fact.instance;
    if (instance.phase != FunctionPhase::kPending || !groups.contains(instance.group)) continue;
    const Kind* const kind = KindOf(instance.reason);
    if (kind != nullptr) words[kind].insert(instance.Why());
  }
  if (words.empty()) return std::nullopt;
  const auto most = std::max_element(words.begin(), words.end(), [](const auto& a, const auto& b) {
    if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
    return std::string_view(ReasonText(a.first->reason)) > ReasonText(b.first->reason);
  });
  const auto& [kind, said] = *most;
  return PendingObstacle{kind->reason, std::to_string(said.size()) + " functions " + kind->what +
                                           " (" + *said.begin() + "); " + kind->next};
}

std::optional<PendingObstacle> FindUnreachable(const Observations& observed,
                                               const std::set<std::string>& groups, Instant now) {
  const InstanceFact* worst = nullptr;
  for (const auto& [uid, fact] : observed.instances) {
    const FunctionInstance& instance = fact.instance;
    if (instance.phase != FunctionPhase::kReady || !groups.contains(instance.group)) continue;
    if (fact.unreachable.ok()) continue;
    if (!fact.ShowsAnotherCertificate() && now - fact.unreachable_since < kSettling) continue;
    const auto rank = [](const InstanceFact& of) {
      return std::pair(!of.ShowsAnotherCertificate(), of.unreachable_since);
    };
    if (worst == nullptr || rank(fact) < rank(*worst)) worst = &fact;
  }
  if (worst == nullptr) return std::nullopt;
  const char* const next =
      worst->ShowsAnotherCertificate()
          ? "; it is replaced; if its successor is not reached either, look who answers at the "
            "addresses of pods, or delete the job and create it again"
          : "; it is replaced if that lasts; look whether the network and its policies let the "
            "operator connect to the function's pod";
  return PendingObstacle{Reason::kFunctionUnreachable,
                         "function " + worst->instance.Name() +
                             " cannot be reached: " + worst->unreachable.message() + next};
}

}  // namespace lambdadnn
