// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/job_list.h"

#include <algorithm>
#include <set>

#include "operator/cli/run/interrupts.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

constexpr double kTickSeconds = 0.25;
constexpr double kRetrySeconds = 1;
constexpr double kPatienceSeconds = 120;

}  // namespace

Result<KubeList> ListJobs(KubeClient& kube, const std::string& namespace_name) {
  return ListAll(kube, ServerlessTrainingJobType(), namespace_name);
}

JobTableWatch::JobTableWatch(KubeClient& kube, Runtime& runtime, std::string namespace_name,
                             JobTableOptions options)
    : kube_(kube),
      runtime_(runtime),
      namespace_name_(std::move(namespace_name)),
      options_(options) {}

Status JobTableWatch::Run(const std::function<void(const std::string& text)>& print) {
  print_ = print;
  const Interrupts interrupts;
  const auto interrupted = [&] { return interrupts.Count() > 0; };
  Instant answered = runtime_.clock.Now();
  while (!interrupted()) {
    const Status ended = Once(interrupted);
    if (ended.ok()) return ended;
    const Instant now = runtime_.clock.Now();
    if (answered_) answered = now;
    answered_ = false;
    const StatusCode code = ended.code();
    if (code != StatusCode::kUnavailable && code != StatusCode::kOutOfRange) return ended;
    if (now - answered > FromSeconds(kPatienceSeconds)) return ended;
    runtime_.clock.SleepFor(FromSeconds(kRetrySeconds));
  }
  return OkStatus();
}

// Lists, then watches until the watch ends; OK only when interrupted.
Status JobTableWatch::Once(const std::function<bool()>& interrupted) {
  LDNN_ASSIGN_OR_RETURN(const KubeList list, ListJobs(kube_, namespace_name_));
  answered_ = true;
  // The widths of all that is there, before the first line is printed.
  std::vector<TableRow> rows = {JobTableHeader(options_)};
  for (const Json& object : list.items) {
    rows.push_back(JobTableEntry(object, options_, runtime_.clock.Wall()));
  }
  FormatTable(rows, &widths_);
  ShowDeletedMeanwhile(list.items);
  for (const Json& object : list.items) Show(object, false);
  LDNN_ASSIGN_OR_RETURN(
      const std::unique_ptr<Watch> watch,
      kube_.StartWatch(ServerlessTrainingJobType(), namespace_name_, "", list.resource_version));
  while (!interrupted()) {
    Result<WatchEvent> event = watch->Next(FromSeconds(kTickSeconds));
    if (!event.ok()) {
      if (event.status().code() == StatusCode::kDeadlineExceeded) continue;
      return event.status();
    }
    if (event->kind == WatchEvent::Kind::kError) return UnavailableError("the watch ended");
    if (event->kind == WatchEvent::Kind::kBookmark) continue;
    Show(event->object, event->kind == WatchEvent::Kind::kDeleted);
  }
  return OkStatus();
}

// A job that was shown and is not in the list was deleted while there was no watch.
void JobTableWatch::ShowDeletedMeanwhile(const std::vector<Json>& listed) {
  std::set<std::string> there;
  for (const Json& object : listed) there.insert(UidOf(object));
  for (const auto& [uid, shown] : std::map(shown_)) {
    if (!there.contains(uid)) Show(shown.object, true);
  }
}

void JobTableWatch::Show(const Json& object, bool deleted) {
  TableRow row = JobTableEntry(object, options_, runtime_.clock.Wall());
  const TableRow header = JobTableHeader(options_);
  const auto column = [&](const char* name) {
    return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  if (deleted) row[column("STATE")] = "Deleted";
  TableRow without_age = row;
  without_age[column("AGE")].clear();
  const std::string uid = UidOf(object);
  Shown& known = shown_[uid];
  const bool same = known.without_age == without_age;
  known = {object, without_age};
  if (same) return;
  if (!header_shown_) print_(FormatTable({header}, &widths_));
  header_shown_ = true;
  print_(FormatTable({row}, &widths_));
  if (deleted) shown_.erase(uid);
}

}  // namespace lambdadnn
