// SPDX-License-Identifier: Apache-2.0
// The API server as one controller process sees it: late, refusing, losing replies after the
// effect, conflicting, taking writes twice, with watches that lag behind (stale caches), break, and
// forget history (410).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/kube/in_memory_api_server.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/sim_scheduler.h"

namespace lambdadnn::simulation {

struct KubeTiming {
  double request_seconds = 0.003;
  // A watch event arrives up to this much late.
  double watch_lag_seconds = 0.5;
  // A late repetition lands within this many seconds.
  double late_seconds = 3;
  // The caller gives up after that long; 0 = never.
  double call_seconds = 0;
};

class SimKubeClient final : public KubeClient {
 public:
  // `server` is shared by all processes and never waits for any of them. Faults are counted by
  // `role` (a literal; null = what the process does).
  SimKubeClient(InMemoryApiServer& server, FaultInjector& faults, SimProcess& process,
                KubeTiming timing, const char* role = nullptr)
      : server_(server), faults_(faults), process_(process), timing_(timing), role_(role) {}

  // Sees the object as it was before each status write of this process that took effect.
  void ObserveStatusWrites(std::function<void(const Json& before)> observer) {
    on_status_write_ = std::move(observer);
  }
  // What is sent by then waits until then on its way there, or is lost when its caller has given
  // up.
  void Hang(Instant until) { hangs_until_ = until; }
  // Watches deliver nothing until then: half-open connections.
  void FreezeWatches(Instant until) { frozen_until_ = until; }

  Result<Json> Get(const ResourceType& type, const ObjectName& name) override;
  Result<KubeList> List(const ResourceType& type, const std::string& namespace_name,
                        const std::string& label_selector, int limit,
                        const std::string& continue_token) override;
  Result<Json> Create(const ResourceType& type, const Json& object) override;
  Result<Json> Update(const ResourceType& type, const Json& object,
                      Subresource subresource) override;
  Result<Json> Patch(const ResourceType& type, const ObjectName& name, const Json& merge_patch,
                     Subresource subresource) override;
  Status Delete(const ResourceType& type, const ObjectName& name,
                const std::string& uid_precondition) override;
  Result<std::unique_ptr<Watch>> StartWatch(const ResourceType& type,
                                            const std::string& namespace_name,
                                            const std::string& label_selector,
                                            const std::string& resource_version) override;

 private:
  friend class SimWatch;
  Duration OneWay() const;
  const char* role() const { return role_ == nullptr ? process_.role() : role_; }
  Status Before(const char* operation, bool writes);
  Status After(const char* operation);
  // The way there of what `arrive` does at its end; an error: the caller has given up before.
  Status Go(Duration one_way, const std::function<void()>& arrive);
  // Before, the way there, `call`, the way back, After.
  template <typename T, typename F>
  Result<T> Read(const char* operation, F call);
  // The same for a write, which the network may make twice: at once, and the second answer counts,
  // or late. `call` holds what it needs.
  template <typename T, typename F>
  Result<T> Write(const char* operation, const F& call);
  Result<Json> PatchNow(const ResourceType& type, const ObjectName& name, const Json& merge_patch,
                        Subresource subresource);

  InMemoryApiServer& server_;
  FaultInjector& faults_;
  SimProcess& process_;
  const KubeTiming timing_;
  const char* const role_;
  std::function<void(const Json& before)> on_status_write_;
  Instant frozen_until_{};
  Instant hangs_until_{};
};

}  // namespace lambdadnn::simulation
