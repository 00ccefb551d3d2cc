// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/peers_condition.h"

#include "operator/api/peer_channel.h"
#include "operator/controller/observe/observations.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

constexpr const char* kStoreInstead =
    "; readers ask the store again and again instead, which costs requests and time";

// Of the slices that run, as they last told.
struct Reach {
  int told = 0;     // functions that have told
  int lacking = 0;  // of these, those that do not reach all
  int64_t peers = 0;
  int hidden = 0;  // functions that nobody was told how to connect to
};

Reach ReachOf(const Observations& observed) {
  Reach reach;
  for (const auto& [invocation, slice] : observed.slices) {
    if (!MayRun(slice, observed)) continue;
    const auto bound = observed.instances.find(slice.instance_uid);
    if (bound != observed.instances.end() && bound->second.instance.peer_address.empty()) {
      ++reach.hidden;
    }
    if (!slice.last.has_value() || !slice.last->unreached_peers.has_value()) continue;
    ++reach.told;
    if (*slice.last->unreached_peers > 0) ++reach.lacking;
    reach.peers += *slice.last->unreached_peers;
  }
  return reach;
}

Condition Off(const std::string& why) {
  return MakeCondition(kConditionPeersConnected, false, Reason::kPeerChannelOff,
                       why + kStoreInstead);
}

}  // namespace

std::optional<Condition> PeersConditionOf(const JobSnapshot& snapshot, const JobStatus& status) {
  const JobSpec& spec = snapshot.job.spec;
  if (!status.plan.has_value() || status.phase != "Running") return std::nullopt;
  if (!ConnectsFunctions(spec)) return Off(WhyUnconnected(spec));
  const Reach reach = ReachOf(*snapshot.observations);
  if (reach.hidden > 0) {
    return Off("functions whose address is not known: " + std::to_string(reach.hidden) +
               " (the operator may not read their pods, or they were made by an earlier one)");
  }
  if (reach.lacking > 0) {
    return MakeCondition(kConditionPeersConnected, false, Reason::kPeersUnreachable,
                         std::to_string(reach.lacking) + " of " + std::to_string(reach.told) +
                             " functions do not reach " + std::to_string(reach.peers) +
                             " others at port " + std::to_string(kPeerPort) +
                             " of their pods; let pods of the job reach each other there" +
                             kStoreInstead);
  }
  const bool was_lacking = FindCondition(status.conditions, kConditionPeersConnected) != nullptr;
  if (reach.told == 0 || !was_lacking) return std::nullopt;
  return MakeCondition(kConditionPeersConnected, true, Reason::kPeersConnected,
                       "functions reach each other");
}

}  // namespace lambdadnn
