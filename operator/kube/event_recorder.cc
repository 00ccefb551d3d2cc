// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/event_recorder.h"

#include <algorithm>

#include "common/base/bytes.h"
#include "common/base/utf8.h"
#include "common/json/dump_json.h"
#include "operator/kube/micro_time.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

// Limits of events.k8s.io.
constexpr size_t kMaxNoteBytes = 1000;
constexpr size_t kMaxNameBytes = 253;

// Two drafts with the same key are the same event again.
std::string KeyOf(const EventDraft& draft) {
  return DumpJson(draft.regarding) + (draft.warning ? "|W|" : "|N|") + draft.action + "|" +
         draft.reason + "|" + draft.note;
}

}  // namespace

EventRecorder::EventRecorder(KubeClient& client, Runtime& runtime, Options options)
    : client_(client),
      runtime_(runtime),
      options_(std::move(options)),
      monitor_(runtime.executor.NewMonitor()) {
  task_ = runtime.executor.Spawn("events", [this] { Run(); });
}

EventRecorder::~EventRecorder() {
  {
    const MonitorLock lock(*monitor_);
    stopping_ = true;
    monitor_->NotifyAll();
  }
  task_->Join();
}

void EventRecorder::Record(EventDraft draft) {
  const WallTime now = runtime_.clock.Wall();
  const MonitorLock lock(*monitor_);
  if (queue_.size() >= options_.queue_limit) {
    ++dropped_;
    return;
  }
  queue_.push_back({std::move(draft), now});
  monitor_->NotifyAll();
}

int64_t EventRecorder::dropped() const {
  const MonitorLock lock(*monitor_);
  return dropped_;
}

void EventRecorder::Run() {
  for (;;) {
    Waiting next;
    {
      const MonitorLock lock(*monitor_);
      while (queue_.empty() && !stopping_) monitor_->Wait();
      if (stopping_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    Write(next);
  }
}

bool EventRecorder::SleepUnlessStopped(double seconds) {
  const Instant until = runtime_.clock.Now() + FromSeconds(seconds);
  const MonitorLock lock(*monitor_);
  while (!stopping_ && runtime_.clock.Now() < until) monitor_->WaitUntil(until);
  return !stopping_;
}

void EventRecorder::Write(const Waiting& waiting) {
  const std::string key = KeyOf(waiting.draft);
  ForgetOldSeries(runtime_.clock.Now());
  for (int attempt = 1;; ++attempt) {
    const Status status = WriteOnce(key, waiting);
    if (status.ok()) return;
    // The namespace is ending, the object is refused: repeating changes nothing.
    const bool hopeless = status.code() == StatusCode::kPermissionDenied ||
                          status.code() == StatusCode::kInvalidArgument ||
                          status.code() == StatusCode::kNotFound;
    if (hopeless || attempt >= options_.attempts || !SleepUnlessStopped(options_.attempt_seconds)) {
      const MonitorLock lock(*monitor_);
      ++dropped_;
      return;
    }
  }
}

Status EventRecorder::WriteOnce(const std::string& key, const Waiting& waiting) {
  const std::string time = FormatMicroTime(waiting.time);
  const auto known = series_.find(key);
  if (known != series_.end()) {
    Series& series = known->second;
    const Json patch = {{"series", {{"count", series.count + 1}, {"lastObservedTime", time}}}};
    const Status patched =
        client_.Patch(EventType(), series.name, patch, Subresource::kNone).status();
    if (patched.ok()) {
      ++series.count;
      series.last = runtime_.clock.Now();
      return patched;
    }
    if (patched.code() != StatusCode::kNotFound) return patched;
    series_.erase(known);  // the server has deleted it: create a new one
  }
  const EventDraft& draft = waiting.draft;
  const std::string about = TextField(draft.regarding, "name");
  // The name follows from content and time: created twice, it is one event.
  const std::string suffix = "." + Hex64(Xxh3(AsBytes(key + "|" + time)));
  const std::string space = TextField(draft.regarding, "namespace");
  const ObjectName name{space.empty() ? "default" : space,
                        std::string(CutUtf8(about, kMaxNameBytes - suffix.size())) + suffix};
  const Json event = {{"apiVersion", "events.k8s.io/v1"},
                      {"kind", "Event"},
                      {"metadata", {{"name", name.name}, {"namespace", name.namespace_name}}},
                      {"eventTime", time},
                      {"reportingController", options_.controller},
                      {"reportingInstance", options_.instance},
                      {"action", draft.action},
                      {"reason", draft.reason},
                      {"type", draft.warning ? "Warning" : "Normal"},
                      {"regarding", draft.regarding},
                      {"note", std::string(CutUtf8(draft.note, kMaxNoteBytes))}};
  const Status created = client_.Create(EventType(), event).status();
  if (!created.ok() && created.code() != StatusCode::kAlreadyExists) return created;
  if (series_.size() < options_.series_limit) series_[key] = {name, 1, runtime_.clock.Now()};
  return OkStatus();
}

void EventRecorder::ForgetOldSeries(Instant now) {
  const Duration silence = FromSeconds(options_.series_seconds);
  std::erase_if(series_, [&](const auto& entry) { return now - entry.second.last > silence; });
}

}  // namespace lambdadnn
