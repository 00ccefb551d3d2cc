// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-worker`: the training function, with LibTorch inside.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "common/base/end_signals.h"
#include "common/base/files.h"
#include "common/base/process_usage.h"
#include "common/protocol/numerics_fingerprint.h"
#include "common/telemetry/log.h"
#include "trainer_function/cmd/checked_module.h"
#include "trainer_function/cmd/function_main.h"
#include "trainer_function/cmd/module_trial.h"
#include "trainer_function/model/bfloat16.h"
#include "trainer_function/model/blas.h"
#include "trainer_function/model/compute_device.h"
#include "trainer_function/model/network_model.h"
#include "trainer_function/model/script_archive.h"
#include "trainer_function/model/torch_device.h"
#include "trainer_function/model/torch_model.h"
#include "trainer_function/model/torch_script_model.h"
#include "trainer_function/server/confined_model.h"

namespace lambdadnn {
namespace {

constexpr int kExitStepWithoutEnd = 5;

Result<std::unique_ptr<TrainableModel>> MakeModel(
    Runtime& runtime, const SliceCredentials& credentials, const DataCounters& counters,
    CheckedModule& checked, SliceEnd& end, const TrainingConfig& config, const DatasetInfo& dataset,
    int threads, ComputeDevice device) {
  const std::string& uri = config.model.torch_script_uri;
  if (uri.empty()) return MakeBuiltinModel(config, dataset, threads, device);
  const auto archive = ReadObject(runtime, credentials, counters, uri, kMaxModuleBytes);
  if (!archive.ok()) return archive.status().WithContext("spec.model.torchScript.uri");
  LDNN_RETURN_IF_ERROR(checked.Check(*archive, config, dataset));
  const auto make = [&] {
    return MakeTorchScriptModel(*archive, config, dataset, threads, device);
  };
  // CUDA opens devices to write to as it goes.
  if (device != ComputeDevice::kCpu) return make();
  ConfinedModelOptions options;
  options.slice_is_over = [&end] { return end.IsOver(); };
  options.give_up = [](const std::string& why) {
    LogError("worker", why);
    std::fflush(nullptr);
    std::_Exit(kExitStepWithoutEnd);
  };
  return MakeConfinedModel(runtime, options, make);
}

// What the environment asks for, ready to compute.
struct Compute {
  ComputeDevice device = ComputeDevice::kCpu;
  Precision precision = Precision::kFloat32;
};
Result<Compute> OpenDevice() {
  Compute compute;
  LDNN_ASSIGN_OR_RETURN(compute.device, ParseDevice(GetEnvironment(kDeviceVariable).value_or("")));
  LDNN_ASSIGN_OR_RETURN(compute.precision,
                        ParsePrecision(GetEnvironment(kPrecisionVariable).value_or("")));
  LDNN_RETURN_IF_ERROR(PrepareDevice(compute.device, compute.precision));
  return compute;
}

}  // namespace
}  // namespace lambdadnn

namespace {

constexpr int kExitBadEnvironment = 2;
[[maybe_unused]] constexpr int kExitWrongProducts = 4;

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = lambdadnn::AnswerModuleTrial(argc, argv)) return *code;
  if (const auto code = lambdadnn::AnswerArguments("lambdadnn-worker", argc, argv)) return *code;
  lambdadnn::KeepFreedMemory();
  lambdadnn::ShareOneHeap();
  lambdadnn::BlockEndSignals();  // before CUDA's threads start
  const lambdadnn::Result<lambdadnn::Compute> compute = lambdadnn::OpenDevice();
  if (!compute.ok()) {
    lambdadnn::LogError("worker", compute.status().message());
    return kExitBadEnvironment;
  }
  lambdadnn::SystemClock clock;
  lambdadnn::ThreadExecutor executor;
  lambdadnn::SystemRandom random;
  lambdadnn::Runtime runtime{clock, executor, random};
  lambdadnn::SliceEnvironment environment;
  lambdadnn::SliceCredentials credentials;
  const auto counters = std::make_shared<lambdadnn::SharedCounters>();
  lambdadnn::CheckedModule checked;
  lambdadnn::SliceEnd end;
  environment.use_interrupt = [&end](lambdadnn::Interrupt* of_slice) { end.Use(of_slice); };
  environment.make_model = [&runtime, &credentials, &counters, &checked, &end,
                            device = compute->device](const lambdadnn::TrainingConfig& config,
                                                      const lambdadnn::DatasetInfo& dataset,
                                                      int threads) {
    return lambdadnn::MakeModel(runtime, credentials, counters, checked, end, config, dataset,
                                threads, device);
  };
  lambdadnn::NumericsFingerprint fingerprint =
      lambdadnn::FingerprintOn(compute->device, compute->precision);
  lambdadnn::LogInfo("worker", "numerics fingerprint",
                     {{"libtorch", fingerprint.libtorch},
                      {"isa", fingerprint.isa},
                      {"blas", lambdadnn::BlasDescription()},
                      {"device", lambdadnn::EnumName(compute->device)},
                      {"precision", lambdadnn::EnumName(compute->precision)}});
  environment.isa = std::move(fingerprint.isa);
  environment.libtorch = std::move(fingerprint.libtorch);
#ifdef __aarch64__
  // Seen in qemu with vectors of 256 bits: wrong numbers without an error.
  if (const lambdadnn::Status products = lambdadnn::CheckProducts(); !products.ok()) {
    lambdadnn::LogError("worker", products.message());
    return kExitWrongProducts;
  }
#endif
  if (const auto warning = lambdadnn::BlasWarning()) lambdadnn::LogWarning("worker", *warning);
  const int exit_code =
      lambdadnn::RunFunction(runtime, std::move(environment), credentials, counters);
  // Nothing is left to do, and taking down LibTorch takes a fraction of a core long.
  std::fflush(nullptr);
  std::_Exit(exit_code);
}
