// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/fingerprint_check.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// An answer takes milliseconds. Where a question was lost it is asked again after this.
constexpr Duration kAskAgain = std::chrono::seconds(1);

NumericsFingerprint PinOf(const Plan& plan) { return {plan.isa, plan.libtorch}; }

bool IsPinned(const Plan& plan) { return !plan.isa.empty() && !plan.libtorch.empty(); }

bool Differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

void Question(const JobSnapshot& snapshot, const InstanceFact& worker, FingerprintCheck* check) {
  const std::string& uid = worker.instance.uid;
  const Duration patience = FromSeconds(snapshot.options->ready_silence_seconds);
  const auto asked = snapshot.memo->fingerprints_asked.find(uid);
  if (asked == snapshot.memo->fingerprints_asked.end()) {
    check->questions.push_back(AskFingerprint{uid});
    return;
  }
  const Duration since = snapshot.now - asked->second.last;
  if (since < patience && snapshot.now - asked->second.first >= patience) {
    std::string why = worker.instance.Name() + " does not say what it computes with";
    if (!worker.unreachable.ok()) why += ": " + worker.unreachable.message();
    check->questions.push_back(DeleteFunction{uid, std::move(why), Reason::kFunctionSilent});
  } else if (since >= std::min(kAskAgain, patience)) {
    check->questions.push_back(AskFingerprint{uid});
  }
}

// Compares with what the plan pins, else with the first worker that told its own.
void Compare(const JobSnapshot& snapshot, const Role& role, const NumericsFingerprint& said,
             FingerprintCheck* check) {
  Plan& pinned = check->pinned;
  if (!Differ(said.isa, pinned.isa) && !Differ(said.libtorch, pinned.libtorch)) {
    if (pinned.isa.empty()) pinned.isa = said.isa;
    if (pinned.libtorch.empty()) pinned.libtorch = said.libtorch;
    return;
  }
  if (!check->difference.empty()) return;
  const bool by_plan = PinOf(*snapshot.job.status.plan) == PinOf(pinned);
  check->difference = role.Name() + " computes with " + DescribeFingerprint(said) + ", " +
                      (by_plan ? "and the plan is pinned to " : "and others with ") +
                      DescribeFingerprint(PinOf(pinned));
}

}  // namespace

FingerprintCheck CheckFingerprints(const JobSnapshot& snapshot,
                                   const std::vector<BoundFunction>& bound) {
  const Plan& plan = *snapshot.job.status.plan;
  std::set<std::string_view> asked_before;
  for (const BoundFunction& function : snapshot.job.status.execution.functions) {
    if (IsPinned(plan)) asked_before.insert(function.uid);
  }
  const std::vector<Role> roles = PlannedRoles(plan);
  FingerprintCheck check;
  check.pinned = plan;
  check.answered = true;
  for (size_t i = 0; i < bound.size(); ++i) {
    if (roles[i].kind != RoleKind::kWorker) continue;
    const InstanceFact& worker = snapshot.observations->instances.at(bound[i].uid);
    if (worker.fingerprint.has_value()) {
      Compare(snapshot, roles[i], *worker.fingerprint, &check);
      continue;
    }
    if (asked_before.contains(bound[i].uid)) continue;
    check.answered = false;
    Question(snapshot, worker, &check);
  }
  return check;
}

}  // namespace lambdadnn
