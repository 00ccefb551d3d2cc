// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-server`: the parameter-server function. No LibTorch: it starts in milliseconds.
#include <memory>

#include "common/base/process_usage.h"
#include "trainer_function/cmd/function_main.h"

int main(int argc, char** argv) {
  if (const auto code = lambdadnn::AnswerArguments("lambdadnn-server", argc, argv)) return *code;
  lambdadnn::KeepFreedMemory();
  lambdadnn::ShareOneHeap();
  lambdadnn::SystemClock clock;
  lambdadnn::ThreadExecutor executor;
  lambdadnn::SystemRandom random;
  lambdadnn::Runtime runtime{clock, executor, random};
  lambdadnn::SliceCredentials credentials;
  return lambdadnn::RunFunction(runtime, lambdadnn::SliceEnvironment{}, credentials,
                                std::make_shared<lambdadnn::SharedCounters>());
}
