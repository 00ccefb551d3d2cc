// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/kept_training.h"

#include <utility>

namespace lambdadnn {

KeptTraining::Key KeptTraining::KeyOf(const SliceRequest& request) {
  const ExecutionPlan& plan = request.plan;
  return {request.job.uid, plan.functions,        request.role().rank,   plan.virtual_partitions,
          plan.threads,    plan.local_batch_size, plan.sample_memory_mib};
}

std::optional<KeptTraining::Content> KeptTraining::Take(const Key& key) {
  std::optional<Content> taken;
  const std::lock_guard lock(mutex_);
  taken.swap(content_);
  if (key_ != key) taken.reset();
  return taken;
}

void KeptTraining::Give(const Key& key, Content content) {
  const std::lock_guard lock(mutex_);
  key_ = key;
  content_ = std::move(content);
}

}  // namespace lambdadnn
