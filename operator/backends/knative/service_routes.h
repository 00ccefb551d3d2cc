// SPDX-License-Identifier: Apache-2.0
// Whether the name of a function's own Service is reachable. With addressing Service, the Services
// of all jobs are watched from the first call on. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/kube/informer.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

class ServiceRoutes {
 public:
  // Both outlive this. `namespaces` empty = all.
  ServiceRoutes(KubeClient& kube, Runtime& runtime, std::vector<std::string> namespaces)
      : kube_(kube), runtime_(runtime), namespaces_(std::move(namespaces)) {}

  // Of a pod that is reached at its own address: true.
  bool Reach(const Json& pod);

 private:
  KubeClient& kube_;
  Runtime& runtime_;
  const std::vector<std::string> namespaces_;
  std::mutex mutex_;
  std::unique_ptr<Informer> services_;  // with the mutex
};

// Whether Knative says that the Service has a route.
bool HasRoute(const Json& service);

}  // namespace lambdadnn
