// SPDX-License-Identifier: Apache-2.0
// One pass over one job: everything that it carries from step to step. Used by one thread at a
// time.
#pragma once

#include <memory>
#include <optional>

#include "operator/controller/observe/job_memory.h"
#include "operator/controller/observe/snapshot.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/kube/object_cache.h"

namespace lambdadnn {

struct Pass {
  ObjectName name;
  ObjectVersion version;  // of the object that `snapshot` is of
  JobSnapshot snapshot;
  std::shared_ptr<JobMemory> memory;
  bool sees_queue = false;  // of the job as it was loaded
  bool gone = false;        // the object was deleted in this pass
  bool held = false;        // IsHeld, when it was last decided upon
  bool yields = false;      // ended so that passes of other jobs come first; goes on at once
  bool may_wait = true;
  std::optional<StoreBulkhead> store_bulkhead;  // where it is to go on, as it may not wait
};

}  // namespace lambdadnn
