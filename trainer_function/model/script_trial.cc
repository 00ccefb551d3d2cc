// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/script_trial.h"

#include <csignal>
#include <optional>

#include "common/base/subprocess.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr char kModule[] = "spec.model.torchScript: the module ";
constexpr size_t kArguments = 9;  // behind the command

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return Join(sizes, "x");
}

std::optional<std::vector<int64_t>> ParseShape(const std::string& text) {
  std::vector<int64_t> shape;
  if (text.empty()) return shape;
  for (const std::string& size : Split(text, 'x')) {
    const auto number = ParseInteger(size);
    if (!number) return std::nullopt;
    shape.push_back(*number);
  }
  return shape;
}

Status TooLong(const std::string& within) {
  return InvalidArgumentError(std::string(kModule) + "was not read and tried on 2 samples within " +
                              within +
                              "; see that forward ends whatever the numbers are, and that it is "
                              "small enough for a function");
}

}  // namespace

TrialNeeds TrialNeeds::Of(const TrainingConfig& config, const DatasetInfo& dataset) {
  return {.loss = config.loss,
          .sample_shape = dataset.feature_shape,
          .classes = dataset.classes,
          .more_classes = false,
          .target_size = dataset.target_size,
          .uri = config.model.torch_script_uri,
          .precision = config.precision};
}

std::vector<std::string> TrialArguments(const TrialNeeds& needs, const TrialLimits& limits) {
  return {kCheckModuleCommand,
          std::string(EnumName(needs.loss)),
          ShapeText(needs.sample_shape),
          std::to_string(needs.classes),
          needs.more_classes ? "more" : "all",
          std::to_string(needs.target_size),
          needs.uri,
          std::to_string(limits.memory_bytes),
          std::to_string(limits.cpu_seconds),
          std::string(EnumName(needs.precision))};
}

Result<TrialRequest> ParseTrialArguments(const std::vector<std::string>& arguments) {
  const Status usage = InvalidArgumentError(
      std::string(kCheckModuleCommand) +
      " takes LOSS SHAPE CLASSES all|more TARGETS URI MEMORY_BYTES CPU_SECONDS PRECISION, and the "
      "archive on its standard input, as a worker gives them to itself");
  if (arguments.size() != kArguments + 1) return usage;
  TrialRequest request;
  const auto loss = FindEnum<Loss>(arguments[1]);
  const auto shape = ParseShape(arguments[2]);
  const auto classes = ParseInteger(arguments[3]);
  const auto targets = ParseInteger(arguments[5]);
  const auto memory = ParseInteger(arguments[7]);
  const auto seconds = ParseInteger(arguments[8]);
  const auto precision = FindEnum<Precision>(arguments[9]);
  const bool all_there = loss && shape && classes && targets && memory && seconds && precision;
  if (!all_there || *memory < 1 || *seconds < 1) return usage;
  request.needs = {.loss = *loss,
                   .sample_shape = *shape,
                   .classes = static_cast<int>(*classes),
                   .more_classes = arguments[4] == "more",
                   .target_size = *targets,
                   .uri = arguments[6],
                   .precision = *precision};
  request.limits.memory_bytes = *memory;
  request.limits.cpu_seconds = *seconds;
  return request;
}

Status TryModule(const std::string& program, std::string_view archive, const TrialNeeds& needs,
                 const TrialLimits& limits) {
  TrialLimits own = limits;
  own.memory_bytes += kTrialCopies * static_cast<int64_t>(archive.size());
  SubprocessSpec spec;
  spec.arguments = TrialArguments(needs, own);
  spec.arguments.insert(spec.arguments.begin(), program);
  // Of one thread, whose stacks and buffers would count as its memory.
  spec.environment = {{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}};
  spec.keeps_little = true;
  spec.input = archive;
  spec.time_limit = own.wall;
  const auto ended = RunSubprocess(spec);
  // Another time, or elsewhere, there may be more of the processor for it.
  if (ended.status().code() == StatusCode::kDeadlineExceeded) {
    return DeadlineExceededError(TooLong(FormatDouble(ToSeconds(own.wall)) + " s").message());
  }
  if (!ended.ok()) return ended.status().WithContext("checking spec.model.torchScript.uri");
  return JudgeTrial(ended->exit_code, ended->output, own);
}

Status JudgeTrial(int exit_code, const std::string& output, const TrialLimits& limits) {
  switch (exit_code) {
    case kModulePasses:
      return OkStatus();
    case kModuleRefused:
      return InvalidArgumentError(std::string(Trim(output)));
    case kCannotBeChecked:
      return FailedPreconditionError(std::string(Trim(output)));
    case 128 + SIGXCPU:
      return TooLong(std::to_string(limits.cpu_seconds) + " s of a processor");
    case 128 + SIGKILL:
      return TooMuchMemory(limits);
    default:
      return InvalidArgumentError(
          std::string(kModule) + "ended the process that read and tried it (" +
          (exit_code > 128 ? "signal " + std::to_string(exit_code - 128)
                           : "exit code " + std::to_string(exit_code)) +
          "); try torch.jit.load and forward on 2 samples, with less memory where it takes much");
  }
}

Status TooMuchMemory(const TrialLimits& limits) {
  return InvalidArgumentError(
      std::string(kModule) + "takes more than " + std::to_string(limits.memory_bytes >> 20) +
      " MiB of memory to be read and tried on 2 samples; make it smaller, and see that forward "
      "makes no tensor or list that grows without end");
}

}  // namespace lambdadnn
