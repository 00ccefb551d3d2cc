// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/admission_queue.h"

#include <algorithm>

#include "operator/api/conditions.h"
#include "operator/api/pause.h"

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

// Predictions, undecided jobs and those that back off change with time alone.
constexpr Duration kOrderAge = std::chrono::seconds(1);
// With more jobs than this the order is made at most once every 10 us a job, for which it takes
// one.
constexpr size_t kManyJobs = 256;
constexpr Duration kOrderAgePerJob = std::chrono::microseconds(10);

// Of the jobs that wait, when capacity is freed; each that starts wakes the next ones.
constexpr size_t kWokenAtOnce = 16;

double Smaller(double a, double b) {
  if (a <= 0) return b;
  return b <= 0 ? a : std::min(a, b);
}

}  // namespace

AdmissionQueue::AdmissionQueue(Runtime& runtime, FunctionBackend& backend,
                               const ControllerOptions& options, const ObjectCache& cache,
                               JobReadings& readings, std::function<bool()> synced)
    : runtime_(runtime),
      backend_(backend),
      options_(options),
      cache_(cache),
      readings_(readings),
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
  const Reservation told = {
      static_cast<double>(answer->memory_mib), static_cast<double>(answer->milli_cpu),
      static_cast<double>(answer->functions), static_cast<double>(answer->gpus)};
  Reservation capacity;
  for (const auto each : kReserved) capacity.*each = Smaller(options_.capacity.*each, told.*each);
  if (capacity != capacity_) MarkChanged();
  capacity_ = capacity;
  capacity_known_ = true;
}

void AdmissionQueue::Read(const JobReading& reading, Entry* entry) {
  const Job& job = reading.job;
  const Entry before = *entry;
  const bool counts = reading.spec_read && IsOurs(job, options_) && !IsFinished(job);
  if (reading.version.uid != entry->source.uid) entry->first_seen = runtime_.clock.Now();
  entry->source = reading.version;
  entry->created = job.metadata.creation_timestamp;
  entry->started = counts && !job.status.start_time.empty();
  const bool left_alone = IsPaused(job) || !reading.unreadable.ok();
  const bool may_start = counts && !entry->started && !job.spec.suspend && !IsEnding(job) &&
                         job.metadata.deletion_timestamp.empty() && !left_alone;
  const Condition* accepted = FindCondition(job, kConditionAccepted);
  const bool usable = accepted != nullptr && accepted->status == "True";
  const bool needs_profile = !job.spec.profile.has_value() && !job.status.profile.has_value();
  entry->waits = may_start && usable && (job.status.plan.has_value() || needs_profile);
  entry->undecided = may_start && !entry->waits && (accepted == nullptr || usable);
  entry->priority = job.spec.priority;
  entry->measures = !job.status.plan.has_value();
  entry->reservation =
      entry->started || entry->waits ? ReservationOf(job, options_.platform, {}) : Reservation{};
  entry->active_seconds = job.status.execution.active_seconds;
  entry->start_time.reset();
  if (WallTime start; ParseRfc3339(job.status.start_time, &start)) entry->start_time = start;
  entry->predicted_seconds = PredictedSeconds(job);
  if (before.started != entry->started || before.waits != entry->waits ||
      before.undecided != entry->undecided || before.priority != entry->priority ||
      before.reservation != entry->reservation || before.source.uid != entry->source.uid) {
    MarkChanged();
  }
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
  if (const auto entry = entries_.find(name);
      entry != entries_.end() && entry->second.source == cache_.VersionOf(name)) {
    return;
  }
  const auto reading = readings_.Get(name, JobReadings::Detail::kOutlineOfFinished);
  if (reading != nullptr) {
    Read(*reading, &entries_[name]);
  } else if (entries_.erase(name) > 0) {
    MarkChanged();
    reserved_.erase(name);
    backs_off_.erase(name);
  }
}

Reservation AdmissionQueue::NeedOf(const Entry& entry) const {
  return entry.measures ? AtMost(entry.reservation, capacity_) : entry.reservation;
}

bool AdmissionQueue::Waits(const ObjectName& name, const Entry& entry) const {
  const Instant now = runtime_.clock.Now();
  if (entry.undecided) return now - entry.first_seen < kUndecided;
  if (!entry.waits || !FitsWithin(NeedOf(entry), capacity_)) return false;
  const auto back = backs_off_.find(name);
  return back == backs_off_.end() || now >= back->second;
}

std::optional<double> AdmissionQueue::SecondsLeftOf(const Entry& entry) const {
  double active = entry.active_seconds;
  if (entry.started && entry.start_time.has_value()) {
    active += std::max(0.0, ToSeconds(runtime_.clock.Wall() - *entry.start_time));
  }
  return SecondsLeft(entry.predicted_seconds, active);
}

