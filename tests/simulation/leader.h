// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/objectstore/retrying_object_store.h"
#include "operator/controller/controller.h"
#include "operator/kube/event_recorder.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_functions.h"
#include "tests/simulation/sim_job.h"
#include "tests/simulation/sim_kube.h"
#include "tests/simulation/sim_kube_wire.h"
#include "tests/simulation/sim_object_store.h"

namespace lambdadnn::simulation {

// One controller process and what it holds. Never destroyed: it ends by kill.
struct Leader {
  Leader(SimProcess& process_in, InMemoryApiServer& server, SimPlatform& platform,
         FaultInjector& faults, SimBucket& bucket, const Scenario& scenario, int64_t epoch)
      : process(process_in),
        kube(server, faults, process, scenario.kube),
        wire(kube, process.runtime()),
        client(scenario.kube_over_http ? wire.client() : kube),
        backend(platform, process),
        slices(platform, process),
        dependencies{process.runtime(),
                     client,
                     backend,
                     slices,
                     [this, &bucket](const StoreReference&, const StoreSecrets&) {
                       return OpenStore(bucket);
                     },
                     {},
                     nullptr,
                     nullptr,
                     [this](EventDraft draft) { recorder.Record(std::move(draft)); }},
        recorder(client, process.runtime(), {}),
        controller(dependencies, MakeControllerOptions(scenario, epoch)) {}

  Result<std::unique_ptr<ObjectStore>> OpenStore(SimBucket& bucket) {
    return std::unique_ptr<ObjectStore>(std::make_unique<RetryingObjectStore>(
        std::make_unique<SimObjectStore>(bucket, process), process.runtime(), RetryOptions{}));
  }

  SimProcess& process;
  SimKubeClient kube;
  SimKubeWire wire;
  KubeClient& client;
  SimFunctionBackend backend;
  SimSliceClient slices;
  ControllerDependencies dependencies;
  EventRecorder recorder;
  Controller controller;
};

}  // namespace lambdadnn::simulation
