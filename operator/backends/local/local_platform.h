// SPDX-License-Identifier: Apache-2.0
// This machine as a FaaS platform: what a plan may use of it and what it would cost elsewhere.
#pragma once

#include <string>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "common/plan/workload.h"
#include "operator/backends/local/machine.h"

namespace lambdadnn {

// CPU in proportion to memory, one core a GiB; a function never has more than one core (LibTorch
// runs with one thread), but on machines with GPUs, where functions may be larger; all functions
// together have the machine, its GPUs, and four fifths of its memory;
// λDNN's price of a GiB second.
Platform LocalPlatform(const Machine& machine);

// Sets total quotas that a platform file omits to this machine's, and GPUs to at most its own:
// functions run here, whatever platform the file describes.
void LimitToMachine(const Machine& machine, Platform* platform);

// Times a few requests and sets the platform's store speeds, which are then those of every
// function. Leaves nothing in the store. The error says how the store cannot be used.
Status MeasureStore(Runtime& runtime, ObjectStore& store, Platform* platform);

// One sentence: "2 cores, 24 GiB, store 1.2 GB/s at 0.3 ms a request".
std::string DescribePlatform(const Machine& machine, const Platform& platform);

}  // namespace lambdadnn
