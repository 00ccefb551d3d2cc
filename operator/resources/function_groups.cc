// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/function_groups.h"

#include <algorithm>
#include <utility>

#include "operator/api/peer_channel.h"

namespace lambdadnn {
namespace {

std::string WithRevision(const char* name, int plan_revision) {
  return plan_revision <= 1 ? name : std::string(name) + "-r" + std::to_string(plan_revision);
}

// Functions that profile as well: they measure exchanges as training will find them.
void AddPeerChannel(const JobSpec& spec, FunctionGroup* group) {
  if (!ConnectsFunctions(spec)) return;
  group->environment[kPeerPortVariable] = std::to_string(kPeerPort);
  group->environment[kPeerChannelVariable] = EnumName(spec.peer_channel);
}

FunctionGroup BaseGroup(const Job& job, const Platform& platform, const FunctionSecrets& secrets) {
  FunctionGroup group;
  group.job_uid = job.metadata.uid;
  group.namespace_name = job.metadata.namespace_name;
  group.job_name = job.metadata.name;
  group.timeout_seconds = platform.function_timeout_seconds;
  group.addressing = job.spec.addressing;
  group.pods = job.spec.pod_template;
  group.environment = secrets.store_environment;
  group.environment[kJobKeyVariable] = secrets.job_key.key;
  // With a Service of its own a function is reached through the ingress, which speaks plain HTTP.
  if (secrets.job_key.tls.has_value() && group.addressing == Addressing::kPod) {
    group.environment[kTlsCertificateVariable] = secrets.job_key.tls->certificate;
    group.environment[kTlsKeyVariable] = secrets.job_key.tls->private_key;
    group.environment[kTlsPortVariable] = std::to_string(kFunctionTlsPort);
  }
  AddPeerChannel(job.spec, &group);
  return group;
}

// OpenBLAS' own threads (its pthread variant) would spin away the quota of the others, or without
// quotas their cores; and how many there are decides on the bits of a product, so that every
// backend must have the same.
void LimitThreads(const Platform& platform, FunctionGroup* group) {
  group->environment["OPENBLAS_NUM_THREADS"] =
      std::to_string(ThreadsOf(platform, group->memory_mib));
}

void TellPrecision(const Job& job, FunctionGroup* group) {
  const Precision precision = job.spec.training.precision;
  if (precision == Precision::kFloat32) return;
  group->environment[kPrecisionOfModelVariable] = std::string(EnumName(precision));
}

void GiveGpus(int gpu, FunctionGroup* group) {
  group->gpu = gpu;
  if (gpu > 0) group->environment[kComputeDeviceVariable] = kCudaDevice;
}

}  // namespace

std::string WorkersGroupName(int plan_revision) { return WithRevision("workers", plan_revision); }
std::string ServersGroupName(int plan_revision) { return WithRevision("servers", plan_revision); }

GroupKind KindOfGroup(const std::string& name) {
  if (name == kProfileGroup) return GroupKind::kProfile;
  return name.starts_with(ServersGroupName(1)) ? GroupKind::kServers : GroupKind::kWorkers;
}

bool ServesTls(const FunctionGroup& group) {
  return group.environment.contains(kTlsCertificateVariable);
}

std::vector<FunctionGroup> MembersOf(const FunctionGroup& group) {
  std::vector<FunctionGroup> members(static_cast<size_t>(group.count), group);
  for (int i = 0; i < group.count; ++i) {
    members[static_cast<size_t>(i)].count = 1;
    members[static_cast<size_t>(i)].member = i;
  }
  return members;
}

Result<std::string> ImageOf(const FunctionGroup& group, const FunctionImages& images) {
  const std::string program = ProgramName(group.program);
  const std::string& own = group.program == FunctionProgram::kServer ? images.server
                           : group.gpu > 0                           ? images.worker_gpu
                                                                     : images.worker;
  const ContainerTemplate& settings = ContainerOf(group.pods, program);
  const std::string& image = settings.image.empty() ? own : settings.image;
  if (!image.empty()) return image;
  return FailedPreconditionError("no image for the functions of group " + group.name +
                                 "; set image of the container " + program +
                                 " in spec.podTemplate.spec.containers, or the operator's --" +
                                 program + (group.gpu > 0 ? "-gpu" : "") + "-image");
}

bool HasPeerChannel(const FunctionGroup& group) {
  return group.environment.contains(kPeerPortVariable);
}

std::vector<FunctionGroup> PlannedGroups(const Job& job, const Platform& platform,
                                         const FunctionSecrets& secrets) {
  LDNN_CHECK(job.status.plan.has_value(), "groups are asked for before there is a plan");
  const Plan& plan = *job.status.plan;
  FunctionGroup workers = BaseGroup(job, platform, secrets);
  workers.name = WorkersGroupName(plan.revision);
  workers.program = FunctionProgram::kWorker;
  workers.pods = PodsOfWorkers(std::move(workers.pods));
  workers.count = plan.functions;
  workers.memory_mib = plan.memory_mib;
  workers.milli_cpu = MilliCpuOf(platform, plan.memory_mib);
  LimitThreads(platform, &workers);
  GiveGpus(plan.gpu, &workers);
  TellPrecision(job, &workers);
  if (plan.aggregation.placement == Placement::kWorkers) return {workers};

  FunctionGroup servers = BaseGroup(job, platform, secrets);
  servers.name = ServersGroupName(plan.revision);
  servers.program = FunctionProgram::kServer;
  servers.count = plan.aggregation.server_functions();
  servers.memory_mib = plan.server_memory_mib;
  servers.milli_cpu = MilliCpuOf(platform, plan.server_memory_mib);
  return {workers, servers};
}

FunctionGroup ProfileGroup(const Job& job, const Platform& platform, int count, int memory_mib,
                           const FunctionSecrets& secrets) {
  FunctionGroup group = BaseGroup(job, platform, secrets);
  group.name = kProfileGroup;
  group.program = FunctionProgram::kWorker;
  group.pods = PodsOfWorkers(std::move(group.pods));
  group.count = count;
  group.memory_mib = memory_mib;
  group.milli_cpu = MilliCpuOf(platform, memory_mib);
  LimitThreads(platform, &group);
  GiveGpus(job.spec.functions.gpu, &group);
  TellPrecision(job, &group);
  return group;
}

}  // namespace lambdadnn
