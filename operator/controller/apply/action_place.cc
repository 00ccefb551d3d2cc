// SPDX-License-Identifier: Apache-2.0
// Actions on whose a job's place in the store is (docs/design/020-backup-and-restore.md).
#include <algorithm>
#include <tuple>

#include "common/checkpoint_index/checkpoint_index.h"
#include "operator/api/job_id.h"
#include "operator/controller/apply/action_executor.h"
#include "operator/controller/store/job_place.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

bool IsOfObject(const Job& job, const std::string& uid) {
  return uid == job.metadata.uid || uid == job.status.execution.predecessor_uid;
}

// Where an unfinished job goes on. Its incarnation becomes the highest of which there is any
// checkpoint, or that of the record, which is written before anything else of an incarnation.
Status FindStart(ObjectStore& store, const Job& job, FoundPlace* place) {
  const std::string prefix = JobPrefix(job);
  Job saved = job;
  saved.status = place->record->status;
  LDNN_ASSIGN_OR_RETURN(const auto all, ListCheckpoints(store, prefix));
  int64_t& incarnation = place->record->status.execution.incarnation;
  for (const CheckpointReference& each : all) {
    if (each.incarnation < kMostIncarnations) incarnation = std::max(incarnation, each.incarnation);
  }
  for (const auto& counts : {IsOfThePlans, IsOfTheEarlierPlans}) {
    const CheckpointFilter accept = [&](const CheckpointReference& checkpoint) {
      return counts(saved, checkpoint);
    };
    LDNN_ASSIGN_OR_RETURN(place->checkpoint, FindNewestCheckpoint(store, prefix, accept));
    if (place->checkpoint.has_value()) return OkStatus();
  }
  if (saved.status.execution.first_iteration > 0) {
    place->state = PlaceState::kOthers;
    place->why = "it has no complete checkpoint of the job any more";
  }
  place->record->status.execution.start_checkpoint.reset();
  return OkStatus();
}

}  // namespace

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const LookIntoPlaceOfId&) {
  LDNN_ASSIGN_OR_RETURN(ObjectStore* const store, stores_.Open(pass));
  const Job& job = pass->snapshot.job;
  LDNN_ASSIGN_OR_RETURN(FoundPlace place, LookIntoPlace(*store, job, JobPrefix(job)));
  if (place.state == PlaceState::kUnfinished) {
    LDNN_RETURN_IF_ERROR(FindStart(*store, job, &place));
  }
  if (place.state == PlaceState::kUnfinished) {
    // What the lost object's functions cost; none of them is here to be billed on.
    UsageStatus& usage = pass->memory->meter.usage;
    usage = place.record->status.usage;
    usage.metered_function.clear();
    usage.metered_seconds = 0;
  }
  pass->memory->memo.newest_checkpoint = place.checkpoint;
  pass->memory->memo.place = std::make_shared<const FoundPlace>(std::move(place));
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const ClaimPlace& action) {
  LDNN_RETURN_IF_ERROR(writer_.ConfirmLead(pass));
  LDNN_ASSIGN_OR_RETURN(ObjectStore* const store, stores_.Open(pass));
  const Job& job = pass->snapshot.job;
  const std::string prefix = JobPrefix(job);
  LDNN_ASSIGN_OR_RETURN(const std::optional<PlaceRecord> there, ReadPlaceRecord(*store, prefix));
  Memo& memo = pass->memory->memo;
  if (there.has_value() && !IsOfObject(job, there->uid)) {
    memo.place_taken_by = there->uid;
    return Next::kDecideAgain;
  }
  // A controller that was deposed writes nothing older than what is there.
  const auto round_of = [](const Job& of) {
    const ExecutionStatus& execution = of.status.execution;
    return std::tuple(of.status.plan->revision, execution.incarnation, execution.first_iteration);
  };
  bool is_news = true;
  if (there.has_value() && there->uid == job.metadata.uid) {
    Job written = job;
    written.status = there->status;
    is_news = round_of(written) < round_of(job);
  }
  if (is_news) {
    const std::string text = EncodePlaceRecord(job, ActiveSeconds(job, pass->snapshot.wall));
    LDNN_RETURN_IF_ERROR(store->Put(PlaceRecordKey(prefix), AsBytes(text)));
  }
  memo.place_claimed = action.round;
  return Next::kDecideAgain;
}

Result<bool> ActionExecutor::OwnsPlace(const Pass& pass, ObjectStore& store) const {
  const Job& job = pass.snapshot.job;
  LDNN_ASSIGN_OR_RETURN(const std::optional<PlaceRecord> there,
                        ReadPlaceRecord(store, JobPrefix(job)));
  return !there.has_value() || IsOfObject(job, there->uid);
}

}  // namespace lambdadnn
