// SPDX-License-Identifier: Apache-2.0
// Runs passes that have to wait for an object store, so that a store which hangs delays its own
// jobs only: no worker of the work queue waits for a store.
//
// A bulkhead belongs to a store as its jobs see it (namespace, endpoint, Secret). It has a few
// tasks at most, and only one while many tasks of all bulkheads are busy: a store that hangs then
// holds one task, however many jobs wait for it. One namespace has half of all tasks at most.
// Within a bulkhead work begins in the order in which it was added; namespaces, and within them
// their stores, take turns. Thread-safe.
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
    int of_all = 256;  // less `crowded`: stores that may hang without delaying others
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
