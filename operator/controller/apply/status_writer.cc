// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/apply/status_writer.h"

#include <algorithm>
#include <set>

#include "common/telemetry/log.h"
#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_id.h"
#include "operator/controller/apply/event_objects.h"
#include "operator/controller/decide/status.h"
#include "operator/controller/observe/refused_fields.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

// For so long after a successful write the object need not be read again.
constexpr Duration kWriteConfirms = std::chrono::milliseconds(500);
// Fields of status found out one by one to be refused.
constexpr int kMaxRefusals = 8;

}  // namespace

Status StatusWriter::CheckWanted() const {
  return abandoned_ ? CancelledError("this process is ending") : OkStatus();
}

Status StatusWriter::ConfirmLead(Pass* pass) {
  LDNN_RETURN_IF_ERROR(CheckWanted());
  const Instant now = dependencies_.runtime.clock.Now();
  const bool known = cache_.VersionOf(pass->name) == pass->version;
  const std::optional<Instant>& written = pass->memory->status_written;
  if (known && written.has_value() && now - *written < kWriteConfirms) return OkStatus();
  Result<Json> object = dependencies_.kube.Get(ServerlessTrainingJobType(), pass->name);
  if (object.status().code() == StatusCode::kNotFound) {
    cache_.Remove(pass->name, pass->version.uid);
    pass->gone = true;
  }
  if (!object.ok()) return object.status().WithContext("cannot read job " + pass->name.name);
  const bool newer = ResourceVersionOf(*object) != pass->version.resource_version;
  if (!newer) return OkStatus();
  cache_.Put(*object);
  return AbortedError("job " + pass->name.name + " has changed; deciding again");
}

void StatusWriter::ReadBack(Pass* pass) {
  Result<Json> object = dependencies_.kube.Get(ServerlessTrainingJobType(), pass->name);
  if (object.ok()) {
    cache_.Put(*object);
  } else if (object.status().code() == StatusCode::kNotFound) {
    cache_.Remove(pass->name, pass->version.uid);
    pass->gone = true;
  }
}

Result<Json> StatusWriter::Patch(Pass* pass, const Json& object, Json patch) {
  const auto send = [&] {
    return dependencies_.kube.Patch(ServerlessTrainingJobType(), pass->name, patch,
                                    Subresource::kStatus);
  };
  Result<Json> written = send();
  RefusedFields& refused = pass->memory->refused_fields;
  // One answer may not name all of them.
  for (int attempt = 0; attempt < kMaxRefusals; ++attempt) {
    if (written.status().code() != StatusCode::kInvalidArgument) return written;
    if (!AddRefused(written.status().message(), patch, &refused)) return written;
    const std::string note =
        "the API server refuses a part of status, which is left out from now on; apply the CRD of "
        "this operator's version: " +
        written.status().message();
    LogWarning("controller", note, {{"job", pass->name.name}});
    if (dependencies_.record_event) {
      dependencies_.record_event(
          MakeEvent(pass->snapshot.job,
                    MakeCondition(kConditionDegraded, true, Reason::kStatusFieldRefused, note)));
    }
    if (!DropStatusFields(RefusedIn(patch, refused), &patch)) return object;
    written = send();
  }
  return written;
}

bool StatusWriter::Differs(const Pass& pass, const JobStatus& status) const {
  const int place = PlaceInQueue(pass.snapshot, status);
  const bool place_is_news = IsPlaceNews(pass.memory->memo.place_told, place);
  if (!DiffersInSubstance(pass.snapshot.job.status, status, place_is_news)) return false;
  const RefusedFields& refused = pass.memory->refused_fields;
  if (refused.empty()) return true;
  // What is refused always differs.
  const Result<std::shared_ptr<const Json>> object = loader_.ObjectOf(pass);
  if (!object.ok()) return true;  // the write finds out
  Json patch = MakeStatusPatch(**object, status);
  if (!DropStatusFields(RefusedIn(patch, refused), &patch)) return false;
  return DropStatusFields({"progress", "usage", "summary"}, &patch);
}

Status StatusWriter::Write(Pass* pass, const JobStatus& status) {
  LDNN_RETURN_IF_ERROR(CheckWanted());
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<const Json> object, loader_.ObjectOf(*pass));
  Json patch = MakeStatusPatch(*object, status);
  const std::set<std::string> refused = RefusedIn(patch, pass->memory->refused_fields);
  if (!DropStatusFields(refused, &patch)) return OkStatus();
  patch["metadata"]["resourceVersion"] = pass->version.resource_version;
  const JobStatus before = pass->snapshot.job.status;
  const int place = PlaceInQueue(pass->snapshot, status);
  Result<Json> written = Patch(pass, *object, std::move(patch));
  if (!written.ok()) {
    ReadBack(pass);
    return written.status().WithContext("cannot write the status of job " + pass->name.name);
  }
  cache_.Put(*std::move(written));
  LDNN_RETURN_IF_ERROR(loader_.Load(pass));
  pass->memory->memo.place_told = place;
  pass->memory->status_written = dependencies_.runtime.clock.Now();
  pass->memory->progress_written = *pass->memory->status_written;
  RecordChanges(*pass, before, pass->snapshot.job.status);
  return OkStatus();
}

void StatusWriter::RecordChanges(const Pass& pass, const JobStatus& before,
                                 const JobStatus& after) {
  std::set<std::string> said;
  for (const Condition& condition : ChangedConditions(before, after)) {
    // Reason::kPlanned has just said it.
    const Condition* const was = FindCondition(before.conditions, condition.type);
    const bool begins = HasReason(condition, Reason::kFunctionsStarting) &&
                        (was == nullptr || was->status == "Unknown");
    // Ready and Stalled repeat what another condition says of the end.
    const bool repeats = !said.insert(condition.reason + ": " + condition.message).second;
    if (dependencies_.record_event && !begins && !repeats) {
      dependencies_.record_event(MakeEvent(pass.snapshot.job, condition));
    }
    Json told = {{"type", "event"},
                 {"job", pass.name.name},
                 {"time", pass.memory->Time(pass.snapshot.now)},
                 {"condition", condition.type},
                 {"status", condition.status},
                 {"reason", condition.reason},
                 {"message", condition.message}};
    loader_.Tell(pass, std::move(told));
  }
}

Status StatusWriter::WriteFinalizers(Pass* pass, bool with_ours) {
  std::vector<std::string> finalizers = pass->snapshot.job.metadata.finalizers;
  std::erase(finalizers, kCleanupFinalizer);
  if (with_ours) finalizers.emplace_back(kCleanupFinalizer);
  Json patch = {
      {"metadata",
       {{"finalizers", finalizers}, {"resourceVersion", pass->version.resource_version}}}};
  if (with_ours) patch["metadata"]["annotations"][kJobIdAnnotation] = JobIdOf(pass->snapshot.job);
  Result<Json> written =
      dependencies_.kube.Patch(ServerlessTrainingJobType(), pass->name, patch, Subresource::kNone);
  if (!written.ok()) {
    ReadBack(pass);
    if (!with_ours && pass->gone) return OkStatus();
    return written.status().WithContext("cannot write the finalizers of job " + pass->name.name);
  }
  if (!with_ours) {
    pass->gone = true;
    cache_.Remove(pass->name, pass->version.uid);
    return OkStatus();
  }
  cache_.Put(*std::move(written));
  return loader_.Load(pass);
}

}  // namespace lambdadnn
