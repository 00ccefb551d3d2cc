// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-worker`: the training function, with LibTorch inside.
#include "trainer_function/cmd/function_main.h"
#include "trainer_function/model/torch_model.h"

int main() {
  lambdadnn::SystemClock clock;
  lambdadnn::ThreadExecutor executor;
  lambdadnn::SystemRandom random;
  lambdadnn::Runtime runtime{clock, executor, random};
  lambdadnn::SliceEnvironment environment;
  environment.make_model = lambdadnn::MakeTorchModel;
  return lambdadnn::RunFunction(runtime, std::move(environment));
}
