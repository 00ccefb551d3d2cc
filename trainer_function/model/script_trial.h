// SPDX-License-Identifier: Apache-2.0
// A user's module is read, checked and tried on zeros for the first time in a process of its own,
// which has limits of memory and time and no network (common/base/confinement.h): `lambdadnn-worker
// check-module`. What passes there is what functions load. The parent's side is here, and needs no
// LibTorch; the child's is in trainer_function/cmd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/plan/training_values.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/dataset_info.h"

namespace lambdadnn {

// The name of the child's command, its first argument.
inline constexpr const char* kCheckModuleCommand = "check-module";
// What the child ends with; a signal's number, and 128, say the rest.
inline constexpr int kModulePasses = 0;
inline constexpr int kModuleRefused = 3;    // its output says why
inline constexpr int kCannotBeChecked = 4;  // its output says why: not the module's fault

struct TrialLimits {
  // Beside what LibTorch has when it has started, and beside kTrialCopies of the archive: of a
  // convolutional network with images of 224 x 224 it takes 0.2 GiB.
  int64_t memory_bytes = int64_t{1} << 30;
  // A network of 100 MB takes 2 s.
  int64_t cpu_seconds = 30;
  // A function with a tenth of a core has 12 of them in that.
  Duration wall = std::chrono::seconds(120);
};
// As bytes, as a stream of them, as tensors, as trained parameters, and what is made of these.
inline constexpr int64_t kTrialCopies = 6;

// What the module has to fit.
struct TrialNeeds {
  Loss loss = Loss::kCrossEntropy;
  std::vector<int64_t> sample_shape;
  int classes = 0;            // 0 = numeric targets
  bool more_classes = false;  // not all labels are known: as many outputs at least
  int64_t target_size = 1;
  std::string uri;  // for messages
  Precision precision = Precision::kFloat32;

  static TrialNeeds Of(const TrainingConfig& config, const DatasetInfo& dataset);
};

// Arguments of the child, after the program; and what it reads of them.
std::vector<std::string> TrialArguments(const TrialNeeds& needs, const TrialLimits& limits);
struct TrialRequest {
  TrialNeeds needs;
  TrialLimits limits;
};
Result<TrialRequest> ParseTrialArguments(const std::vector<std::string>& arguments);

// Runs `program` (lambdadnn-worker) and waits for it. kInvalidArgument, a sentence with what to do,
// for what the module does wrong, also when it takes too much memory or time; other codes when it
// could not be tried. Thread-safe.
Status TryModule(const std::string& program, std::string_view archive, const TrialNeeds& needs,
                 const TrialLimits& limits = {});

// What ended the child, for TryModule and its tests. `exit_code` as of SubprocessResult.
Status JudgeTrial(int exit_code, const std::string& output, const TrialLimits& limits);
// The sentence for a module that takes more memory than the limit.
Status TooMuchMemory(const TrialLimits& limits);

}  // namespace lambdadnn
