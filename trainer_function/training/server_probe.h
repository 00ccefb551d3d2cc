// SPDX-License-Identifier: Apache-2.0
// Measures the CPU time of a parameter server: role `server` (parameter_server/server_role.h)
// itself runs on this function for some iterations, with more and fewer children, shards and bytes.
// Part of role `profile`.
#pragma once

#include "common/plan/exchange_cpu.h"
#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// CPU seconds of an iteration of servers that differ by what their names say.
struct ServerTimes {
  // Of one shard of next to nothing: from one child that pushes once a step has ended, as in
  // training, so that the server waits for it; and from kProbedChildren such children.
  double waiting = 0;
  double waiting_children = 0;
  // All others find the gradients in the store: what waiting costs is not in their differences.
  double least = 0;           // as `waiting`
  double children = 0;        // as `waiting_children`
  double shards = 0;          // kProbedShards shards from one child, of `shards_bytes` in all
  double bytes = 0;           // one shard of `whole_bytes` from one child
  double children_bytes = 0;  // the same from kProbedChildren
  double shards_bytes = 0;
  double whole_bytes = 0;
};
inline constexpr int kProbedChildren = 4;
inline constexpr int kProbedShards = 4;
// What each part of an iteration takes; never less than nothing.
ServerCpu PartsOf(const ServerTimes& times);

// Fills in the metrics serverIterationCpuSeconds, serverShardCpuSeconds, serverChildCpuSeconds,
// serverCpuSecondsPerByte and serverChildCpuSecondsPerByte (ServerCpu), none of them without a
// clock of CPU time. `parameters`: of the model; `step_seconds`: until a child has its next
// gradient. Leaves nothing in the store. On the slice's task.
Status MeasureServerRole(const RoleContext& context, const TrainingEnvironment& environment,
                         int64_t parameters, double step_seconds, SliceRecord* record);

}  // namespace lambdadnn
