// SPDX-License-Identifier: Apache-2.0
// Quiescing: every slice stops at a checkpoint, its iteration is written, every function is
// released. Suspension and a change of plan begin with it.
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/round_view.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

bool Every(const SliceFact&, const Round&) { return true; }

}  // namespace

std::optional<std::vector<Action>> Quiesce(const JobSnapshot& snapshot, const RoundView& view) {
  using Actions = std::vector<Action>;
  const Job& job = snapshot.job;
  const Observations& observed = *snapshot.observations;
  const std::optional<Round> round = CurrentRound(job);
  const StopManner manner = view.broken.has_value() ? StopManner::kAtOnce : StopManner::kGraceful;
  Actions stops = StopSlices(snapshot, manner, Every, round.value_or(Round{}));
  if (!stops.empty()) return stops;
  for (const auto& [invocation, slice] : observed.slices) {
    if (MayRun(slice, observed)) return Actions{};
  }
  if (view.all_ended && view.checkpoint.has_value()) {
    WriteDecision write;
    write.why = "stopped at iteration " + std::to_string(view.next_iteration);
    write.execution = job.status.execution;
    write.execution->first_iteration = view.next_iteration;
    write.execution->start_checkpoint = CheckpointToJson(*view.checkpoint);
    write.execution->functions.clear();
    if (view.next_iteration == round->first_iteration) ++write.execution->incarnation;
    return Actions{write};
  }
  if (AnyLiveInstance(observed)) return Actions{DeleteAllGroups{}};
  return std::nullopt;
}

QuiescePoint FindQuiescePoint(const JobSnapshot& snapshot) {
  const std::optional<Round> round = CurrentRound(snapshot.job);
  QuiescePoint place;
  place.execution = snapshot.job.status.execution;
  const bool begun = round.has_value() && !place.execution.functions.empty();
  if (!begun) return place;
  // A round that has begun is never continued.
  place.clean = false;
  if (snapshot.memo->checkpoint_looked_up != round) {
    place.look_up = LookUpCheckpoint{*round, FoundDataLoss(*snapshot.observations, *round)};
  } else {
    place.execution = FallenBack(snapshot);
  }
  return place;
}

}  // namespace lambdadnn
