// SPDX-License-Identifier: Apache-2.0
// Jobs (one called "digits" unless told otherwise), their API server, its store and its functions
// in virtual time, and a controller that can fail or die at any of its effects. For one thread: the
// test is the work queue.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/objectstore/memory_object_store.h"
#include "operator/controller/loop/reconciler.h"
#include "operator/kube/in_memory_api_server.h"
#include "tests/support/fake_functions.h"
#include "tests/support/faulty_kube_client.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/manual_runtime.h"

namespace lambdadnn {

// Thrown out of an effect: the process that was in it is no more.
struct ProcessDied {};

enum class EffectFault { kNone, kFailBefore, kLoseReply, kDieBefore, kDieAfter };

class JobWorld {
 public:
  explicit JobWorld(FakeFunctionsOptions options = {});

  // A small valid job; change it before Create.
  static Json MinimalJob();
  // What spec.aggregation is where servers are dedicated and all else is the planner's.
  static Json DedicatedServers() {
    return {{"transport", "ObjectStore"}, {"placement", "Dedicated"}};
  }
  void Create(const Json& job);
  // Passes and time go on until `done` or `seconds` of virtual time have passed; returns done().
  bool RunUntil(const std::function<bool()>& done, double seconds);
  bool RunUntilFinished(double seconds);
  void Patch(const Json& merge_patch, const std::string& name = "digits");
  void Delete(const std::string& name = "digits");
  // A new process: nothing remembered, no stream open.
  void RestartController();

  Job Read(const std::string& name = "digits");  // as the API server has it
  bool Exists(const std::string& name = "digits");
  std::string Described(const std::string& name = "digits");  // the controller's page
  std::vector<std::string> Keys();                            // of the store, sorted
  std::string Reason(const std::string& condition, const std::string& name = "digits");

  // The `index`-th effect (counted from 0 over API, store and functions) suffers `kind`.
  void Inject(int64_t index, EffectFault kind);
  int64_t effects() const { return effects_; }
  bool fault_happened() const { return fault_happened_; }

  ManualRuntime time;
  MemoryObjectStore memory_store;
  InMemoryApiServer server;
  FakeFunctions functions;
  ControllerOptions options;
  // The longest time between two passes, whatever the controller asks for.
  double most_seconds_between_passes = 1;
  std::vector<Json> events;
  StoreSecrets store_secrets;  // that the job's store was last opened with
  std::string store_key;       // the store refuses any other access key; "" = takes all
  std::string operator_key;    // of the operator itself, as it is now; "" = it has none
  // What the store answers to who asks for an object with this access key; null = allows all.
  std::function<Status(const std::string& key, std::string_view object)> store_rule;
  // Of the store; heeded from the next restart of the controller on. Null = it has no such thing.
  decltype(ControllerDependencies::assume_role) assume_role;
  // Of functions, which speak plain HTTP without; heeded from the next restart of the controller
  // on.
  decltype(ControllerDependencies::make_certificate) make_certificate;
  // Heeded from the next restart of the controller on.
  decltype(ControllerDependencies::measurements) measurements;
  decltype(ControllerDependencies::check_dataset) check_dataset;
  decltype(ControllerDependencies::check_module) check_module;
  std::vector<std::string> opened;  // URIs of stores, in order
  std::vector<EventDraft> told;     // to the event recorder
  std::vector<Span> spans;          // of traces
  // Who leads, by the API server's word; null = there is no election. Heeded from the next restart
  // of the controller on.
  std::function<Result<bool>()> leads_now;

 private:
  class Observer;
  // Around each effect of the controller.
  Status Effect(const std::string& what, bool done);
  void Sync();
  Duration Pass(const ObjectName& name);

  FaultyKubeClient kube_;
  std::unique_ptr<ObjectCache> cache_;
  std::unique_ptr<Reconciler> reconciler_;
  std::unique_ptr<ControllerObserver> observer_;
  std::map<ObjectName, Instant> due_;  // passes, by job
  // What the cache was given, and what Read() decoded, of the server's objects: most passes change
  // none of them.
  std::map<ObjectName, std::shared_ptr<const Json>> synced_;
  struct ReadJob {
    std::shared_ptr<const Json> object;
    Job job;
  };
  std::map<std::string, ReadJob> read_;
  int64_t effects_ = 0;
  int64_t fault_index_ = -1;
  EffectFault fault_kind_ = EffectFault::kNone;
  bool fault_happened_ = false;
  bool in_controller_ = false;
};

}  // namespace lambdadnn
