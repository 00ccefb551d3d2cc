// SPDX-License-Identifier: Apache-2.0
// The production client of a real API server, in front of SimKubeClient as that looks from the
// wire: requests and watches are text, refusals are HTTP statuses, with or without Retry-After, or
// connections that end.
#pragma once

#include "operator/kube/http_kube_client.h"
#include "tests/simulation/sim_kube.h"

namespace lambdadnn::simulation {

class SimKubeWire {
 public:
  // All outlive it. Each request is a line of the scheduler's trace.
  SimKubeWire(SimKubeClient& server, Runtime& runtime, const SimScheduler& scheduler,
              const HttpKubeClientOptions& options = {});
  KubeClient& client() { return client_; }

 private:
  HttpKubeClient client_;
};

}  // namespace lambdadnn::simulation
