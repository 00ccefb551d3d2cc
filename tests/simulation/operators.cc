// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/operators.h"

#include <algorithm>

#include "operator/kube/leader_election.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn::simulation {
namespace {

// Production's proportions, in less time.
constexpr double kLeaseSeconds = 6;
constexpr double kRenewSeconds = 4;
constexpr double kRetrySeconds = 0.8;
constexpr double kCallSeconds = 1.6;
// Either way.
constexpr double kMostSkewSeconds = 180;
// Waiting candidates ask that often at least.
constexpr double kMostRetrySeconds = 1.2 * kRetrySeconds;
// Attempts until a Lease that has run out is taken: one may have begun just before, one succeeds;
// of ten that faults may strike one does.
constexpr int kCalmAttempts = 2;
constexpr int kAttempts = 10;
// Requests on their way, and that the Lease is looked at now and then.
constexpr double kLateLookSeconds = 1.5;

const ObjectName kLease{"default", "lambdadnn-operator"};

// A machine whose wall clock is wrong.
class SkewedClock final : public Clock {
 public:
  SkewedClock(Clock& clock, Duration ahead) : clock_(clock), ahead_(ahead) {}
  Instant Now() override { return clock_.Now(); }
  WallTime Wall() override { return clock_.Wall() + ahead_; }
  void SleepFor(Duration duration) override { clock_.SleepFor(duration); }

 private:
  Clock& clock_;
  const Duration ahead_;
};

KubeTiming ElectionTiming(KubeTiming timing) {
  timing.call_seconds = kCallSeconds;
  return timing;
}

}  // namespace

// Lives as long as the world, like all that a process holds.
struct Operators::Replica {
  Replica(Operators& operators, Leader* of)
      : leader(of),
        clock(process().runtime().clock,
              FromSeconds(kMostSkewSeconds * (2 * process().runtime().random.Uniform() - 1))),
        runtime{clock, process().runtime().executor, process().runtime().random},
        kube(operators.in_.server, operators.in_.faults, process(),
             ElectionTiming(operators.in_.scenario.kube), "election"),
        wire(kube, runtime, process().scheduler(), {.max_attempts = 1}),
        election(operators.in_.scenario.kube_over_http ? wire.client() : kube, runtime,
                 {.lease = kLease,
                  .identity = process().name(),
                  .lease_seconds = kLeaseSeconds,
                  .renew_seconds = kRenewSeconds,
                  .retry_seconds = kRetrySeconds},
                 {.on_acquired =
                      [this, &operators](int64_t acquired) { operators.Acquired(this, acquired); },
                  // As the operator's process does.
                  .on_lost =
                      [this](const std::string& why) {
                        process().scheduler().Trace("lost the lead: " + why);
                        process().Kill();
                      },
                  .on_new_leader = nullptr}),
        able_since(operators.Now()) {}

  SimProcess& process() const { return leader->process; }
  bool Believes() const { return epoch > 0 && !ended && process().alive(); }

  Leader* const leader;
  SkewedClock clock;
  Runtime runtime;
  SimKubeClient kube;
  SimKubeWire wire;
  LeaderElection election;
  int64_t epoch = 0;   // 0 = has never led
  bool ends = false;   // was asked to
  bool ended = false;  // nothing of it acts any more
  Instant acquired_at{};
  // Neither frozen nor cut off since then.
  Instant able_since;
};

void Operators::Start() {
  if (!elects()) return StartAfter(0);
  ResourceDefinition leases;
  leases.type = LeaseType();
  in_.server.Define(std::move(leases));
  for (int i = 0; i < in_.scenario.replicas; ++i) StartAfter(0);
}

void Operators::StartAfter(double seconds) {
  in_.scheduler.At(Now() + FromSeconds(seconds), [this] { StartProcess(); });
}

void Operators::StartProcess() {
  SimProcess& process =
      in_.scheduler.NewProcess("controller-" + std::to_string(processes_.size() + 1));
  process.set_role("controller");
  processes_.push_back(&process);
  if (!elects()) said_leader_ = &process;
  process.OnKilled([this, &process] {
    if (leader_ != nullptr && &leader_->process == &process) leader_ = nullptr;
    if (!elects() && said_leader_ != &process) return;  // it has a successor
    StartAfter(0.2 + 2 * in_.scheduler.random().Uniform());
  });
  const int64_t number = started();
  // Never destroyed, like all that a process holds.
  (void)process.Spawn("main", [this, &process, number] {
    auto* leader =
        new Leader(process, in_.server, in_.platform, in_.faults, in_.bucket, in_.scenario);
    leader->jobs.Start();
    if (!elects()) return Lead(leader, number, nullptr);
    replicas_.push_back(new Replica(*this, leader));
    replicas_.back()->election.Start();
  });
}

void Operators::Lead(Leader* leader, int64_t epoch, std::function<Result<bool>()> leads_now) {
  leader->kube.ObserveStatusWrites(
      [this, epoch](const Json& before) { CheckStatusWriter(epoch, before); });
  leader_ = leader;
  leader->Lead(epoch, std::move(leads_now));
}

void Operators::CheckStatusWriter(int64_t epoch, const Json& before) {
  const int64_t lead =
      before.value(Json::json_pointer("/status/execution/leaderEpoch"), int64_t{0});
  if (lead <= epoch) return;
  in_.fail(Invariant::kStatusByLeader, "guarantee 7: leader " + std::to_string(epoch) +
                                           " wrote status after leader " + std::to_string(lead) +
                                           " had taken over");
}

