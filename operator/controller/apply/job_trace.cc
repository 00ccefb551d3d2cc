// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/apply/job_trace.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/base/text.h"
#include "operator/api/backend_kind.h"
#include "operator/api/conditions.h"
#include "operator/backends/kubernetes/pod_instances.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

// Of a job that ended longer ago than this before the process saw it, an earlier one sent the
// spans.
constexpr Duration kLateEnd = std::chrono::minutes(5);
// A first stretch that begins later was not the job's first.
constexpr double kFirstSeconds = 5;
constexpr const char* kRootKey = "job";
constexpr int64_t kBytesPerMib = int64_t{1} << 20;

// Of a plan: revision, incarnation, first iteration.
using RoundKey = std::tuple<int, int64_t, int64_t>;

struct SliceOfFunction {
  const std::string* invocation;
  const SliceEntry* slice;
  const FunctionEntry* function;
};

bool IsProfile(const SliceOfFunction& one) {
  return KindOfGroup(one.function->group) == GroupKind::kProfile;
}

// Of its own: not when the operator ended it because of another, or a function that only kept the
// machine busy while others were measured.
bool IsBad(const SliceOfFunction& one) {
  const SliceEntry& slice = *one.slice;
  if (slice.outcome == "Lost") return !IsProfile(one);
  return slice.outcome == "Failed" && slice.error != StatusCodeName(StatusCode::kCancelled);
}

std::string KeyOf(const RoundKey& round) {
  const auto& [revision, incarnation, first] = round;
  return "round/" + std::to_string(revision) + "/" + std::to_string(incarnation) + "/" +
         std::to_string(first);
}

std::string OutcomeOf(const Job& job) {
  if (HasCondition(job, kConditionComplete)) return "Complete";
  if (HasCondition(job, kConditionFailed)) return "Failed";
  return "Deleted";
}

std::string FailureOf(const Job& job) {
  const Condition* failed = FindCondition(job, kConditionFailed);
  return failed != nullptr && failed->status == "True" ? failed->reason : "";
}

// What a history that was stored and read again tells is the same to the millisecond.
WallTime Rounded(WallTime time) { return std::chrono::round<std::chrono::milliseconds>(time); }

class Trace {
 public:
  Trace(const Job& job, const JobHistory& history, bool pods, std::optional<WallTime> deleted)
      : job_(job),
        history_(history),
        pods_(pods),
        trace_id_(TraceIdOf(job.metadata.uid)),
        end_(deleted) {
    WallTime completed;
    if (!end_ && ParseRfc3339(job.status.completion_time, &completed)) end_ = completed;
  }

  std::vector<Span> Spans() && {
    AddJob();
    if (history_.stretches().empty()) return std::move(spans_);
    AddQueued();
    AddProfile();
    AddPlans();
    AddStarts();
    AddSlices();
    AddCleanup();
    return std::move(spans_);
  }

 private:
  // A moment at which something began, and one at which something ended: a job's time that stops
  // and goes on again is both.
  WallTime Begin(double active) const { return Wall(active, 0); }
  WallTime End(double active) const { return Wall(active, 1e-6); }
  WallTime Wall(double active, double margin) const {
    const std::vector<ActiveStretch>& stretches = history_.stretches();
    const ActiveStretch* of = &stretches.front();
    for (const ActiveStretch& stretch : stretches) {
      if (stretch.active + margin <= active) of = &stretch;
    }
    return of->wall + FromSeconds(active - of->active);
  }

  Span& Add(const std::string& key, const char* name, WallTime start, WallTime end,
            const std::string& parent = kRootKey) {
    Span span;
    span.trace_id = trace_id_;
    span.span_id = SpanIdOf(trace_id_, key);
    if (key != kRootKey) span.parent_span_id = SpanIdOf(trace_id_, parent);
    span.name = name;
    span.start = Rounded(start);
    span.end = std::max(span.start, Rounded(end));
    spans_.push_back(std::move(span));
    return spans_.back();
  }

  void AddJob() {
    WallTime created;
    if (!end_.has_value() || !ParseRfc3339(job_.metadata.creation_timestamp, &created)) return;
    const JobStatus& status = job_.status;
    Span& span = Add(kRootKey, "job", created, *end_);
    span.Add("k8s.namespace.name", job_.metadata.namespace_name);
    span.Add("lambdadnn.job.name", job_.metadata.name);
    span.Add("lambdadnn.job.uid", job_.metadata.uid);
    const std::string outcome = OutcomeOf(job_);
    span.Add("lambdadnn.job.outcome", outcome);
    span.Add("error.type", FailureOf(job_));
    span.failed = outcome == "Failed";
    span.Add("lambdadnn.job.iterations", status.progress.iteration);
    span.Add("lambdadnn.job.slices", status.usage.slices);
    span.Add("lambdadnn.job.restarts", status.usage.restarts);
    span.Add("lambdadnn.job.cold_starts", status.usage.cold_starts);
    span.Add("lambdadnn.job.cost", status.usage.cost);
  }

