// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/probed_slice.h"

#include "common/protocol/object_keys.h"
#include "trainer_function/checkpoint/checkpoint_io.h"
#include "trainer_function/parameter_server/optimizer.h"

namespace lambdadnn {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(5);

}  // namespace

SliceRequest ProbedSlice(const SliceRequest& request, std::string_view what, int64_t elements,
                         int64_t iterations) {
  SliceRequest slice = request;
  slice.store.prefix = ExchangePrefix(request.store.prefix) + "probed-" + std::string(what) + "-" +
                       request.role().Name();
  slice.first_iteration = 0;
  slice.start.reset();
  slice.training.stop_at_loss.reset();
  slice.training.early_stopping.reset();
  slice.training.keep_best.reset();
  slice.peers.clear();
  ExecutionPlan& plan = slice.plan;
  plan.first_iteration = 0;
  plan.iterations = iterations;
  plan.iterations_per_epoch = iterations;
  plan.checkpoint_every = 0;
  plan.parameters = elements;
  plan.buffers = 0;
  plan.aggregation = {};
  return slice;
}

Status WriteZeroCheckpoint(const RoleContext& context) {
  const SliceRequest& request = context.request;
  const std::vector<float> weights(static_cast<size_t>(request.plan.parameters));
  return WriteFirstCheckpoint(context, request.first_iteration, weights,
                              OptimizerStateVectors(request.training.optimizer));
}

Status LookUntil(const RoleContext& context, Duration within, const std::function<bool()>& is_so) {
  Clock& clock = context.runtime.clock;
  const Instant until = clock.Now() + within;
  while (!is_so()) {
    LDNN_RETURN_IF_ERROR(context.interrupt.Check());
    if (clock.Now() >= until) return DeadlineExceededError("waited in vain");
    clock.SleepFor(kLookEvery);
  }
  return OkStatus();
}

}  // namespace lambdadnn
