// SPDX-License-Identifier: Apache-2.0
// Names to be worked on: each at most once in the queue, never by two workers at the same time (a
// name added while it is worked on comes again afterwards), now or at a later time. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "common/base/runtime.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

class WorkQueue {
 public:
  explicit WorkQueue(Runtime& runtime);

  void Add(const ObjectName& name);
  // No later than `when`; an earlier time stands.
  void AddAt(const ObjectName& name, Instant when);
  // Blocks; nullopt once the queue is closed. Every name got must be given to Done.
  std::optional<ObjectName> Get();
  void Done(const ObjectName& name);
  void Close();
  bool closed() const;

 private:
  Runtime& runtime_;
  std::unique_ptr<Monitor> monitor_;
  std::map<ObjectName, Instant> due_;
  std::set<ObjectName> working_;
  bool closed_ = false;
};

}  // namespace lambdadnn
