// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/informer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

// A watch that is silent this long is asked whether the informer stops.
constexpr Duration kPatience = std::chrono::milliseconds(500);
constexpr int kMaxDoublings = 20;
constexpr int kGone = 410;

}  // namespace

Informer::Informer(KubeClient& client, Runtime& runtime, InformerOptions options)
    : client_(client),
      runtime_(runtime),
      options_(std::move(options)),
      cache_(options_.storage),
      monitor_(runtime.executor.NewMonitor()) {}

Informer::~Informer() { Stop(); }

void Informer::Start() {
  std::vector<std::string> namespaces = options_.namespaces;
  if (namespaces.empty()) namespaces.emplace_back();
  for (const std::string& name : namespaces) {
    tasks_.push_back(
        runtime_.executor.Spawn(options_.type.plural + "-watch", [this, name] { Run(name); }));
  }
}

void Informer::Stop() {
  {
    const MonitorLock lock(*monitor_);
    stopping_ = true;
    monitor_->NotifyAll();
  }
  for (const auto& task : tasks_) task->Join();
  tasks_.clear();
}

void Informer::SetHandler(Handler handler) {
  const MonitorLock lock(*monitor_);
  handler_ = std::move(handler);
  if (!handler_) return;
  for (const ObjectName& name : cache_.Names()) handler_(name);
}

bool Informer::synced() const {
  const MonitorLock lock(*monitor_);
  return listed_ >= std::max<size_t>(1, options_.namespaces.size());
}

Status Informer::Problem() const {
  const MonitorLock lock(*monitor_);
  return problem_;
}

Informer::Counts Informer::counts() const {
  const MonitorLock lock(*monitor_);
  return counts_;
}

bool Informer::stopping() const {
  const MonitorLock lock(*monitor_);
  return stopping_;
}

void Informer::Tell(const ObjectName& name) {
  const MonitorLock lock(*monitor_);
  if (handler_) handler_(name);
}

void Informer::Note(Place* place, const Status& problem) {
  ++place->failures;
  const MonitorLock lock(*monitor_);
  problem_ = problem;
}

void Informer::NoteHealthy(Place* place) {
  place->failures = 0;
  const MonitorLock lock(*monitor_);
  problem_ = OkStatus();
}

bool Informer::BackOff(Place* place) {
  const int doublings = std::clamp(place->failures - 1, 0, kMaxDoublings);
  const double seconds =
      std::min(options_.retry_seconds * std::pow(2.0, doublings), options_.max_retry_seconds);
  const Instant until =
      runtime_.clock.Now() + FromSeconds(seconds * (1 + runtime_.random.Uniform()));
  const MonitorLock lock(*monitor_);
  while (!stopping_ && runtime_.clock.Now() < until) monitor_->WaitUntil(until);
  return !stopping_;
}

void Informer::Run(const std::string& namespace_name) {
  Place place;
  place.namespace_name = namespace_name;
  bool listed_before = false;
  while (!stopping()) {
    if (const Status listed = ListAll(&place); !listed.ok()) {
      Note(&place, listed);
      if (!BackOff(&place)) return;
      continue;
    }
    if (!listed_before) {
      const MonitorLock lock(*monitor_);
      ++listed_;
    }
    listed_before = true;
    Outcome outcome = Outcome::kGoOn;
    while (!stopping() && outcome != Outcome::kListAgain) {
      outcome = Follow(&place);
      if (outcome == Outcome::kFailed && !BackOff(&place)) return;
    }
    // The first list after an expiry is at once: that is the rule, not a failure.
    if (place.failures > 0 && !BackOff(&place)) return;
  }
}

