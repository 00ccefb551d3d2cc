// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/openfaas/openfaas_backend.h"

#include <algorithm>

#include "operator/backends/kubernetes/pod_instances.h"
#include "operator/cluster_view/openfaas_timeouts.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

// Which of the functions of its name, by the moment of its creation.
std::string CountedUid(const DeployedFunction& function) {
  return function.name + "@" + function.created_at;
}

std::string LabelOf(const DeployedFunction& function, const char* name) {
  const auto label = function.labels.find(name);
  return label == function.labels.end() ? "" : label->second;
}

FunctionInstance InstanceOf(const DeployedFunction& function, const OpenFaasGateway& gateway,
                            WallTime now) {
  FunctionInstance instance;
  instance.uid = CountedUid(function);
  instance.name = function.name;
  instance.group = LabelOf(function, kGroupLabel);
  instance.endpoint = gateway.EndpointOf(function.name);
  WallTime created;
  if (ParseRfc3339(function.created_at, &created)) {
    instance.age_seconds = std::max(0.0, ToSeconds(now - created));
  }
  if (function.available > 0) {
    instance.phase = FunctionPhase::kReady;
    return instance;
  }
  instance.phase = FunctionPhase::kPending;
  instance.reason = "NotAvailable";
  instance.message = "why is not known, since the operator may not read pods in namespace " +
                     gateway.options().function_namespace;
  return instance;
}

ClusterReader::Options ReaderOptions(const OpenFaasBackend::Options& options) {
  ClusterReader::Options of_place = OpenFaasReaderOptions(options.place);
  of_place.fresh_seconds = options.limits_seconds;
  of_place.watch = true;
  return of_place;
}

bool IsForbidden(const Status& status) { return status.code() == StatusCode::kPermissionDenied; }

}  // namespace

OpenFaasBackend::OpenFaasBackend(KubeClient& kube, Runtime& runtime,
                                 std::unique_ptr<HttpTransport> transport, Options options)
    : runtime_(runtime),
      options_(std::move(options)),
      transport_(std::move(transport)),
      gateway_(*transport_, options_.gateway),
      reader_(kube, runtime, ReaderOptions(options_)),
      logs_(kube, runtime, pods_),
      pods_(kube, runtime,
            {.namespaces = {options_.functions.function_namespace},
             .place = options_.functions.function_namespace,
             .lost_node_seconds = options_.lost_node_seconds},
            [this](const ObjectName& pod) { logs_.Forget(pod); }),
      functions_(kube, runtime, pods_, logs_, reader_,
                 {.grace_seconds = options_.grace_seconds,
                  .endpoint_of =
                      [this](const Json& pod) {
                        return gateway_.EndpointOf(LabelText(pod, kOpenFaasFunctionLabel));
                      }}),
      table_(gateway_, runtime.clock, options_.list_seconds),
      writer_(runtime.executor, gateway_, table_, options_.functions) {
  pods_.Start();
}

bool OpenFaasBackend::ReadsPods() const { return !IsForbidden(pods_.Problem()); }

Result<int> OpenFaasBackend::MaxFunctions() {
  if (options_.place.max_functions > 0) return options_.place.max_functions;
  {
    const std::lock_guard lock(mutex_);
    if (edition_.has_value() &&
        runtime_.clock.Now() - edition_->second < FromSeconds(options_.limits_seconds)) {
      return edition_->first.max_functions;
    }
  }
  LDNN_ASSIGN_OR_RETURN(OpenFaasEdition edition, gateway_.Info());
  const std::lock_guard lock(mutex_);
  edition_.emplace(std::move(edition), runtime_.clock.Now());
  return edition_->first.max_functions;
}

Status OpenFaasBackend::EnsureGroup(const FunctionGroup& group) {
  const JobIdentity job = JobOf(group);
  if (group.count == 0) return DeleteGroup(job, group.name);
  if (ReadsPods()) {
    LDNN_RETURN_IF_ERROR(pods_.CheckSynced());
    const Status deleted = functions_.DeleteCrashLooping(job, group.name);
    // The kubelet starts them again by itself, only later.
    if (!deleted.ok() && !IsForbidden(deleted)) return deleted;
  }
  LDNN_ASSIGN_OR_RETURN(const int max_functions, MaxFunctions());
  return writer_.Ensure(group, max_functions);
}

Status OpenFaasBackend::DeleteGroup(const JobIdentity& job, const std::string& group) {
  LDNN_RETURN_IF_ERROR(writer_.Delete(job, group));
  // Kubernetes' usual grace of 30 s would only hold their memory. Others are deleted by what owns
  // them, which would replace one that is deleted here.
  for (const std::shared_ptr<const Json>& pod : pods_.PodsOf(job, group)) {
    if (!EndsLater(*pod, options_.grace_seconds)) continue;
    const Status deleted = functions_.DeletePod(*pod);
    if (!deleted.ok() && !IsForbidden(deleted)) return deleted;
  }
  return OkStatus();
}

