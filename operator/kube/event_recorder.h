// SPDX-License-Identifier: Apache-2.0
// events.k8s.io/v1 events about objects, as client-go's recorder writes them, best effort. Record
// never blocks and never fails: events wait in a bounded queue, a task of its own writes them, and
// an event that cannot be written for two minutes is dropped. An event that repeats within six
// minutes becomes one object with a series (count, time of the last one).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "common/base/runtime.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

struct EventDraft {
  // apiVersion, kind, name, namespace, uid of what it is about.
  Json regarding;
  bool warning = false;
  std::string action;  // what was being done, CamelCase: "Provision"
  std::string reason;  // what happened, CamelCase: "PlanComputed"
  std::string note;    // one sentence for people; cut at 1 kB
};

class EventRecorder {
 public:
  struct Options {
    std::string controller = "lambdadnn.io/controller";
    std::string instance = "lambdadnn-operator";  // at most 128 characters
    size_t queue_limit = 1000;
    size_t series_limit = 4096;  // events remembered for aggregation
    int attempts = 12;
    double attempt_seconds = 10;  // between attempts
    double series_seconds = 360;  // silence after which an event is a new one
  };

  // Both outlive this.
  EventRecorder(KubeClient& client, Runtime& runtime, Options options);
  // Ends the task; what still waits is lost.
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void Record(EventDraft draft);
  // Events that were dropped because the queue was full or the server took too long.
  int64_t dropped() const;

 private:
  struct Waiting {
    EventDraft draft;
    WallTime time;
  };
  struct Series {
    ObjectName name;
    int64_t count = 1;
    Instant last;
  };

  void Run();
  void Write(const Waiting& waiting);
  // One attempt.
  Status WriteOnce(const std::string& key, const Waiting& waiting);
  void ForgetOldSeries(Instant now);
  bool SleepUnlessStopped(double seconds);

  KubeClient& client_;
  Runtime& runtime_;
  const Options options_;
  const std::unique_ptr<Monitor> monitor_;
  std::deque<Waiting> queue_;             // with the monitor
  bool stopping_ = false;                 // with the monitor
  int64_t dropped_ = 0;                   // with the monitor
  std::map<std::string, Series> series_;  // of the task, by content
  std::unique_ptr<Task> task_;
};

}  // namespace lambdadnn
