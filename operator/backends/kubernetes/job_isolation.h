// SPDX-License-Identifier: Apache-2.0
// What the pods of a job are to others: a ServiceAccount without rights, which also names what
// their images are pulled with, and a NetworkPolicy that bounds them. Both belong to the job, are
// made before its first pod, made again when somebody deletes or changes them, and taken away with
// the job's key. Where the operator may not write them, the job runs without and an event says so.
//
// Policies are known from one watch of all of ours; what a job wants is known from its groups, or
// of a job that a leader before started, from the policy that was there. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/kube/event_recorder.h"
#include "operator/kube/informer.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/function_group.h"
#include "operator/resources/network_policy.h"

namespace lambdadnn {

// core/v1 serviceaccounts; networking.k8s.io/v1 networkpolicies.
const ResourceType& ServiceAccountType();
const ResourceType& NetworkPolicyType();

struct PodIdentity {
  std::string account;  // empty = the namespace's default
  // Named by the pods themselves, where the account does not name all that are wanted.
  std::vector<std::string> pull_secrets = {};
};

class JobIsolation {
 public:
  struct Options {
    // No value = no policies.
    std::optional<JobNetworkOptions> network = {};
    std::vector<std::string> namespaces = {};  // empty = all
    // Secrets of each namespace that images are pulled with, beside those that its default account
    // names.
    std::vector<std::string> pull_secrets = {};
    // Told once a job and process what may not be written. Null = nobody is told.
    std::function<void(EventDraft)> record_event = nullptr;
    // What was written or seen right is not looked at again for this long.
    double seen_seconds = 2;
    // The same for what may not be written.
    double forbidden_seconds = 60;
    // A policy that is gone for so long with nobody asking for its job is forgotten.
    double forget_seconds = 600;
  };

  // Both outlive this. The watch begins at once.
  JobIsolation(KubeClient& kube, Runtime& runtime, Options options);

  // Makes what is missing, before pods of the group are made. kUnavailable: an object of that name
  // is somebody else's.
  Result<PodIdentity> Ensure(const FunctionGroup& group);
  // Makes the policy anew that somebody deleted or changed under the running job; no request while
  // it is as it should be. What fails is tried again at the next call.
  void Keep(const std::string& job_uid);
  // Deletes the account, without which pods that run go on, and none can be made. False: it is not
  // this job's own, or may not be deleted.
  Result<bool> WithdrawAccount(const ObjectName& name, const std::string& job_uid);
  // Deletes both.
  Status Release(const std::string& namespace_name, const std::string& job_name,
                 const std::string& job_uid);

 private:
  struct Wanted {
    Json policy;
    // The spec as the API server has it now, which may write it in another way.
    Json kept_spec;
    Instant look_again{};
    bool released = false;              // and not wanted again since
    std::optional<Instant> gone_since;  // released, or seen to be gone
  };

  void Index(const ObjectName& policy);
  // The account; null where none may be written.
  Result<Json> EnsureAccount(const FunctionGroup& group);
  // As far as it may be read; null where not.
  Result<Json> ReadAccount(const ObjectName& name);
  Status EnsurePolicy(const std::string& job_uid, const Json& policy);
  // Creates or replaces; the spec as the server keeps it.
  Result<Json> WritePolicy(const std::string& job_uid, const Json& policy);
  bool IsRight(const Wanted& wanted, const Json* object) const;
  std::shared_ptr<const Json> Cached(const ObjectName& name) const;
  // Whether there is none of this name now.
  Result<bool> DeleteOurs(const ResourceType& type, const ObjectName& name,
                          const std::string& job_uid);
  void Tell(const ObjectName& job, const std::string& job_uid, const std::string& what,
            const Status& status);

  KubeClient& kube_;
  Runtime& runtime_;
  const Options options_;
  mutable std::mutex mutex_;
  // With the mutex:
  std::map<std::string, Wanted> wanted_;      // by the job's uid
  std::map<ObjectName, std::string> job_of_;  // of policies
  std::set<std::string> told_;                // "UID what"
  std::optional<Informer> policies_;          // last: it calls Index
};

}  // namespace lambdadnn
