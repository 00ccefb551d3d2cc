// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/job_follow.h"

#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

class Follower {
 public:
  Follower(KubeClient& kube, Runtime& runtime, const ObjectName& name,
           const std::function<std::optional<int>(const Json& object)>& visit,
           const FollowOptions& options)
      : kube_(kube), runtime_(runtime), name_(name), visit_(visit), options_(options) {}

  Result<int> Run() {
    Instant answered = runtime_.clock.Now();
    while (true) {
      Result<int> ended = Once();
      if (ended.ok()) return ended;
      const Instant now = runtime_.clock.Now();
      // The stream ended, or history was compacted: the server is there.
      if (progress_) answered = now;
      progress_ = false;
      const StatusCode code = ended.status().code();
      if (code != StatusCode::kUnavailable && code != StatusCode::kOutOfRange) return ended;
      if (now - answered > FromSeconds(options_.patience_seconds)) return ended;
      if (!object_.is_null()) {
        if (const auto code_of_visit = visit_(object_)) return *code_of_visit;
      }
      runtime_.clock.SleepFor(FromSeconds(options_.retry_seconds));
    }
  }

 private:
  // Reads the job and watches it until the watch ends.
  Result<int> Once() {
    auto object = kube_.Get(ServerlessTrainingJobType(), name_);
    const bool seen = !object_.is_null();
    if (!object.ok()) {
      return seen && object.status().code() == StatusCode::kNotFound ? Gone() : object.status();
    }
    progress_ = true;
    const std::string version = MetadataText(*object, "resourceVersion");
    if (seen && MetadataText(*object, "uid") != MetadataText(object_, "uid")) return Gone();
    object_ = *std::move(object);
    if (const auto code = visit_(object_)) return *code;
    LDNN_ASSIGN_OR_RETURN(
        const std::unique_ptr<Watch> watch,
        kube_.StartWatch(ServerlessTrainingJobType(), name_.namespace_name, "", version));
    while (true) {
      Result<WatchEvent> event = watch->Next(FromSeconds(options_.tick_seconds));
      if (event.ok()) {
        if (event->kind == WatchEvent::Kind::kError) return UnavailableError("the watch ended");
        if (event->kind == WatchEvent::Kind::kBookmark || NameOf(event->object) != name_) continue;
        if (MetadataText(event->object, "uid") != MetadataText(object_, "uid")) return Gone();
        object_ = std::move(event->object);
        if (const auto code = visit_(object_)) return *code;
        if (event->kind == WatchEvent::Kind::kDeleted) return Gone();
      } else if (event.status().code() == StatusCode::kDeadlineExceeded) {
        if (const auto code = visit_(object_)) return *code;
      } else if (event.status().code() == StatusCode::kPermissionDenied) {
        return Poll();
      } else {
        return event.status();
      }
    }
  }

  // For users who may read a job but not watch.
  Result<int> Poll() {
    while (true) {
      runtime_.clock.SleepFor(FromSeconds(options_.retry_seconds));
      LDNN_ASSIGN_OR_RETURN(object_, kube_.Get(ServerlessTrainingJobType(), name_));
      progress_ = true;
      if (const auto code = visit_(object_)) return *code;
    }
  }

  Status Gone() const {
    return NotFoundError("job " + name_.name + " in namespace " + name_.namespace_name +
                         " was deleted");
  }

  KubeClient& kube_;
  Runtime& runtime_;
  const ObjectName name_;
  const std::function<std::optional<int>(const Json& object)>& visit_;
  const FollowOptions options_;
  Json object_;            // the newest one seen
  bool progress_ = false;  // the server has answered since Run last checked
};

}  // namespace

Result<int> FollowJob(KubeClient& kube, Runtime& runtime, const ObjectName& name,
                      const std::function<std::optional<int>(const Json& object)>& visit,
                      const FollowOptions& options) {
  return Follower(kube, runtime, name, visit, options).Run();
}

}  // namespace lambdadnn
