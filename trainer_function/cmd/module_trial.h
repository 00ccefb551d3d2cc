// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-worker check-module`: the child of TryModule (trainer_function/model/script_trial.h).
#pragma once

#include <optional>

namespace lambdadnn {

// The exit code when that is what the arguments ask for, nullopt to go on. Confines this process,
// reads the archive from standard input, then reads, checks and tries the module on zeros.
std::optional<int> AnswerModuleTrial(int argc, char** argv);

}  // namespace lambdadnn
