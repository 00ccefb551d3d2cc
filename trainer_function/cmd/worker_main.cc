// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-worker`: the training function, with LibTorch inside.
#include "common/telemetry/log.h"
#include "trainer_function/cmd/function_main.h"
#include "trainer_function/model/blas.h"
#include "trainer_function/model/torch_model.h"

int main() {
  lambdadnn::SystemClock clock;
  lambdadnn::ThreadExecutor executor;
  lambdadnn::SystemRandom random;
  lambdadnn::Runtime runtime{clock, executor, random};
  lambdadnn::SliceEnvironment environment;
  environment.make_model = lambdadnn::MakeTorchModel;
  environment.isa = lambdadnn::IsaLevel();
  if (const auto warning = lambdadnn::BlasWarning()) lambdadnn::LogWarning("worker", *warning);
  return lambdadnn::RunFunction(runtime, std::move(environment));
}
