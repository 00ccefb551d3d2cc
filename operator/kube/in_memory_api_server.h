// SPDX-License-Identifier: Apache-2.0
// A small API server in this process, for `lambdadnn run` and the simulator. It behaves like
// kube-apiserver in everything that a controller can observe:
//   * one global resourceVersion counter; a write that changes nothing keeps version and silence;
//   * 409 on a stale resourceVersion or a wrong uid; a replace without resourceVersion is refused;
//   * lists are consistent, in order of name, with label selector, limit and continue; watches
//     start from a resourceVersion (or "" = everything as kAdded first), send bookmarks, end now
//     and then, and answer 410 when the history they need is gone;
//   * defaults, validation and unknown-field refusal from the CRD, its x-kubernetes-validations by
//     the `rules` function of the definition;
//   * the status subresource writes status alone, everything else writes all but status;
//     generation counts changes outside metadata and status;
//   * finalizers, deletionTimestamp; children whose owners are all gone are deleted after
//     garbage_collection_delay.
// Not there: server-side apply and managedFields, admission webhooks, field selectors, foreground
// deletion.
//
// Thread-safe, without threads of its own: background work is done inside calls and waiting
// watches. Blocks only on the runtime's monitors, so it runs on fibers as well. Outlives its
// watches.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/kube/kube_client.h"
#include "operator/kube/resource_definition.h"

namespace lambdadnn {

struct InMemoryApiServerOptions {
  // Events kept for watches; older ones are compacted away (410).
  size_t history_limit = 10'000;
  Duration bookmark_interval = std::chrono::minutes(1);
  // A watch ends with kUnavailable after this long, as real streams do.
  Duration watch_timeout = std::chrono::minutes(30);
  // Between an owner's end and its children's.
  Duration garbage_collection_delay{0};
  // The state is written here after every change, before the call returns, so that it survives a
  // killed process; empty = in memory only.
  std::string file = "";
  // creationTimestamp has milliseconds; a Kubernetes API server cuts them off.
  bool creation_in_milliseconds = false;
};

class InMemoryApiServer final : public KubeClient {
 public:
  InMemoryApiServer(Runtime& runtime, InMemoryApiServerOptions options = {});
  ~InMemoryApiServer() override;

  // Serves a resource; before the first call that uses it.
  void Define(ResourceDefinition definition);

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

  // The object itself, as it stands, instead of a copy; null when there is none.
  std::shared_ptr<const Json> Peek(const ResourceType& type, const ObjectName& name);
  // All of them, in order of name.
  std::vector<std::shared_ptr<const Json>> PeekAll(const ResourceType& type);

  // Forgets all history: every watch that is behind, and every continue token, gets 410.
  void CompactHistory();

  // {"resourceVersion": N, "objects": [...]}: all objects of all defined resources.
  Json Snapshot();
  // Replaces everything; old watches get 410. kInvalidArgument names the object that does not fit.
  Status Restore(const Json& snapshot);
  // Restore() from options.file; kNotFound when there is none.
  Status RestoreFile();

 private:
  class StreamingWatch;
  struct Table;
  struct HistoryEvent {
    WatchEvent::Kind kind;
    const Table* table;
    std::string namespace_name;
    std::shared_ptr<const Json> object;
    std::shared_ptr<const Json> before;  // null: there was none
  };
  struct ListSnapshot {
    uint64_t resource_version;
    std::vector<std::shared_ptr<const Json>> objects;
  };
  struct PendingCollection {
    Instant due;
    std::string owner_uid;
  };

  // All below: the monitor is held.
  Result<Table*> FindTable(const ResourceType& type);
  Result<Json> Replace(Table& table, const ObjectName& name, Json next, Subresource subresource);
  Status Validate(const Table& table, const Json& object, const Json* old, Subresource changed);
  void Store(Table& table, WatchEvent::Kind kind, Json object);
  void Remove(Table& table, const ObjectName& name, Json object);
  void BeginDeletion(Table& table, const ObjectName& name);
  void CollectGarbage();
  void CollectOrphansOf(const std::string& owner_uid);
  bool IsAlive(const std::string& uid) const;
  void ExpireOld(Table& table);
  Status Persist();
  uint64_t first_version() const { return version_ - history_.size() + 1; }

  Runtime& runtime_;
  const InMemoryApiServerOptions options_;
  std::unique_ptr<Monitor> monitor_;
  uint64_t version_ = 0;
  std::map<std::string, std::unique_ptr<Table>> tables_;
  std::deque<HistoryEvent> history_;  // versions first_version() .. version_, one event each
  std::map<std::string, ObjectName> living_;  // by uid
  std::deque<PendingCollection> pending_collections_;
  std::map<uint64_t, ListSnapshot> list_snapshots_;
  uint64_t next_list_id_ = 1;
};

}  // namespace lambdadnn
