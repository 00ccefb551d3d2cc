// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-worker`: the training function, with LibTorch inside.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>

#include "common/protocol/numerics_fingerprint.h"
#include "common/telemetry/log.h"
#include "trainer_function/cmd/function_main.h"
#include "trainer_function/model/blas.h"
#include "trainer_function/model/torch_model.h"
#include "trainer_function/model/torch_script_model.h"

namespace lambdadnn {
namespace {

// Larger than what trains in a function, small enough to be held beside it.
constexpr uint64_t kMaxArchiveBytes = uint64_t{1} << 30;

Result<std::unique_ptr<TrainableModel>> MakeModel(Runtime& runtime,
                                                  const SliceCredentials& credentials,
                                                  const TrainingConfig& config,
                                                  const DatasetInfo& dataset, int threads) {
  const std::string& uri = config.model.torch_script_uri;
  if (uri.empty()) return MakeTorchModel(config, dataset, threads);
  const auto archive = ReadObject(runtime, credentials, uri, kMaxArchiveBytes);
  if (!archive.ok()) return archive.status().WithContext("spec.model.torchScript.uri");
  return MakeTorchScriptModel(*archive, config, dataset, threads);
}

}  // namespace
}  // namespace lambdadnn

namespace {

[[maybe_unused]] constexpr int kExitWrongProducts = 4;

// Each step needs the same large tensors again. Memory released to the kernel in between is
// returned page by page, zeroed, which takes a tenth of the step's CPU time; so it is kept.
void KeepFreedMemory() {
  constexpr int kKeptBytes = 128 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = lambdadnn::AnswerArguments("lambdadnn-worker", argc, argv)) return *code;
  KeepFreedMemory();
  lambdadnn::SystemClock clock;
  lambdadnn::ThreadExecutor executor;
  lambdadnn::SystemRandom random;
  lambdadnn::Runtime runtime{clock, executor, random};
  lambdadnn::SliceEnvironment environment;
  lambdadnn::SliceCredentials credentials;
  environment.make_model = [&runtime, &credentials](const lambdadnn::TrainingConfig& config,
                                                    const lambdadnn::DatasetInfo& dataset,
                                                    int threads) {
    return lambdadnn::MakeModel(runtime, credentials, config, dataset, threads);
  };
  environment.isa = lambdadnn::IsaLevel();
  environment.libtorch = (lambdadnn::TorchVersion() + ", " + lambdadnn::BlasName())
                             .substr(0, lambdadnn::kMaxLibtorchBytes);
  lambdadnn::LogInfo("worker", "numerics fingerprint",
                     {{"libtorch", lambdadnn::TorchVersion()},
                      {"isa", environment.isa},
                      {"blas", lambdadnn::BlasDescription()}});
#ifdef __aarch64__
  // Seen in qemu with vectors of 256 bits: wrong numbers without an error.
  if (const lambdadnn::Status products = lambdadnn::CheckProducts(); !products.ok()) {
    lambdadnn::LogError("worker", products.message());
    return kExitWrongProducts;
  }
#endif
  if (const auto warning = lambdadnn::BlasWarning()) lambdadnn::LogWarning("worker", *warning);
  const int exit_code = lambdadnn::RunFunction(runtime, std::move(environment), credentials);
  // Nothing is left to do, and taking down LibTorch takes a fraction of a core long.
  std::fflush(nullptr);
  std::_Exit(exit_code);
}
