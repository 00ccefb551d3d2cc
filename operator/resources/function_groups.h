// SPDX-License-Identifier: Apache-2.0
// From a job and its plan to the groups of functions that it needs: pure builders, no I/O. Every
// backend turns a FunctionGroup into its platform's own objects.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/api/job.h"
#include "operator/resources/function_group.h"
#include "operator/resources/job_key.h"

namespace lambdadnn {

inline constexpr const char* kProfileGroup = "profile";

// "workers" and "servers" of revision 1; "workers-r2" and so on of later ones, so that functions of
// two revisions never pass for one another.
std::string WorkersGroupName(int plan_revision);
std::string ServersGroupName(int plan_revision);
// The kind of a group with one of these names.
enum class GroupKind { kWorkers, kServers, kProfile };
GroupKind KindOfGroup(const std::string& name);

// What every function of a job is told by its environment: the key that its callers must show, the
// certificate that it shows them, and the credentials of the store (never part of a slice request).
struct FunctionSecrets {
  JobKey job_key;
  std::map<std::string, std::string> store_environment;
};

// The environment variable that carries the job's key.
inline constexpr const char* kJobKeyVariable = "LAMBDADNN_JOB_KEY";
// Those of a function that is reached over TLS: certificate and key, and where it serves them.
inline constexpr const char* kTlsCertificateVariable = "LAMBDADNN_TLS_CERTIFICATE";
inline constexpr const char* kTlsKeyVariable = "LAMBDADNN_TLS_KEY";
inline constexpr const char* kTlsPortVariable = "LAMBDADNN_TLS_PORT";
// Beside the function's port and those of queue-proxy in its pod.
inline constexpr int kFunctionTlsPort = 8443;

// Of a function that others of its job connect to: where, in a pod, and in which way (the name of a
// PeerChannelMode).
inline constexpr const char* kPeerPortVariable = "LAMBDADNN_PEER_PORT";
inline constexpr const char* kPeerChannelVariable = "LAMBDADNN_PEER_CHANNEL";
inline constexpr int kPeerPort = 8444;

// What a worker's models compute on, and its value for GPUs (docs/formats.md, environment).
inline constexpr const char* kComputeDeviceVariable = "LAMBDADNN_DEVICE";
inline constexpr const char* kCudaDevice = "cuda";
// The precision of the job's model, where it is another than float32: decides a worker's bits.
inline constexpr const char* kPrecisionOfModelVariable = "LAMBDADNN_PRECISION";

// Whether the group's functions listen to each other.
bool HasPeerChannel(const FunctionGroup& group);
// Whether the group's functions are reached over TLS.
bool ServesTls(const FunctionGroup& group);

// Its functions one by one, each with the number of its place.
std::vector<FunctionGroup> MembersOf(const FunctionGroup& group);
// The operator's, by what they are for; those of workers with a GPU hold CUDA's libraries.
struct FunctionImages {
  std::string worker = {};
  std::string server = {};
  std::string worker_gpu = {};
};
// What its functions run: of the job, or else of the operator. kFailedPrecondition says who may
// name one.
Result<std::string> ImageOf(const FunctionGroup& group, const FunctionImages& images);

// Workers, then servers, of the plan in the job's status.
std::vector<FunctionGroup> PlannedGroups(const Job& job, const Platform& platform,
                                         const FunctionSecrets& secrets);
// `count` functions of the largest size, which the profiler slows down by their CPU quota.
FunctionGroup ProfileGroup(const Job& job, const Platform& platform, int count, int memory_mib,
                           const FunctionSecrets& secrets);

}  // namespace lambdadnn
