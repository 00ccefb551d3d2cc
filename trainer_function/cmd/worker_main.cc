// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-worker`: the training function, with LibTorch inside.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>

#include "common/telemetry/log.h"
#include "trainer_function/cmd/function_main.h"
#include "trainer_function/model/blas.h"
#include "trainer_function/model/torch_model.h"

namespace {

// Each step needs the same large tensors again. Memory given back to the kernel in between comes
// back page by page, cleared, for a tenth of the step's CPU time; kept, it counts once.
void KeepFreedMemory() {
  constexpr int kKeptBytes = 128 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
}

}  // namespace

int main() {
  KeepFreedMemory();
  lambdadnn::SystemClock clock;
  lambdadnn::ThreadExecutor executor;
  lambdadnn::SystemRandom random;
  lambdadnn::Runtime runtime{clock, executor, random};
  lambdadnn::SliceEnvironment environment;
  environment.make_model = lambdadnn::MakeTorchModel;
  environment.isa = lambdadnn::IsaLevel();
  if (const auto warning = lambdadnn::BlasWarning()) lambdadnn::LogWarning("worker", *warning);
  const int exit_code = lambdadnn::RunFunction(runtime, std::move(environment));
  // Nothing is left to do, and taking down LibTorch takes a fraction of a core long.
  std::fflush(nullptr);
  std::_Exit(exit_code);
}
