// SPDX-License-Identifier: Apache-2.0
// How a controller's process and its functions reach the object stores of jobs: with the
// credentials of this process's environment.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "common/protocol/slice.h"

namespace lambdadnn {

// The store of a job. A retry budget of 0 is the store's own.
Result<std::unique_ptr<ObjectStore>> OpenJobStore(const StoreReference& reference,
                                                  const std::string& ca_file, Runtime& runtime,
                                                  double retry_budget_seconds = 0);

// What functions need in their environment to reach the store as this process does.
std::map<std::string, std::string> StoreEnvironment(const std::string& ca_file);

}  // namespace lambdadnn