Status Informer::ListAll(Place* place) {
  std::set<ObjectName> listed;
  std::string token;
  std::string version;
  // A page at a time: the trees of all objects would be many times what is kept of them.
  do {
    LDNN_ASSIGN_OR_RETURN(
        KubeList page, client_.List(options_.type, place->namespace_name, options_.label_selector,
                                    options_.page_size, token));
    for (Json& object : page.items) {
      if (options_.transform) options_.transform(&object);
      const auto name = listed.insert(NameOf(object)).first;
      if (cache_.PutListed(std::move(object))) Tell(*name);
    }
    token = page.continue_token;
    version = page.resource_version;
  } while (!token.empty() && !stopping());
  if (!token.empty()) return CancelledError("stopped while listing");
  place->version = version;
  place->fresh = true;
  for (const ObjectName& name : cache_.RemoveUnlisted(place->namespace_name, version, listed)) {
    Tell(name);
  }
  const MonitorLock lock(*monitor_);
  ++counts_.lists;
  return OkStatus();
}

void Informer::Take(WatchEvent event) {
  const ObjectName name = NameOf(event.object);
  const bool news = event.kind == WatchEvent::Kind::kDeleted ? cache_.Remove(event.object)
                                                             : cache_.Put(std::move(event.object));
  if (news) Tell(name);
}

Informer::Outcome Informer::Follow(Place* place) {
  const Instant begun = runtime_.clock.Now();
  Result<std::unique_ptr<Watch>> watch = client_.StartWatch(
      options_.type, place->namespace_name, options_.label_selector, place->version);
  if (!watch.ok()) return JudgeEnd(watch.status(), false, place);
  {
    const MonitorLock lock(*monitor_);
    ++counts_.watches;
  }
  bool heard = false;
  while (!stopping()) {
    Result<WatchEvent> event = (*watch)->Next(kPatience);
    const bool healthy =
        heard || runtime_.clock.Now() - begun >= FromSeconds(options_.healthy_seconds);
    if (!event.ok()) {
      if (event.status().code() != StatusCode::kDeadlineExceeded) {
        return JudgeEnd(event.status(), healthy, place);
      }
      if (healthy && place->failures > 0) NoteHealthy(place);
      continue;
    }
    if (event->kind == WatchEvent::Kind::kError) return JudgeError(event->object, place);
    if (!heard) NoteHealthy(place);
    heard = true;
    place->fresh = false;
    std::string version = ResourceVersionOf(event->object);
    if (event->kind != WatchEvent::Kind::kBookmark) {
      if (options_.transform) options_.transform(&event->object);
      Take(*std::move(event));
    }
    // Behind the event, so that one is never skipped.
    if (!version.empty()) place->version = std::move(version);
  }
  return Outcome::kGoOn;
}

Informer::Outcome Informer::JudgeEnd(const Status& status, bool healthy, Place* place) {
  if (status.code() == StatusCode::kOutOfRange) {
    // A server that forgets what it has just listed is not asked again at once.
    if (place->fresh && !healthy) Note(place, status);
    const MonitorLock lock(*monitor_);
    ++counts_.expired;
    return Outcome::kListAgain;
  }
  if (status.code() == StatusCode::kUnavailable && healthy) return Outcome::kGoOn;
  Note(place, status);
  // What the server does not understand of a watch is cured by a new beginning.
  const bool nonsense = status.code() == StatusCode::kInvalidArgument ||
                        status.code() == StatusCode::kNotFound ||
                        status.code() == StatusCode::kFailedPrecondition;
  return nonsense ? Outcome::kListAgain : Outcome::kFailed;
}

Informer::Outcome Informer::JudgeError(const Json& status, Place* place) {
  const auto code = status.find("code");
  const bool gone = code != status.end() && code->is_number_integer() && *code == kGone;
  const std::string reason = TextField(status, "reason");
  if (gone || reason == "Expired" || reason == "Gone") {
    return JudgeEnd(OutOfRangeError("expired"), false, place);
  }
  return JudgeEnd(UnavailableError("the watch said: " + TextField(status, "message")), false,
                  place);
}

}  // namespace lambdadnn
