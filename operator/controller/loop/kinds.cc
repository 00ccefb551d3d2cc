// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/kinds.h"

#include "operator/controller/loop/reconciler.h"
#include "operator/kinds/serverless_training_job.h"

namespace lambdadnn {

std::vector<ReconciledKind> ReconciledKinds(const ControllerDependencies& dependencies,
                                            const ControllerOptions& options) {
  return {
      {.type = ServerlessTrainingJobType(),
       .controller = "serverlesstrainingjob",
       .noun = "job",
       .make = [&dependencies, &options](const LoopView& loop) -> std::unique_ptr<Reconcilable> {
         return std::make_unique<Reconciler>(dependencies, options, loop.cache, loop.wake,
                                             loop.synced, loop.behind);
       }}};
}

}  // namespace lambdadnn