  // Before the first stretch and between two of them the job has no functions: it waits for
  // capacity, or is suspended.
  void AddQueued() {
    const std::vector<ActiveStretch>& stretches = history_.stretches();
    WallTime since;
    const ActiveStretch& first = stretches.front();
    if (first.active < kFirstSeconds && ParseRfc3339(job_.metadata.creation_timestamp, &since)) {
      Add("queued/0", "queued", since, first.wall - FromSeconds(first.active));
    }
    for (size_t i = 1; i < stretches.size(); ++i) {
      const double active = stretches[i].active - stretches[i - 1].active;
      const WallTime end = stretches[i].wall;
      Add("queued/" + std::to_string(Rounded(end).time_since_epoch().count()), "queued",
          stretches[i - 1].wall + FromSeconds(active), end);
    }
  }

  void AddProfile() {
    if (history_.profiling_seconds <= 0) return;
    Add("profile", "profile", Begin(0), End(history_.profiling_seconds));
  }

  void AddPlans() {
    for (const PlanRecord& plan : job_.status.plan_history) {
      const bool first = plan.revision == 1;
      const double since =
          first ? std::min(history_.profiling_seconds, plan.at_seconds) : plan.at_seconds;
      Span& span = Add("plan/" + std::to_string(plan.revision), first ? "plan" : "replan",
                       Begin(since), End(plan.at_seconds));
      span.Add("lambdadnn.plan.revision", int64_t{plan.revision});
      span.Add("lambdadnn.plan.functions", int64_t{plan.functions});
      span.Add("lambdadnn.plan.memory", plan.memory_mib * kBytesPerMib);
      span.Add("lambdadnn.plan.first_iteration", plan.first_iteration);
      if (plan.predicted_seconds <= 0) continue;
      span.Add("lambdadnn.plan.predicted_seconds", plan.predicted_seconds);
      span.Add("lambdadnn.plan.predicted_cost", plan.predicted_cost);
    }
  }

  // From a plan until all its functions were ready, and each of them.
  void AddStarts() {
    if (job_.status.plan.has_value() && history_.functions_ready_at > 0) {
      Span& span = Add("start/" + std::to_string(job_.status.plan->revision), "start functions",
                       Begin(std::min(history_.planned_at, history_.functions_ready_at)),
                       End(history_.functions_ready_at));
      span.Add("lambdadnn.plan.revision", int64_t{job_.status.plan->revision});
    }
    for (const auto& [uid, function] : history_.functions()) {
      if (!function.ready.has_value()) continue;
      Span& span =
          Add("function/" + uid, "cold start", Begin(function.created), End(*function.ready));
      AddFunction(function, &span);
    }
  }

  void AddFunction(const FunctionEntry& function, Span* span) const {
    span->Add("faas.name", function.group);
    span->Add("faas.instance", function.uid);
    span->Add("faas.max_memory", function.memory_mib * kBytesPerMib);
    if (pods_) span->Add("k8s.pod.uid", PodUidOf(function.uid));
  }

  void AddSlices() {
    std::map<RoundKey, std::vector<SliceOfFunction>> rounds;
    for (const auto& [uid, function] : history_.functions()) {
      for (const auto& [invocation, slice] : function.slices) {
        const SliceOfFunction one{&invocation, &slice, &function};
        if (IsProfile(one)) {
          AddSlice(one, "profile");
        } else {
          const RoundKey round{slice.plan_revision, slice.incarnation, slice.first_iteration};
          rounds[round].push_back(one);
          AddSlice(one, KeyOf(round));
        }
      }
    }
    for (auto round = rounds.begin(); round != rounds.end(); ++round) {
      const auto next = std::next(round);
      // Slices that begin later belong to it, until there is another one.
      const bool over = next != rounds.end() || end_.has_value();
      if (over) AddRound(round->first, round->second);
      if (next != rounds.end()) AddRecovery(*round, *next);
    }
  }

  void AddSlice(const SliceOfFunction& one, const std::string& parent) {
    const SliceEntry& slice = *one.slice;
    if (slice.outcome.empty() && !end_.has_value()) return;
    Span& span =
        Add("slice/" + *one.invocation, "slice", Begin(slice.start), End(slice.end), parent);
    span.Add("faas.invocation_id", *one.invocation);
    AddFunction(*one.function, &span);
    span.Add("lambdadnn.role", slice.role);
    if (!IsProfile(one)) AddPlace(slice, &span);
    span.Add("lambdadnn.slice.outcome", slice.outcome);
    span.failed = IsBad(one);
    if (span.failed) span.Add("error.type", ErrorOf(one));
  }

  // Where in the training it was.
  static void AddPlace(const SliceEntry& slice, Span* span_of) {
    Span& span = *span_of;
    span.Add("lambdadnn.plan.revision", int64_t{slice.plan_revision});
    span.Add("lambdadnn.incarnation", slice.incarnation);
    span.Add("lambdadnn.slice.attempt", int64_t{slice.attempt});
    span.Add("lambdadnn.slice.first_iteration", slice.first_iteration);
    span.Add("lambdadnn.slice.next_iteration", slice.next_iteration);
    if (slice.checkpoint.has_value()) span.Add("lambdadnn.checkpoint.iteration", *slice.checkpoint);
  }

