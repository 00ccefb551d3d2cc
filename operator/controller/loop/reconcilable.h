// SPDX-License-Identifier: Apache-2.0
// One kind of object as the loop reconciles it: its type, and a pass over one object by its name.
// Another kind is another row of the registry (kinds.h); it needs no loop of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/json/json_reader.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/kube/kube_client.h"
#include "operator/kube/object_cache.h"

namespace lambdadnn {

// Passes of different objects may run at once; those of one object do not.
class Reconcilable {
 public:
  virtual ~Reconcilable() = default;
  // One pass. Returns when the next one is due; an error = soon, with back-off. A pass that would
  // have to wait for a store ends instead and sets `bulkhead`: the next pass runs in that bulkhead
  // (store_bulkheads.h), with null for `bulkhead`, and may wait.
  virtual Result<Duration> Reconcile(const ObjectName& name,
                                     std::optional<StoreBulkhead>* bulkhead) = 0;
  // From now on passes, also those under way, do and write nothing more.
  virtual void Abandon() = 0;
  // What is known of the object, for people; kNotFound: there is no such object. No pass over it
  // runs meanwhile.
  virtual Result<Json> Describe(const ObjectName& name) = 0;
  // Objects of which anything is kept between passes; those that are known to a queue of its own.
  virtual size_t remembered() const = 0;
  virtual size_t waiting_or_holding() const = 0;
};

// What the loop gives to a Reconcilable. All of it outlives it.
struct LoopView {
  ObjectCache& cache;
  std::function<void(const ObjectName&)> wake;  // a pass over this object soon
  std::function<bool()> synced;                 // whether the cache holds every object
  std::function<Duration()> behind;             // how late passes are
};

struct ReconciledKind {
  ResourceType type;
  std::string controller;  // in metrics, as controller-runtime would name it
  std::string noun;        // of one object, in logs: "job"
  std::function<std::unique_ptr<Reconcilable>(const LoopView&)> make;
};

}  // namespace lambdadnn
