// SPDX-License-Identifier: Apache-2.0
// Where passes go on that have to wait for an object store, so that a store which hangs holds up
// its own jobs only: none of the work queue's workers waits for one.
//
// A bulkhead is around a store as its jobs see it (namespace, endpoint, Secret). Each has a few
// tasks at most, and as soon as many are busy in all, one: a store that hangs then takes one of
// them, however many jobs wait for it. Half of all tasks is the most that one namespace has,
// however many stores of its jobs hang. Work of one begins in the order in which it came; whose
// turn it is, namespaces and then their stores share. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "common/base/executor.h"

namespace lambdadnn {

// The store that some jobs share.
struct StoreBulkhead {
  std::string namespace_name;
  std::string store;  // endpoint or URI, and the Secret
  friend auto operator<=>(const StoreBulkhead&, const StoreBulkhead&) = default;
};

class StoreBulkheads {
 public:
  struct Limits {
    int of_a_store = 8;
    int of_a_namespace = 128;
    int crowded = 64;  // from here on a store that has a task gets no other
    int of_all = 256;  // less `crowded`: stores that may hang and hold up nobody else
  };

  StoreBulkheads(Executor& executor, const Limits& limits);
  ~StoreBulkheads();
  StoreBulkheads(const StoreBulkheads&) = delete;
  StoreBulkheads& operator=(const StoreBulkheads&) = delete;

  // Never blocks. `work` runs once, later; not at all when Close comes before its turn.
  void Run(const StoreBulkhead& bulkhead, std::function<void()> work);
  // Nothing begins any more. Waits for what is under way until then: false = some of it has not
  // ended.
  bool Settle(Instant until);
  // The same, until all has ended.
  void Close();

 private:
  using Work = std::function<void()>;
  struct Queue {
    std::deque<Work> waiting;
    int under_way = 0;
    int64_t last_begun = 0;
  };
  struct Runner {
    std::unique_ptr<Task> task;
    bool ended = false;
  };
  using Queues = std::map<StoreBulkhead, Queue>;

  void StopBeginning();  // with the monitor
  int UnderWayOf(const std::string& namespace_name) const;
  bool MayBegin(const StoreBulkhead& name, const Queue& bulkhead) const;
  Work Begin(const StoreBulkhead& name, Queue& bulkhead);
  // The one whose turn it is; end() = none has work that may begin.
  Queues::iterator Next();
  void Serve(Runner* runner, StoreBulkhead bulkhead, Work work);

  Executor& executor_;
  const Limits limits_;
  const std::unique_ptr<Monitor> monitor_;
  Queues queues_;              // those with work; with the monitor, as all that follows
  std::list<Runner> runners_;  // their addresses stay
  int under_way_ = 0;
  std::map<std::string, int> under_way_of_;  // by namespace; those that have any
  int64_t begun_ = 0;
  bool closed_ = false;
};

}  // namespace lambdadnn
