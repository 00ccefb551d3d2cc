// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/job_progress.h"

#include <cstdio>

#include "operator/api/job_codec.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/job_follow.h"
#include "operator/cli/command.h"
#include "operator/cli/job_outcome.h"
#include "operator/cli/run/interrupts.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {
namespace {

// An operator that runs acts on a new job within a second or two.
constexpr double kSilenceSeconds = 15;

}  // namespace

JobProgress::JobProgress(Runtime& runtime, RunOutput& output, bool quiet_start)
    : runtime_(runtime), output_(output), quiet_start_(quiet_start), begin_(runtime.clock.Now()) {}

std::optional<int> JobProgress::Show(const Json& object) {
  std::vector<FieldError> ignored;  // a newer operator's
  const Job job = DecodeJob(object, &ignored);
  TellConditions(job);
  TellSilence(job);
  output_.Update(job);
  if (!IsFinished(job)) return std::nullopt;
  return ExitCodeOfFinished(job);
}

void JobProgress::TellConditions(const Job& job) {
  for (const Condition& condition : job.status.conditions) {
    const std::pair<std::string, std::string> now = {condition.status, condition.reason};
    if (known_[condition.type] == now) continue;
    known_[condition.type] = now;
    if (first_ && quiet_start_) continue;
    output_.OnEvent({{"type", "event"},
                     {"time", ToSeconds(runtime_.clock.Now() - begin_)},
                     {"condition", condition.type},
                     {"status", condition.status},
                     {"reason", condition.reason},
                     {"message", condition.message}});
  }
  first_ = false;
}

void JobProgress::TellSilence(const Job& job) {
  if (told_silence_ || !job.status.phase.empty() || !job.status.conditions.empty()) return;
  if (runtime_.clock.Now() - begin_ < FromSeconds(kSilenceSeconds)) return;
  told_silence_ = true;
  output_.Say(job.spec.managed_by.empty()
                  ? "no operator has reconciled the job yet; is lambdadnn-operator running, and "
                    "does it look after namespace " +
                        job.metadata.namespace_name + "?"
                  : "spec.managedBy names " + job.spec.managed_by +
                        ", so lambdadnn-operator leaves the job alone");
}

int FollowToTheEnd(KubeClient& kube, Runtime& runtime, const ObjectName& name,
                   const std::string& format, const std::string& server, bool quiet_start) {
  RunOutput output(runtime, ChooseMode(format), "");
  JobProgress progress(runtime, output, quiet_start);
  const Interrupts interrupts;
  std::string failure;
  const Result<int> code = FollowJob(kube, runtime, name, [&](const Json& object) {
    if (interrupts.Count() > 0) return std::optional<int>(kExitInterrupted);
    const std::optional<int> ended = progress.Show(object);
    if (ended) {
      std::vector<FieldError> ignored;
      failure = DescribeFailure(DecodeJob(object, &ignored));
    }
    return ended;
  });
  if (code.ok() && *code == kExitInterrupted) {
    output.Say("the job runs on; watch it with: lambdadnn status " + name.name + " -n " +
               name.namespace_name + " -w");
  }
  output.Finish();
  if (!failure.empty()) std::fprintf(stderr, "error: %s\n", failure.c_str());
  if (code.ok()) return *code;
  const bool missing = code.status().code() == StatusCode::kNotFound;
  // A job that this command made, or that it has seen.
  if (missing && (!quiet_start || progress.any())) {
    return FailCommand(NotFoundError("job " + name.name + " in namespace " + name.namespace_name +
                                     " was deleted"));
  }
  return FailCommand(ExplainJobError(code.status(), name, server));
}

}  // namespace lambdadnn
