// SPDX-License-Identifier: Apache-2.0
// What the controller needs from outside: interfaces only, so that it runs unchanged in a
// cluster, in `lambdadnn run` and in the simulator. All must outlive the controller and be
// thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/base/tls_identity.h"
#include "common/objectstore/object_store.h"
#include "common/plan/workload_facts.h"
#include "common/protocol/slice.h"
#include "common/protocol/training_config.h"
#include "common/telemetry/metrics.h"
#include "common/tracing/span.h"
#include "operator/backends/cluster_bound.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/slice_client.h"
#include "operator/controller/store/measurement_store.h"
#include "operator/controller/store/store_access.h"
#include "operator/kube/event_recorder.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// Told what happens, to show it to users. Must not block.
class ControllerObserver {
 public:
  virtual ~ControllerObserver() = default;
  // One JSON object: {"type": "iteration" | "evaluation" | "event" | "function" | "slice",
  // "job", "time", ...} (docs/formats.md, events.jsonl).
  virtual void OnEvent(const Json& event) = 0;
};

// Given by name ({.runtime = …, .kube = …}): many of them may be absent.
struct ControllerDependencies {
  Runtime& runtime;
  KubeClient& kube;
  FunctionBackend& backend;
  SliceClient& slices;
  // `secrets` = of the job's own Secrets; without them as this process may.
  std::function<Result<std::unique_ptr<ObjectStore>>(const StoreReference&,
                                                     const StoreSecrets& secrets)>
      open_store = nullptr;
  // Environment of every function. Credentials in it go to functions only where all jobs may have
  // them: without TenantRules, or with TenantRules::expose_operator_credentials.
  std::map<std::string, std::string> store_environment = {};
  // This process's own credentials for stores, as they are now: they may be rotated while it runs.
  // Null = they do not change.
  std::function<StoreCredentials()> own_credentials = nullptr;
  // Where what was measured for a job is kept for later ones; `store` is the job's own and outlives
  // the result. Null = nowhere: each job measures for itself.
  std::function<std::unique_ptr<MeasurementStore>(const Job&, ObjectStore& store)> measurements =
      nullptr;
  // Whether the data set that this training reads is there and fits its model, as far as that is
  // known without reading it all, and what that tells (CheckDataset). Null = the functions find
  // out.
  std::function<Result<WorkloadFacts>(const TrainingConfig&,
                                      const std::function<Result<std::unique_ptr<ObjectStore>>(
                                          const std::string& uri)>& open_store)>
      check_dataset = nullptr;
  // What is known of the user's module that this training reads, before a function starts
  // (CheckModule). Null = the functions find out.
  std::function<Result<ModuleFacts>(const TrainingConfig&,
                                    const std::function<Result<std::unique_ptr<ObjectStore>>(
                                        const std::string& uri)>& open_store)>
      check_module = nullptr;
  ControllerObserver* observer = nullptr;
  // Records an event about a job (EventRecorder::Record). Must neither block nor fail; null =
  // events are dropped.
  std::function<void(EventDraft)> record_event = nullptr;
  // Takes spans that have ended (SpanExporter::Export). Must neither block nor fail; null = there
  // are no traces.
  std::function<void(std::vector<Span>)> export_spans = nullptr;
  MetricsRegistry* metrics = nullptr;
  // Cancels all requests to stores, also later ones, so that one that hangs does not keep the
  // process from ending. Null = they are not cancelled.
  std::function<void()> end_store_requests = nullptr;
  // Asks the API server whether this process holds the Lease; null = there is no election.
  std::function<Result<bool>()> leads_now = nullptr;
  // Asks a store for credentials that allow less than those of `secrets` (AssumeStoreRole); null =
  // functions get those of `secrets`.
  std::function<Result<TemporaryCredentials>(const StoreReference&, const StoreSecrets& secrets,
                                             const AssumedRole&)>
      assume_role = nullptr;
  // Makes the certificate of a new job's functions, by a name for people; null = they speak plain
  // HTTP.
  std::function<Result<TlsIdentity>(const std::string& name)> make_certificate = nullptr;
  // Whether the last log lines of functions go into the job's results; false = the platform keeps
  // all logs anyway.
  bool keep_logs = true;
  // Limits of the cluster; null = the configured platform alone limits functions.
  ClusterBound* cluster = nullptr;
};

}  // namespace lambdadnn