const AdmissionQueue::Order& AdmissionQueue::OrderNow(bool exact) {
  const Instant now = runtime_.clock.Now();
  if (order_.has_value()) {
    const size_t jobs = order_->places.size();
    const Duration age = now - order_->made;
    const bool old =
        order_changed_ ? jobs < kManyJobs || age >= kOrderAgePerJob * jobs : age >= kOrderAge;
    if (!old && !(exact && order_changed_)) return *order_;
  }
  std::vector<Claim> claims;
  std::vector<Holding> holdings;
  Reservation taken;
  NamespaceStarts starts;
  for (const auto& [name, entry] : entries_) {
    if (entry.start_time.has_value()) {
      WallTime& newest = starts.try_emplace(name.namespace_name, *entry.start_time).first->second;
      newest = std::max(newest, *entry.start_time);
    }
    const auto reserved = reserved_.find(name);
    if (reserved != reserved_.end() || entry.started) {
      const Reservation held = reserved == reserved_.end() ? NeedOf(entry) : reserved->second;
      taken = taken + held;
      holdings.push_back({name.namespace_name, held, SecondsLeftOf(entry)});
    } else if (Waits(name, entry)) {
      // What an undecided one needs is not known: nothing.
      claims.push_back({name, entry.priority, entry.created, NeedOf(entry), SecondsLeftOf(entry)});
    }
  }
  Order order{FairQueue(std::move(claims), std::move(holdings), capacity_,
                        options_.namespace_weights, starts),
              {},
              {},
              taken,
              now};
  std::map<std::string, int> undecided;
  for (const Claim& claim : order.queue.order()) {
    order.places.emplace(claim.name, order.places.size());
    int& of_namespace = undecided[claim.name.namespace_name];
    order.undecided.push_back(of_namespace);
    if (entries_.at(claim.name).undecided) ++of_namespace;
  }
  order_ = std::move(order);
  order_changed_ = false;
  return *order_;
}

QueueView AdmissionQueue::ViewLocked(const ObjectName& name, bool exact) {
  QueueView view;
  view.capacity = capacity_;
  view.limited = capacity_ != Reservation{};
  if (!view.limited) return view;
  Sync();
  const Order& order = OrderNow(exact);
  view.known = capacity_known_ && (synced_ == nullptr || synced_());
  view.taken = order.taken;
  const auto place = order.places.find(name);
  const auto own = entries_.find(name);
  if (place != order.places.end()) {
    view.turn = order.queue.turns()[place->second];
    view.undecided = order.undecided[place->second];
  } else {
    // What it holds itself is there for it, and all that wait come before what it needs beyond
    // that.
    view.turn = order.queue.turns().back();
    const auto reserved = reserved_.find(name);
    Reservation held;
    if (reserved != reserved_.end()) {
      held = reserved->second;
    } else if (own != entries_.end() && own->second.started) {
      held = NeedOf(own->second);
    }
    view.taken = view.taken - held;
    view.turn.taken = view.turn.taken - held;
    // In an order that is older than it, it may have no place yet.
    if (own != entries_.end() && !own->second.started && Waits(name, own->second)) {
      view.known = false;
    }
  }
  if (view.turn.ahead > 0) {
    const ObjectName& first = order.queue.order().front().name;
    if (first.namespace_name == name.namespace_name) view.first = first.name;
  }
  view.unsettled = view.undecided > 0 && !view.turn.overtakes && IsUnsettled(name, view.undecided);
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
  return ViewLocked(name, false);
}

bool AdmissionQueue::Reserve(const ObjectName& name, const Reservation& reservation,
                             std::optional<double> seconds) {
  const std::lock_guard lock(mutex_);
  const QueueView view = ViewLocked(name, true);
  const auto own = entries_.find(name);
  // A job that needs no more than it holds delays no other.
  const bool shrinks =
      own != entries_.end() && own->second.started && !NeedsMore(reservation, NeedOf(own->second));
  if (!shrinks && !HasCapacity(view, reservation, seconds)) return false;
  backs_off_.erase(name);
  if (view.limited) {
    reserved_[name] = reservation;
    order_changed_ = true;
  }
  return true;
}

void AdmissionQueue::Settle(const ObjectName& name) {
  const std::lock_guard lock(mutex_);
  if (reserved_.erase(name) > 0) MarkChanged();
}

void AdmissionQueue::BackOff(const ObjectName& name, Instant until) {
  const std::lock_guard lock(mutex_);
  if (capacity_ == Reservation{}) return;
  backs_off_[name] = until;
  MarkChanged();
}

std::vector<ObjectName> AdmissionQueue::NextAfterChange() {
  const std::lock_guard lock(mutex_);
  if (capacity_ == Reservation{}) return {};
  Sync();
  if (!changed_) return {};
  changed_ = false;
  const Order& order = OrderNow(true);
  const std::vector<Claim>& claims = order.queue.order();
  std::vector<ObjectName> next;
  for (size_t i = 0; i < claims.size() && next.size() < kWokenAtOnce; ++i) {
    const Claim& claim = claims[i];
    if (entries_.at(claim.name).undecided || order.undecided[i] > 0) continue;
    if (MayStart(order.queue.turns()[i], claim.reservation, claim.seconds, capacity_)) {
      next.push_back(claim.name);
    }
  }
  return next;
}

size_t AdmissionQueue::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size() + reserved_.size() + backs_off_.size();
}

}  // namespace lambdadnn
