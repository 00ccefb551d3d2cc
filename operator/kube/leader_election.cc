// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/leader_election.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/text.h"
#include "operator/kube/micro_time.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

// Waiting processes do not ask in step.
constexpr double kJitter = 0.2;

// A field of spec; null where the lease, or the field, is not there.
Json FieldOf(const Json& lease, const char* field) {
  const auto spec = lease.find("spec");  // of what is no object, there is none
  if (spec == lease.end()) return nullptr;
  const auto value = spec->find(field);
  return value == spec->end() ? Json() : *value;
}

std::string TextOf(const Json& lease, const char* field) {
  const Json value = FieldOf(lease, field);
  return value.is_string() ? value.get<std::string>() : "";
}

// The API has int32 fields that are not negative; a lease may hold anything until it is validated.
int64_t NumberOf(const Json& lease, const char* field) {
  const Json value = FieldOf(lease, field);
  if (!value.is_number_integer()) return 0;
  return std::clamp<int64_t>(value.get<int64_t>(), 0, std::numeric_limits<int32_t>::max() - 1);
}

// 0 = not one that can be compared.
int64_t EpochOf(const Json& lease) {
  return ParseInteger(MetadataText(lease, "resourceVersion")).value_or(0);
}

std::string HolderOf(const Json& lease) { return TextOf(lease, "holderIdentity"); }

}  // namespace

const ResourceType& LeaseType() {
  static const ResourceType kType{"coordination.k8s.io", "v1", "leases", "Lease"};
  return kType;
}

Status LeaderElectionOptions::Validate() const {
  if (retry_seconds > 0 && retry_seconds < renew_seconds && renew_seconds < lease_seconds) {
    return OkStatus();
  }
  return InvalidArgumentError("leader election needs 0 < retry < renew < lease, not " +
                              FormatDouble(retry_seconds) + ", " + FormatDouble(renew_seconds) +
                              ", " + FormatDouble(lease_seconds) + " seconds");
}

LeaderElection::LeaderElection(KubeClient& client, Runtime& runtime, LeaderElectionOptions options,
                               Callbacks callbacks)
    : client_(client),
      runtime_(runtime),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      monitor_(runtime.executor.NewMonitor()) {
  LDNN_CHECK(options_.Validate().ok(), "leader election options were not validated");
}

LeaderElection::~LeaderElection() { Stop(); }

void LeaderElection::Start() {
  task_ = runtime_.executor.Spawn("leader-election", [this] { Run(); });
}

void LeaderElection::Stop() {
  {
    const MonitorLock lock(*monitor_);
    stopping_ = true;
    monitor_->NotifyAll();
  }
  if (task_ != nullptr) task_->Join();
}

bool LeaderElection::is_leader() const {
  const MonitorLock lock(*monitor_);
  return is_leader_;
}

Result<bool> LeaderElection::HoldsNow() {
  const Result<Json> lease = client_.Get(LeaseType(), options_.lease);
  if (lease.status().code() == StatusCode::kNotFound) return false;
  if (!lease.ok()) return lease.status().WithContext("cannot read the lease");
  return HolderOf(*lease) == options_.identity;
}

bool LeaderElection::Sleep(double seconds) {
  const Instant until = runtime_.clock.Now() + FromSeconds(seconds);
  const MonitorLock lock(*monitor_);
  while (!stopping_ && runtime_.clock.Now() < until) monitor_->WaitUntil(until);
  return !stopping_;
}

void LeaderElection::Run() {
  std::string why;
  while (TryOnce(&why) != Attempt::kHeld) {
    if (!Sleep(options_.retry_seconds * (1 + kJitter * runtime_.random.Uniform()))) return;
  }
  {
    const MonitorLock lock(*monitor_);
    is_leader_ = true;
  }
  callbacks_.on_acquired(EpochOf(observed_));
  const auto deadline = runtime_.executor.Spawn("lead-deadline", [this] { WatchDeadline(); });
  while (Sleep(options_.retry_seconds)) {
    const Attempt attempt = TryOnce(&why);
    if (attempt == Attempt::kOther) return Lose("another process took the lease: " + why);
    const MonitorLock lock(*monitor_);
    if (!is_leader_) return;
    problem_ = attempt == Attempt::kHeld ? "" : why;
  }
  if (is_leader()) GiveBack();
}

void LeaderElection::WatchDeadline() {
  std::string why;
  {
    const MonitorLock lock(*monitor_);
    while (is_leader_ && !stopping_) {
      const Instant end = renewed_ + FromSeconds(options_.renew_seconds);
      if (runtime_.clock.Now() >= end) break;
      monitor_->WaitUntil(end);
    }
    if (stopping_) return;
    why = problem_.empty() ? "no answer was heard" : problem_;
  }
  Lose("the lease could not be renewed in time: " + why);
}

