// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/cmd/module_trial.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/confinement.h"
#include "trainer_function/model/script_trial.h"
#include "trainer_function/model/torch_script_model.h"

namespace lambdadnn {
namespace {

// What LibTorch and the C++ library say where memory ends.
constexpr std::string_view kNoMemory[] = {"can't allocate memory", "bad_alloc"};

std::string ReadInput() {
  std::string input;
  std::array<char, 1 << 16> buffer{};
  for (ssize_t got = 0; (got = read(STDIN_FILENO, buffer.data(), buffer.size())) > 0;) {
    input.append(buffer.data(), static_cast<size_t>(got));
  }
  return input;
}

Status TryOrThrow(const TrialRequest& request) {
  const TrialNeeds& needs = request.needs;
  TrainingConfig config;
  config.loss = needs.loss;
  config.precision = needs.precision;
  config.model.torch_script_uri = needs.uri;
  DatasetInfo dataset;
  dataset.feature_shape = needs.sample_shape;
  dataset.classes = needs.classes;
  dataset.more_classes = needs.more_classes;
  dataset.target_size = needs.target_size;
  const Status made = MakeTorchScriptModel(ReadInput(), config, dataset, /*threads=*/1).status();
  for (const std::string_view text : kNoMemory) {
    if (made.message().find(text) != std::string::npos) return TooMuchMemory(request.limits);
  }
  return made;
}

Status Try(const TrialRequest& request) {
  try {
    return TryOrThrow(request);
  } catch (const std::bad_alloc&) {
    return TooMuchMemory(request.limits);
  }
}

int Tell(const Status& status, int exit_code) {
  std::printf("%s\n", status.message().c_str());
  std::fflush(stdout);
  return exit_code;
}

}  // namespace

std::optional<int> AnswerModuleTrial(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != kCheckModuleCommand) return std::nullopt;
  const auto request = ParseTrialArguments(std::vector<std::string>(argv + 1, argv + argc));
  if (!request.ok()) return Tell(request.status(), kCannotBeChecked);
  const Status confined = ConfineThisProcess({.more_memory_bytes = request->limits.memory_bytes,
                                              .more_cpu_seconds = request->limits.cpu_seconds});
  if (!confined.ok()) return Tell(confined, kCannotBeChecked);
  const Status tried = Try(*request);
  return tried.ok() ? kModulePasses : Tell(tried, kModuleRefused);
}

}  // namespace lambdadnn