void Operators::Acquired(Replica* replica, int64_t epoch) {
  in_.scheduler.Trace("leads with epoch " + std::to_string(epoch));
  if (epoch <= newest_epoch_) {
    in_.fail(Invariant::kEpochsGrow, "guarantee 7: " + replica->process().name() +
                                         " leads with epoch " + std::to_string(epoch) + " after " +
                                         std::to_string(newest_epoch_));
  }
  // Who loses a Lease that somebody deletes has to be told.
  const bool told = Now() > lease_deleted_ + FromSeconds(kRenewSeconds);
  for (const Replica* other : replicas_) {
    if (!other->Believes() || other->process().frozen()) continue;
    if (!told && other->acquired_at <= lease_deleted_) continue;
    in_.fail(Invariant::kOneLeader, "guarantee 7: " + replica->process().name() + " leads beside " +
                                        other->process().name());
  }
  newest_epoch_ = replica->epoch = epoch;
  replica->acquired_at = Now();
  Count("leader elected");
  Lead(replica->leader, epoch, [replica] { return replica->election.HoldsNow(); });
}

void Operators::Check() {
  if (!elects()) return;
  const std::shared_ptr<const Json> lease = in_.server.Peek(LeaseType(), kLease);
  const std::string version = lease == nullptr ? "" : MetadataText(*lease, "resourceVersion");
  if (version != lease_version_) {
    lease_version_ = version;
    lease_changed_ = Now();
  }
  const bool held = lease != nullptr && (*lease)["spec"]["holderIdentity"] != "";
  for (const Replica* replica : replicas_) {
    if (!replica->process().alive() || replica->ends) continue;
    const Instant since = std::max(lease_changed_, replica->able_since);
    const int attempts = since >= calm_since_ ? kCalmAttempts : kAttempts;
    if (Now() - since >
        FromSeconds((held ? kLeaseSeconds : 0) + attempts * kMostRetrySeconds + kLateLookSeconds)) {
      in_.fail(Invariant::kLeaseTaken, "guarantee 7: " + replica->process().name() +
                                           " does not take a Lease that nobody renews");
    }
    const Instant deposed = std::max(replica->able_since, lease_deleted_);
    if (replica->Believes() && replica->epoch < newest_epoch_ &&
        Now() - deposed > FromSeconds(kRenewSeconds + kLateLookSeconds)) {
      in_.fail(Invariant::kDeposedEnd,
               "guarantee 7: " + replica->process().name() + ", which was deposed, lives on");
    }
  }
}

bool Operators::settled() const {
  if (!elects()) return deposed_alive_ == 0;
  for (const Replica* replica : replicas_) {
    if (!replica->process().alive()) continue;
    if (replica->able_since > Now() || replica->ends) return false;
    if (replica->Believes() && replica->epoch != newest_epoch_) return false;
  }
  return leader_ != nullptr;
}

void Operators::Calm() { calm_since_ = std::min(calm_since_, Now()); }

void Operators::KillAll() {
  for (SimProcess* process : processes_) process->Kill();
}

void Operators::KillLeader() {
  if (leader_ == nullptr) return;
  Count("controller killed");
  leader_->process.Kill();
}

void Operators::Disturb(const Disturbance& disturbance) {
  if (disturbance.kind == DisturbanceKind::kDeleteLease) return DeleteLease();
  if (leader_ == nullptr) return;
  const Duration duration = FromSeconds(disturbance.seconds);
  if (!elects()) {
    if (disturbance.kind == DisturbanceKind::kSecondLeader) return TakeOver(duration);
    return KillLeader();
  }
  const auto leads = [this](const Replica* replica) { return replica->leader == leader_; };
  Replica& replica = **std::find_if(replicas_.begin(), replicas_.end(), leads);
  if (replica.able_since > Now()) return;
  switch (disturbance.kind) {
    case DisturbanceKind::kSecondLeader:
      Count("leader frozen");
      replica.able_since = Now() + duration;
      replica.process().Freeze(replica.able_since);
      break;
    case DisturbanceKind::kCutOffLeader:
      Count("leader cut off from the API server");
      replica.able_since = Now() + duration;
      replica.kube.Hang(replica.able_since);
      replica.leader->kube.Hang(replica.able_since);
      replica.leader->kube.FreezeWatches(replica.able_since);
      break;
    case DisturbanceKind::kStopLeader:
      Count("leader stopped");
      StopInOrder(&replica);
      break;
    default:
      KillLeader();
      break;
  }
}

// As the operator's process ends after SIGTERM.
void Operators::StopInOrder(Replica* replica) {
  if (replica->ends) return;
  replica->ends = true;
  (void)replica->process().Spawn("stop", [replica] {
    replica->leader->controller->Stop();
    replica->ended = true;
    replica->election.Stop();
    replica->process().Kill();
  });
}

void Operators::DeleteLease() {
  if (!in_.server.Delete(LeaseType(), kLease, "").ok()) return;
  Count("Lease deleted");
  lease_deleted_ = Now();
}

// A second leader begins while the first, which has not noticed, goes on for a while.
void Operators::TakeOver(Duration duration) {
  Count("second leader");
  SimProcess& old = leader_->process;
  if (in_.scheduler.random().Uniform() < 0.5) {
    Count("watches of a deposed leader frozen");
    leader_->kube.FreezeWatches(Now() + duration);
  }
  leader_ = nullptr;
  said_leader_ = nullptr;
  StartAfter(0);
  ++deposed_alive_;
  in_.scheduler.At(Now() + duration, [this, &old] {
    old.Kill();
    --deposed_alive_;
  });
}

}  // namespace lambdadnn::simulation