Status OpenFaasBackend::DeleteInstance(const JobIdentity& job, const std::string& uid) {
  if (!ReadsPods()) return DeleteCounted(job, uid);
  const Status deleted = functions_.DeleteInstance(job, uid);
  if (!IsForbidden(deleted)) return deleted;
  const std::shared_ptr<const Json> pod = pods_.PodOf(job, uid);
  return pod == nullptr ? OkStatus() : gateway_.Delete(LabelText(*pod, kOpenFaasFunctionLabel));
}

Status OpenFaasBackend::DeleteCounted(const JobIdentity& job, const std::string& uid) {
  LDNN_ASSIGN_OR_RETURN(const auto functions, table_.Now());
  for (const DeployedFunction& function : *functions) {
    const bool is_it = IsFunctionOf(function, job, "") && CountedUid(function) == uid;
    if (is_it && !table_.IsGoing(function)) return writer_.DeleteFunction(function);
  }
  return OkStatus();
}

Status OpenFaasBackend::ReleaseJob(const JobIdentity& job) { return writer_.Delete(job, ""); }

Result<std::vector<FunctionInstance>> OpenFaasBackend::List(const JobIdentity& job) {
  if (!ReadsPods()) return Counted(job);
  LDNN_RETURN_IF_ERROR(pods_.CheckSynced());
  return functions_.List(job);
}

Result<std::vector<FunctionInstance>> OpenFaasBackend::Counted(const JobIdentity& job) {
  LDNN_ASSIGN_OR_RETURN(const auto functions, table_.Now());
  std::vector<FunctionInstance> instances;
  for (const DeployedFunction& function : *functions) {
    if (!IsFunctionOf(function, job, "")) continue;
    instances.push_back(InstanceOf(function, gateway_, runtime_.clock.Wall()));
    if (table_.IsGoing(function)) instances.back().phase = FunctionPhase::kTerminating;
  }
  return instances;
}

Status OpenFaasBackend::SetCpu(const JobIdentity&, const std::string&, int) {
  return UnimplementedError("the CPU quota of a function of OpenFaaS cannot change while it runs");
}

Result<std::string> OpenFaasBackend::Logs(const JobIdentity& job, const std::string& uid,
                                          int last_lines) {
  if (ReadsPods()) return functions_.Logs(job, uid, last_lines);
  return gateway_.Logs(uid.substr(0, uid.find('@')), last_lines);
}

Result<FunctionCapacity> OpenFaasBackend::Capacity() {
  LDNN_ASSIGN_OR_RETURN(FunctionCapacity capacity, reader_.Capacity());
  LDNN_ASSIGN_OR_RETURN(const int most, MaxFunctions());
  if (most > 0 && (capacity.functions == 0 || most < capacity.functions)) capacity.functions = most;
  return capacity;
}

Result<ClusterLimits> OpenFaasBackend::Limits(const std::string&, const PodTemplate& pods) {
  LDNN_ASSIGN_OR_RETURN(ClusterLimits limits,
                        reader_.Limits(options_.functions.function_namespace, pods));
  LDNN_ASSIGN_OR_RETURN(const int most, MaxFunctions());
  if (most == 0) return limits;
  LDNN_ASSIGN_OR_RETURN(const auto functions, table_.Now());
  // Those of other jobs end.
  const auto of_users = std::count_if(
      functions->begin(), functions->end(),
      [](const DeployedFunction& each) { return LabelOf(each, kJobUidLabel).empty(); });
  limits.max_functions = most;
  limits.max_functions_source =
      options_.place.max_functions > 0 ? "--openfaas-max-functions" : "the edition of OpenFaaS";
  LeaveRoomFor(static_cast<int>(of_users), &limits);
  return limits;
}

Status OpenFaasBackend::Preflight(const FunctionGroup& group) {
  const std::vector<FunctionGroup> members = MembersOf(group);
  if (members.empty()) return OkStatus();
  LDNN_ASSIGN_OR_RETURN(const std::string name, UniqueOpenFaasFunctionName(members.front()));
  LDNN_RETURN_IF_ERROR(OpenFaasFunction(members.front(), name, options_.functions).status());
  LDNN_ASSIGN_OR_RETURN(const ClusterLimits limits, Limits(group.namespace_name, group.pods));
  if (!IsTooShort(limits.request_timeout_seconds)) return OkStatus();
  return FailedPreconditionError(
      TooShortText(limits.request_timeout_seconds, limits.request_timeout_source) + "; " +
      kTimeoutRemedy);
}

}  // namespace lambdadnn
