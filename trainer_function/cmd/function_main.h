// SPDX-License-Identifier: Apache-2.0
// Common main program of lambdadnn-worker and lambdadnn-server: environment variables, HTTP server
// and orderly shutdown (docs/formats.md, "Environment of a function").
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "common/base/store_credentials.h"
#include "common/objectstore/counting_object_store.h"
#include "trainer_function/server/slice_service.h"

namespace lambdadnn {

// The credentials with which stores are opened: those of the slice's request, if it has any, else
// the environment's. Thread-safe.
class SliceCredentials {
 public:
  void Use(const std::optional<StoreCredentials>& of_slice);
  StoreCredentials Now() const;

 private:
  mutable std::mutex mutex_;
  std::optional<StoreCredentials> of_slice_;
};

// Of the program `name`; its only arguments are --help and --version, all else comes from the
// environment. The exit code when arguments were given (2: unknown), nullopt to go on.
std::optional<int> AnswerArguments(const char* name, int argc, char** argv);

// What this process has read of data sets and modules, for the bill.
using DataCounters = std::shared_ptr<SharedCounters>;

// Fills in environment.open_store, open_dataset, data_requests and pace, serves until SIGTERM or
// SIGINT, and returns the exit code: 0 after an orderly end, 2 for a bad environment, 4 when it
// cannot listen. Call it first in main(): it blocks signals before any thread starts.
int RunFunction(Runtime& runtime, SliceEnvironment environment, SliceCredentials& credentials,
                const DataCounters& counters);

// The object at this URI (file:///folder/name or s3://bucket/name), with the environment's
// settings. kInvalidArgument when it is no such URI or larger than `max_bytes`; errors name it.
Result<std::string> ReadObject(Runtime& runtime, const SliceCredentials& credentials,
                               const DataCounters& counters, const std::string& uri,
                               uint64_t max_bytes);

}  // namespace lambdadnn
