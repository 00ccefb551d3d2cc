// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/admission_queue.h"

#include <algorithm>

#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/api/pause.h"
#include "operator/api/status_codec.h"

namespace lambdadnn {
namespace {

// How often the backend is asked for its capacity.
constexpr Duration kCapacityAge = std::chrono::seconds(10);
// A new job blocks younger ones until it is known whether it has to wait, at most for this long:
// its store may not answer for hours.
constexpr Duration kUndecided = std::chrono::seconds(10);
// A new job behind undecided ones is shown as waiting only when none of those was decided for this
// long. So when many jobs are created at once, the status of each is written once.
constexpr Duration kMoment = std::chrono::seconds(2);

// Waiting jobs that are woken when capacity is freed; each that starts wakes the next ones.
constexpr size_t kWokenAtOnce = 16;

double Smaller(double a, double b) {
  if (a <= 0) return b;
  return b <= 0 ? a : std::min(a, b);
}

}  // namespace

AdmissionQueue::AdmissionQueue(Runtime& runtime, FunctionBackend& backend,
                               const ControllerOptions& options, const ObjectCache& cache,
                               std::function<bool()> synced)
    : runtime_(runtime),
      backend_(backend),
      options_(options),
      cache_(cache),
      synced_(std::move(synced)) {}

void AdmissionQueue::AskCapacity() {
  const Instant now = runtime_.clock.Now();
  {
    const std::lock_guard lock(mutex_);
    if (capacity_known_ && now - capacity_asked_ < kCapacityAge) return;
  }
  const Result<FunctionCapacity> answer = backend_.Capacity();
  const std::lock_guard lock(mutex_);
  capacity_asked_ = now;
  if (!answer.ok()) return;  // what it said last holds
  const Reservation capacity{
      Smaller(options_.capacity.memory_mib, static_cast<double>(answer->memory_mib)),
      options_.capacity.milli_cpu};
  changed_ = changed_ || capacity != capacity_;
  capacity_ = capacity;
  capacity_known_ = true;
}

void AdmissionQueue::Read(Entry* entry) {
  std::vector<FieldError> errors;
  Job job = DecodeJob(*entry->source, &errors);
  const JobProblems problems = SortProblems(errors);
  std::optional<Plan>& plan = job.status.plan;
  if (!errors.empty() && plan.has_value() && !plan->Validate().ok()) plan.reset();
  const Entry before = *entry;
  const bool counts = problems.spec.empty() && IsOurs(job, options_) && !IsFinished(job);
  if (job.metadata.uid != entry->uid) entry->first_seen = runtime_.clock.Now();
  entry->uid = job.metadata.uid;
  entry->created = job.metadata.creation_timestamp;
  entry->started = counts && !job.status.start_time.empty();
  const bool left_alone = IsPaused(job) || !problems.remembered.empty();
  const bool may_start = counts && !entry->started && !job.spec.suspend && !IsEnding(job) &&
                         job.metadata.deletion_timestamp.empty() && !left_alone;
  const Condition* accepted = FindCondition(job, kConditionAccepted);
  const bool usable = accepted != nullptr && accepted->status == "True";
  const bool needs_profile = !job.spec.profile.has_value() && !job.status.profile.has_value();
  entry->waits = may_start && usable && (job.status.plan.has_value() || needs_profile);
  entry->undecided = may_start && !entry->waits && (accepted == nullptr || usable);
  entry->reservation =
      entry->started || entry->waits ? ReservationOf(job, options_.platform) : Reservation{};
  changed_ = changed_ || before.started != entry->started || before.waits != entry->waits ||
             before.undecided != entry->undecided || before.reservation != entry->reservation ||
             before.uid != entry->uid;
}

void AdmissionQueue::Sync() {
  if (const auto changes = cache_.ChangesSince(&seen_); changes.has_value()) {
    for (const ObjectName& name : *changes) SyncOne(name);
    return;
  }
  std::vector<ObjectName> names = cache_.Names();
  for (const auto& [name, entry] : entries_) names.push_back(name);
  for (const ObjectName& name : names) SyncOne(name);
}

void AdmissionQueue::SyncOne(const ObjectName& name) {
  const std::shared_ptr<const Json> object = cache_.Get(name);
  if (object != nullptr) {
    Entry& entry = entries_[name];
    if (entry.source == object) return;
    entry.source = object;
    Read(&entry);
  } else if (entries_.erase(name) > 0) {
    changed_ = true;
    reserved_.erase(name);
    backs_off_.erase(name);
  }
}

bool AdmissionQueue::Before(const ObjectName& a, const ObjectName& b) const {
  const auto of_a = entries_.find(a);
  const auto of_b = entries_.find(b);
  const std::string none;
  const std::string& created_a = of_a == entries_.end() ? none : of_a->second.created;
  const std::string& created_b = of_b == entries_.end() ? none : of_b->second.created;
  return created_a != created_b ? created_a < created_b : a < b;
}

bool AdmissionQueue::Waits(const ObjectName& name, const Entry& entry) const {
  const Instant now = runtime_.clock.Now();
  if (entry.undecided) return now - entry.first_seen < kUndecided;
  if (!entry.waits || !FitsWithin(entry.reservation, capacity_)) return false;
  const auto back = backs_off_.find(name);
  return back == backs_off_.end() || now >= back->second;
}

QueueView AdmissionQueue::ViewLocked(const ObjectName& name) {
  QueueView view;
  view.capacity = capacity_;
  view.limited = capacity_ != Reservation{};
  if (!view.limited) return view;
  Sync();
  view.known = capacity_known_ && (synced_ == nullptr || synced_());
  const ObjectName* first = nullptr;
  for (const auto& [other, entry] : entries_) {
    if (other == name) continue;
    const auto reserved = reserved_.find(other);
    if (reserved != reserved_.end()) {
      view.taken = view.taken + reserved->second;
    } else if (entry.started) {
      view.taken = view.taken + entry.reservation;
    } else if (Waits(other, entry) && Before(other, name)) {
      ++view.ahead;
      if (entry.undecided) ++view.undecided;
      view.before = view.before + entry.reservation;  // none, of the undecided
      if (first == nullptr || Before(other, *first)) first = &other;
    }
  }
  if (first != nullptr && first->namespace_name == name.namespace_name) view.first = first->name;
  view.unsettled = view.undecided > 0 && FitsWithin(view.taken + view.before, view.capacity) &&
                   IsUnsettled(name, view.undecided);
  return view;
}

bool AdmissionQueue::IsUnsettled(const ObjectName& name, int undecided) {
  const auto own = entries_.find(name);
  if (own == entries_.end() || !own->second.undecided) return false;
  const Instant now = runtime_.clock.Now();
  Entry& entry = own->second;
  if (!entry.unsettled_since.has_value() || undecided < entry.fewest_undecided) {
    entry.unsettled_since = now;
    entry.fewest_undecided = undecided;
  }
  return now - *entry.unsettled_since < kMoment;
}

QueueView AdmissionQueue::View(const ObjectName& name) {
  AskCapacity();
  const std::lock_guard lock(mutex_);
  if (!capacity_known_) {
    QueueView unknown;
    unknown.limited = true;
    unknown.known = false;
    return unknown;
  }
  return ViewLocked(name);
}

bool AdmissionQueue::Reserve(const ObjectName& name, const Reservation& reservation) {
  const std::lock_guard lock(mutex_);
  const QueueView view = ViewLocked(name);
  const auto own = entries_.find(name);
  // A job that needs no more than it holds takes nothing from others.
  const bool shrinks = own != entries_.end() && own->second.started &&
                       reservation.memory_mib <= own->second.reservation.memory_mib &&
                       reservation.milli_cpu <= own->second.reservation.milli_cpu;
  if (!shrinks && !HasCapacity(view, reservation)) return false;
  backs_off_.erase(name);
  if (view.limited) reserved_[name] = reservation;
  return true;
}

void AdmissionQueue::Settle(const ObjectName& name) {
  const std::lock_guard lock(mutex_);
  if (reserved_.erase(name) > 0) changed_ = true;
}

void AdmissionQueue::BackOff(const ObjectName& name, Instant until) {
  const std::lock_guard lock(mutex_);
  if (capacity_ == Reservation{}) return;
  backs_off_[name] = until;
  changed_ = true;
}

std::vector<ObjectName> AdmissionQueue::NextAfterChange() {
  const std::lock_guard lock(mutex_);
  if (capacity_ == Reservation{}) return {};
  Sync();
  if (!changed_) return {};
  changed_ = false;
  Reservation taken;
  std::vector<ObjectName> waiting;
  for (const auto& [name, entry] : entries_) {
    const auto reserved = reserved_.find(name);
    if (reserved != reserved_.end()) {
      taken = taken + reserved->second;
    } else if (entry.started) {
      taken = taken + entry.reservation;
    } else if (Waits(name, entry)) {
      waiting.push_back(name);
    }
  }
  std::sort(waiting.begin(), waiting.end(),
            [this](const ObjectName& a, const ObjectName& b) { return Before(a, b); });
  // Up to the first job without capacity, or whose needs are not known yet.
  const auto stays = [&](const ObjectName& name) {
    const Entry& entry = entries_.at(name);
    taken = taken + entry.reservation;
    return entry.undecided || !FitsWithin(taken, capacity_);
  };
  const size_t most = std::min(waiting.size(), kWokenAtOnce);
  const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(most);
  waiting.erase(std::find_if(waiting.begin(), end, stays), waiting.end());
  return waiting;
}

size_t AdmissionQueue::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size() + reserved_.size() + backs_off_.size();
}

}  // namespace lambdadnn
