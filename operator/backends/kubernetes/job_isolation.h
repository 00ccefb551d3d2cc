// SPDX-License-Identifier: Apache-2.0
// Isolation of a job's pods: a ServiceAccount without rights, which also names their image pull
// Secrets, and a NetworkPolicy. The job owns both. They are created before its first pod, restored
// when they are deleted or changed, and deleted with the job's key. Where the operator may not
// write them, the job runs without and an event says so.
//
// One watch shows all our policies. The desired policy of a job follows from its groups; for a job
// that an earlier leader started, it is the policy that was found. Thread-safe.
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
    // Called once per job and process about an object that may not be written. Null = no events.
    std::function<void(EventDraft)> record_event = nullptr;
    // An object that was written or found correct is not read again for this long.
    double seen_seconds = 2;
    // The same for what may not be written.
    double forbidden_seconds = 60;
    // A deleted policy whose job was not asked for during this time is forgotten.
    double forget_seconds = 600;
  };

  // Both outlive this. The watch begins at once.
  JobIsolation(KubeClient& kube, Runtime& runtime, Options options);

  // Makes what is missing, before pods of the group are made. kUnavailable: an object of that name
  // has another owner.
  Result<PodIdentity> Ensure(const FunctionGroup& group);
  // Restores a policy that was deleted or changed while the job runs; no request while it is
  // correct. Errors are retried at the next call.
  void Keep(const std::string& job_uid);
  // Deletes the account: running pods go on without it, but no new ones can be created. False: it
  // is not this job's own, or may not be deleted.
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
  // Why an object that is not the job's stands in its way; what is left of an earlier job of the
  // name is deleted, so that the next attempt succeeds.
  Status MakeWay(const ResourceType& type, const Json& object, const std::string& job_name,
                 const std::string& job_uid);
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
