// SPDX-License-Identifier: Apache-2.0
// A whole controller with its threads, on fibers and in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/in_memory_api_server.h"
#include "tests/simulation/sim_scheduler.h"

namespace lambdadnn {

// Runs `body` to its end.
inline void InVirtualTime(const std::function<void(Runtime&)>& body) {
  simulation::SimScheduler scheduler(1);
  simulation::SimProcess& process = scheduler.NewProcess("operator");
  bool ended = false;
  (void)process.Spawn("main", [&] {
    body(process.runtime());
    ended = true;
  });
  const Status run = scheduler.Run([&] { return ended; }, {});
  ASSERT_TRUE(run.ok()) << run.message();
}

// What a controller asks of its API server.
inline void DefineTypes(InMemoryApiServer* server) {
  server->Define(JobDefinition());
  ResourceDefinition secrets;
  secrets.type = SecretType();
  server->Define(secrets);
}

}  // namespace lambdadnn
