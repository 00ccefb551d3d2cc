// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/objectstore/retrying_object_store.h"
#include "operator/controller/loop/controller.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/event_recorder.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_functions.h"
#include "tests/simulation/sim_job.h"
#include "tests/simulation/sim_kube.h"
#include "tests/simulation/sim_kube_wire.h"
#include "tests/simulation/sim_object_store.h"

namespace lambdadnn::simulation {

// One operator process and what it holds, with a controller once it leads. Never destroyed: it ends
// by kill.
struct Leader {
  Leader(SimProcess& process_in, InMemoryApiServer& server, SimPlatform& platform,
         FaultInjector& faults, SimBucket& bucket_in, const Scenario& scenario_in)
      : process(process_in),
        bucket(bucket_in),
        scenario(scenario_in),
        kube(server, faults, process, scenario.kube),
        wire(kube, process.runtime(), process.scheduler()),
        client(scenario.kube_over_http ? wire.client() : kube),
        backend(platform, process),
        slices(platform, process),
        recorder(client, process.runtime(), {}),
        jobs(client, process.runtime(), {.type = ServerlessTrainingJobType()}) {}

  void Lead(int64_t epoch, std::function<Result<bool>()> leads_now) {
    const ControllerDependencies dependencies{
        .runtime = process.runtime(),
        .kube = client,
        .backend = backend,
        .slices = slices,
        .open_store = [this](const StoreReference&, const StoreSecrets&) { return OpenStore(); },
        .check_dataset = [this](const TrainingConfig&, const auto&) { return MakeFacts(scenario); },
        .record_event = [this](EventDraft draft) { recorder.Record(std::move(draft)); },
        .leads_now = std::move(leads_now)};
    controller =
        std::make_unique<Controller>(dependencies, MakeControllerOptions(scenario, epoch), jobs);
    controller->Start();
  }

  Result<std::unique_ptr<ObjectStore>> OpenStore() {
    return std::unique_ptr<ObjectStore>(std::make_unique<RetryingObjectStore>(
        std::make_unique<SimObjectStore>(bucket, process), process.runtime(), RetryOptions{}));
  }

  SimProcess& process;
  SimBucket& bucket;
  const Scenario& scenario;
  SimKubeClient kube;
  SimKubeWire wire;
  KubeClient& client;
  SimFunctionBackend backend;
  SimSliceClient slices;
  EventRecorder recorder;
  Informer jobs;
  std::unique_ptr<Controller> controller;
};

}  // namespace lambdadnn::simulation