void LeaderElection::Lose(const std::string& why) {
  {
    const MonitorLock lock(*monitor_);
    if (!is_leader_) return;
    is_leader_ = false;
    monitor_->NotifyAll();
  }
  callbacks_.on_lost(why);
}

void LeaderElection::Observe(const Json& lease) {
  if (observed_.is_null() ||
      MetadataText(observed_, "resourceVersion") != MetadataText(lease, "resourceVersion")) {
    observed_ = lease;
    observed_at_ = runtime_.clock.Now();
  }
  const std::string holder = HolderOf(lease);
  if (holder.empty() || holder == options_.identity || holder == told_leader_) return;
  told_leader_ = holder;
  if (callbacks_.on_new_leader) callbacks_.on_new_leader(holder);
}

bool LeaderElection::SeenExpired() const {
  // The holder's own duration counts: it may have been configured otherwise.
  const int64_t seconds = NumberOf(observed_, "leaseDurationSeconds");
  return runtime_.clock.Now() - observed_at_ > std::chrono::seconds(seconds);
}

Json LeaderElection::OurLease(const Json& current) const {
  const std::string now = FormatMicroTime(runtime_.clock.Wall());
  const bool renewal = HolderOf(current) == options_.identity;
  Json lease = current;
  if (lease.is_null()) {
    lease = {{"apiVersion", "coordination.k8s.io/v1"},
             {"kind", "Lease"},
             {"metadata",
              {{"name", options_.lease.name}, {"namespace", options_.lease.namespace_name}}}};
  }
  lease["spec"] = {
      {"holderIdentity", options_.identity},
      {"leaseDurationSeconds", static_cast<int64_t>(std::ceil(options_.lease_seconds))},
      {"acquireTime", renewal ? TextOf(current, "acquireTime") : now},
      {"renewTime", now},
      {"leaseTransitions",
       NumberOf(current, "leaseTransitions") + (renewal || current.is_null() ? 0 : 1)}};
  return lease;
}

LeaderElection::Attempt LeaderElection::Write(const Json& lease, bool exists, std::string* why) {
  const Instant begin = runtime_.clock.Now();
  const Result<Json> written = exists ? client_.Update(LeaseType(), lease, Subresource::kNone)
                                      : client_.Create(LeaseType(), lease);
  if (!written.ok()) {
    *why = written.status().message();
    return Attempt::kFailed;
  }
  if (EpochOf(*written) < 1) {
    *why = "the server answers with a Lease that has no number as its resourceVersion";
    return Attempt::kFailed;
  }
  Observe(*written);
  const MonitorLock lock(*monitor_);
  renewed_ = begin;
  return Attempt::kHeld;
}

LeaderElection::Attempt LeaderElection::TryOnce(std::string* why) {
  // A leader writes without reading first: the resourceVersion shows whether another process wrote
  // in between.
  if (HolderOf(observed_) == options_.identity &&
      Write(OurLease(observed_), true, why) == Attempt::kHeld) {
    return Attempt::kHeld;
  }
  const Result<Json> current = client_.Get(LeaseType(), options_.lease);
  if (!current.ok()) {
    *why = current.status().message();
    if (current.status().code() != StatusCode::kNotFound) return Attempt::kFailed;
    // Deleted under a leader: creating it again would be another acquisition.
    return is_leader() ? Attempt::kOther : Write(OurLease(nullptr), false, why);
  }
  if (!current->is_object()) {
    *why = "what the server has in its place is no Lease";
    return Attempt::kFailed;
  }
  Observe(*current);
  const std::string holder = HolderOf(*current);
  if (holder == options_.identity || holder.empty() || SeenExpired()) {
    if (is_leader() && holder != options_.identity) {
      *why = "its holder is now '" + holder + "'";
      return Attempt::kOther;
    }
    return Write(OurLease(*current), true, why);
  }
  *why = "its holder is " + holder;
  return Attempt::kOther;
}

void LeaderElection::GiveBack() {
  Json lease = OurLease(observed_);
  lease["spec"]["holderIdentity"] = "";
  lease["spec"]["leaseDurationSeconds"] = 1;
  // Best effort: otherwise the next leader waits for the lease's time.
  (void)client_.Update(LeaseType(), lease, Subresource::kNone);
  const MonitorLock lock(*monitor_);
  is_leader_ = false;
}

}  // namespace lambdadnn
