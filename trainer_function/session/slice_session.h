// SPDX-License-Identifier: Apache-2.0
// What each role of a training slice has: its transport, where the slice begins, the agreement on
// its end, its budget of time and its record. A role adds its work of an iteration.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "common/base/status.h"
#include "common/protocol/slice.h"
#include "trainer_function/checkpoint/checkpoint_io.h"
#include "trainer_function/collective/stop_agreement.h"
#include "trainer_function/session/slice_budget.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// Where a slice begins, the same for every role.
struct SliceStart {
  CheckpointReference checkpoint;
  CheckpointManifest manifest;
  // The checkpoint is of another run and only its weights are used.
  bool warm = false;
};
// The checkpoint of the request, which must be there, or checkpoint 0 of a fresh job, which worker
// 0 writes: its manifest is waited for.
Result<SliceStart> FindStart(const RoleContext& context);

// Of one task; transport() and agreement() may be used by its transfer pools meanwhile.
class SliceSession {
 public:
  // `context` and `transport` outlive the session. `role` is one of the request's. The record is
  // that of a slice which has done nothing yet.
  SliceSession(const RoleContext& context, const Role& role, Transport& transport,
               SliceRecord record);

  const RoleContext& context() const { return context_; }
  const SliceRequest& request() const { return context_.request; }
  const ExecutionPlan& plan() const { return context_.request.plan; }
  const Role& role() const { return role_; }
  Transport& transport() { return transport_; }
  SliceBudget& budget() { return budget_; }
  SliceRecord& record() { return record_; }
  // After Begin.
  const SliceStart& start() const { return *start_; }
  StopAgreement& agreement() { return *agreement_; }

  // Finds where the slice begins (FindStart), and which end of the training was agreed before it.
  Status Begin();
  // In place of Begin, for a role that goes on in the midst of its round with the weights of this
  // version, whose header tells the agreement: the checkpoint of the round's begin may be gone.
  void JoinAt(int64_t version);
  // Of this role in this slice; from Begin or JoinAt on.
  int64_t first_iteration() const { return first_iteration_; }

  // One iteration after the other until the agreed end. `iterate` does one: it calls StopInTime
  // when it begins. `completed` is told the number of iterations that are done now and the seconds
  // of the last one. The first error of either ends it.
  Status RunIterations(const std::function<Status(int64_t iteration)>& iterate,
                       const std::function<Status(int64_t done, double seconds)>& completed);
  // Requests the slice's end when a stop was requested or its budget is used up.
  void StopInTime();
  // The slice has ended with these weights (empty for a role without weights).
  void End(std::span<const float> weights);

 private:
  const RoleContext& context_;
  const Role role_;
  Transport& transport_;
  SliceRecord record_;
  SliceBudget budget_;
  int64_t first_iteration_ = 0;
  std::optional<SliceStart> start_;
  std::optional<StopAgreement> agreement_;
};

}  // namespace lambdadnn
