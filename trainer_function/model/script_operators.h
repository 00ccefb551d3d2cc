// SPDX-License-Identifier: Apache-2.0
// Which operators of TorchScript a user's module may call. Included by .cc files of this folder
// that include torch.
#pragma once

#include "common/base/status.h"

namespace torch::jit {
struct Module;
}

namespace lambdadnn {

// Of what `forward` calls, however deep: kInvalidArgument naming the first operator that reads or
// writes files, prints, talks to other processes, sets the seed, runs beside others in no fixed
// order, or is of a library that functions do not load, or the first object of C++ (torch.classes).
// Nothing of the module is run.
Status CheckOperators(const torch::jit::Module& module);

}  // namespace lambdadnn