  // A status code, or how the function ended, without the words about it: these may quote data.
  static std::string ErrorOf(const SliceOfFunction& one) {
    if (!one.slice->error.empty()) return one.slice->error;
    const std::string& reason = one.function->reason;
    return reason.empty() ? one.slice->outcome : reason.substr(0, reason.find(':'));
  }

  void AddRound(const RoundKey& key, const std::vector<SliceOfFunction>& slices) {
    double start = slices.front().slice->start;
    double end = start;
    int64_t next = std::get<2>(key);
    bool failed = false;
    for (const SliceOfFunction& one : slices) {
      start = std::min(start, one.slice->start);
      end = std::max(end, one.slice->end);
      next = std::max(next, one.slice->next_iteration);
      failed = failed || IsBad(one);
    }
    Span& span = Add(KeyOf(key), "round", Begin(start), End(end));
    span.Add("lambdadnn.plan.revision", int64_t{std::get<0>(key)});
    span.Add("lambdadnn.incarnation", std::get<1>(key));
    span.Add("lambdadnn.slice.first_iteration", std::get<2>(key));
    span.Add("lambdadnn.slice.next_iteration", next);
    span.Add("lambdadnn.slices", static_cast<int64_t>(slices.size()));
    span.failed = failed;
  }

  // From the first slice that failed or was lost until the first of the next incarnation began.
  void AddRecovery(const std::pair<const RoundKey, std::vector<SliceOfFunction>>& round,
                   const std::pair<const RoundKey, std::vector<SliceOfFunction>>& next) {
    if (std::get<1>(next.first) <= std::get<1>(round.first)) return;
    const SliceOfFunction* lost = nullptr;
    for (const SliceOfFunction& one : round.second) {
      if (IsBad(one) && (lost == nullptr || one.slice->end < lost->slice->end)) lost = &one;
    }
    if (lost == nullptr) return;
    double resumed = next.second.front().slice->start;
    for (const SliceOfFunction& one : next.second) resumed = std::min(resumed, one.slice->start);
    Span& span = Add("recovery/" + std::to_string(std::get<1>(next.first)), "recovery",
                     Begin(lost->slice->end), End(resumed));
    span.Add("lambdadnn.incarnation", std::get<1>(next.first));
    span.Add("lambdadnn.slice.first_iteration", std::get<2>(next.first));
    span.Add("error.type", ErrorOf(*lost));
  }

  // From the last slice to the end of the job.
  void AddCleanup() {
    if (!end_.has_value()) return;
    if (const auto trained = history_.LastSliceEnd()) {
      Add("cleanup", "cleanup", End(*trained), *end_);
    }
  }

  const Job& job_;
  const JobHistory& history_;
  const bool pods_;
  const std::string trace_id_;
  std::optional<WallTime> end_;
  std::vector<Span> spans_;
};

// Different whenever there may be spans that were not there before.
std::string SeenOf(const Job& job, const JobHistory& history, bool gone) {
  const std::vector<PlanRecord>& plans = job.status.plan_history;
  const std::string parts[] = {std::to_string(history.changes()),
                               FormatDouble(history.profiling_seconds),
                               FormatDouble(history.functions_ready_at),
                               std::to_string(plans.empty() ? 0 : plans.back().revision),
                               job.status.completion_time,
                               gone ? "gone" : ""};
  return Join(parts, "|");
}

}  // namespace

std::vector<Span> JobTrace(const Job& job, const JobHistory& history, bool pods,
                           std::optional<WallTime> deleted) {
  return Trace(job, history, pods, deleted).Spans();
}

void TraceJob(Pass* pass, const std::function<void(std::vector<Span>)>& export_spans) {
  const Job& job = pass->snapshot.job;
  TraceProgress& traced = pass->memory->traced;
  const std::string seen = SeenOf(job, pass->memory->history, pass->gone);
  if (seen == traced.seen) return;
  const bool first = traced.seen.empty();
  traced.seen = seen;
  WallTime completed;
  const bool ended = ParseRfc3339(job.status.completion_time, &completed);
  traced.late = traced.late || (first && ended && pass->snapshot.wall - completed > kLateEnd);
  if (traced.late) return;
  const BackendKind backend = job.spec.backend.value_or(pass->snapshot.options->backend);
  std::optional<WallTime> deleted;
  if (pass->gone && !ended) deleted = pass->snapshot.wall;
  std::vector<Span> news;
  std::set<std::string> spans;  // those of slices that the history has dropped are forgotten, too
  for (Span& span : JobTrace(job, pass->memory->history, CapabilitiesOf(backend).pods, deleted)) {
    spans.insert(span.span_id);
    if (!traced.spans.contains(span.span_id)) news.push_back(std::move(span));
  }
  traced.spans = std::move(spans);
  if (!news.empty()) export_spans(std::move(news));
}

}  // namespace lambdadnn
