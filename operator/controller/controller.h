// SPDX-License-Identifier: Apache-2.0
// The controller: lists and watches jobs and reconciles each of them whenever something changed or
// its time has come. Start returns at once; Stop (or the destructor) ends all tasks, after the pass
// that each is in. Running jobs are not disturbed by either.
#pragma once

#include <memory>

#include "operator/controller/dependencies.h"
#include "operator/controller/options.h"

namespace lambdadnn {

class Controller {
 public:
  Controller(const ControllerDependencies& dependencies, const ControllerOptions& options);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // `namespace_name` empty = all namespaces.
  void Start(const std::string& namespace_name);
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lambdadnn
