// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/apply/job_stores.h"

#include "common/base/bytes.h"
#include "common/protocol/object_keys.h"
#include "operator/controller/store/store_access.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/controller/store/store_probe.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// Tells credentials from others; kept in memory alone.
std::string VersionOf(const StoreCredentials& credentials) {
  const std::string text =
      credentials.access_key + "\n" + credentials.secret_key + "\n" + credentials.session_token;
  return Hex64(Xxh3(AsBytes(text)));
}

}  // namespace

Result<ObjectStore*> JobStores::Open(Pass* pass) {
  LDNN_RETURN_IF_ERROR(pass->snapshot.reach);
  JobMemory& memory = *pass->memory;
  LDNN_RETURN_IF_ERROR(ReadSecrets(pass));
  if (memory.store == nullptr) {
    LDNN_ASSIGN_OR_RETURN(
        memory.store,
        dependencies_.open_store(MakeStoreReference(pass->snapshot.job), memory.store_secrets));
  }
  return memory.store.get();
}

Status JobStores::ReadSecrets(Pass* pass) {
  JobMemory& memory = *pass->memory;
  const Job& job = pass->snapshot.job;
  const ObjectStoreSpec& store = job.spec.object_store;
  const bool has_secrets = !store.credentials_secret.empty() || !store.ca_secret.empty();
  const bool may_change = has_secrets || dependencies_.own_credentials != nullptr;
  if (!options_.use_store_secrets || !may_change) return OkStatus();
  const Instant now = dependencies_.runtime.clock.Now();
  const bool needed = memory.store == nullptr || memory.store_refused;
  if (!needed && now - memory.secrets_read < FromSeconds(options_.secrets_seconds)) {
    return OkStatus();
  }
  memory.secrets_read = now;
  Result<StoreSecrets> secrets = ReadStoreSecrets(dependencies_.kube, job);
  // A store that answers is used with the credentials that were read before.
  if (!secrets.ok()) return needed ? secrets.status() : OkStatus();
  memory.store_refused = false;
  if (store.credentials_secret.empty() && dependencies_.own_credentials != nullptr) {
    secrets->version += "/" + VersionOf(dependencies_.own_credentials());
  }
  if (secrets->version == memory.store_secrets.version) return OkStatus();
  memory.store.reset();
  memory.store_secrets = *std::move(secrets);
  return OkStatus();
}

Status JobStores::LearnCapabilities(Pass* pass, ObjectStore& store, bool may_write) {
  const Job& job = pass->snapshot.job;
  std::optional<std::vector<std::string>>& learnt = pass->memory->memo.store_capabilities;
  if (job.status.store_capabilities.has_value()) return OkStatus();
  const StoreBulkhead bulkhead = StoreBulkheadOf(job);
  {
    const std::lock_guard lock(mutex_);
    const auto found = capabilities_.find(bulkhead);
    if (found != capabilities_.end()) learnt = found->second;
  }
  if (learnt.has_value() || !may_write) return OkStatus();
  // A controller that was deposed may be asking at the same time.
  const std::string key =
      RecordsPrefix(JobPrefix(job)) + "probe-" + std::to_string(options_.leader_epoch);
  LDNN_ASSIGN_OR_RETURN(learnt, ProbeStore(store, key));
  const std::lock_guard lock(mutex_);
  capabilities_[bulkhead] = *learnt;
  return OkStatus();
}

}  // namespace lambdadnn
