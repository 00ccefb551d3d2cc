// SPDX-License-Identifier: Apache-2.0
// The part of the in-memory API server that moves time forward: versions and their events, deletion
// and garbage, watches.
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "operator/kube/in_memory_table.h"
#include "operator/kube/label_selector.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

std::vector<std::string> FinalizersOf(const Json& object) {
  const Json& metadata = object.at("metadata");
  return metadata.value("finalizers", std::vector<std::string>{});
}

}  // namespace

Status CheckFinalizersOnlyShrink(const Json& current, const Json& next) {
  const auto before = FinalizersOf(current);
  for (const std::string& finalizer : FinalizersOf(next)) {
    if (std::find(before.begin(), before.end(), finalizer) == before.end()) {
      return InvalidArgumentError("metadata.finalizers: \"" + finalizer +
                                  "\" cannot be added while the object is being deleted");
    }
  }
  return OkStatus();
}

void InMemoryApiServer::Store(Table& table, WatchEvent::Kind kind, Json object) {
  ++version_;
  object["metadata"]["resourceVersion"] = std::to_string(version_);
  const ObjectName name = NameOf(object);
  living_[MetadataText(object, "uid")] = name;
  auto stored = std::make_shared<const Json>(std::move(object));
  std::shared_ptr<const Json> before = std::exchange(table.objects[name], stored);
  history_.push_back({kind, &table, name.namespace_name, std::move(stored), std::move(before)});
  while (history_.size() > options_.history_limit) history_.pop_front();
  monitor_->NotifyAll();
}

void InMemoryApiServer::Remove(Table& table, const ObjectName& name, Json object) {
  ++version_;
  object["metadata"]["resourceVersion"] = std::to_string(version_);
  const std::string uid = MetadataText(object, "uid");
  std::shared_ptr<const Json> before = table.objects.at(name);
  table.objects.erase(name);
  living_.erase(uid);
  history_.push_back({WatchEvent::Kind::kDeleted, &table, name.namespace_name,
                      std::make_shared<const Json>(std::move(object)), std::move(before)});
  while (history_.size() > options_.history_limit) history_.pop_front();
  pending_collections_.push_back({runtime_.clock.Now() + options_.garbage_collection_delay, uid});
  if (options_.garbage_collection_delay.count() == 0) CollectGarbage();
  monitor_->NotifyAll();
}

void InMemoryApiServer::BeginDeletion(Table& table, const ObjectName& name) {
  const std::shared_ptr<const Json> current = table.objects.at(name);
  if (!HasFinalizers(*current)) return Remove(table, name, *current);
  if (IsBeingDeleted(*current)) return;
  Json next = *current;
  Json& metadata = next["metadata"];
  metadata["deletionTimestamp"] = FormatRfc3339(runtime_.clock.Wall());
  metadata["deletionGracePeriodSeconds"] = 0;
  metadata["generation"] = metadata.value("generation", int64_t{0}) + 1;
  Store(table, WatchEvent::Kind::kModified, std::move(next));
}

bool InMemoryApiServer::IsAlive(const std::string& uid) const { return living_.contains(uid); }

void InMemoryApiServer::CollectGarbage() {
  while (!pending_collections_.empty() &&
         pending_collections_.front().due <= runtime_.clock.Now()) {
    const std::string owner = std::move(pending_collections_.front().owner_uid);
    pending_collections_.pop_front();
    CollectOrphansOf(owner);
  }
}

void InMemoryApiServer::CollectOrphansOf(const std::string& owner_uid) {
  for (auto& [key, table] : tables_) {
    std::vector<ObjectName> orphans;
    for (const auto& [name, object] : table->objects) {
      const std::vector<std::string> owners = OwnerUids(*object);
      if (std::find(owners.begin(), owners.end(), owner_uid) == owners.end()) continue;
      if (std::none_of(owners.begin(), owners.end(),
                       [&](const std::string& uid) { return IsAlive(uid); })) {
        orphans.push_back(name);
      }
    }
    for (const ObjectName& name : orphans) {
      if (table->objects.contains(name)) BeginDeletion(*table, name);
    }
  }
}

void InMemoryApiServer::ExpireOld(Table& table) {
  while (!table.expiries.empty() && table.expiries.front().due <= runtime_.clock.Now()) {
    const ObjectName name = table.expiries.front().name;
    table.expiries.pop_front();
    const auto found = table.objects.find(name);
    if (found != table.objects.end()) Remove(table, name, *found->second);
  }
}

void InMemoryApiServer::CompactHistory() {
  MonitorLock lock(*monitor_);
  history_.clear();
  list_snapshots_.clear();
  monitor_->NotifyAll();
}

class InMemoryApiServer::StreamingWatch final : public Watch {
 public:
  StreamingWatch(InMemoryApiServer& server, const Table& table, std::string namespace_name,
                 LabelSelector selector, uint64_t seen,
                 std::deque<std::shared_ptr<const Json>> initial)
      : server_(server),
        table_(table),
        namespace_name_(std::move(namespace_name)),
        selector_(std::move(selector)),
        seen_(seen),
        initial_(std::move(initial)),
        end_(server.runtime_.clock.Now() + server.options_.watch_timeout),
        next_bookmark_(server.runtime_.clock.Now() + server.options_.bookmark_interval) {}

  Result<WatchEvent> Next(Duration timeout) override {
    MonitorLock lock(*server_.monitor_);
    const Instant deadline = server_.runtime_.clock.Now() + timeout;
    for (;;) {
      server_.CollectGarbage();
      if (!initial_.empty()) {
        WatchEvent event{WatchEvent::Kind::kAdded, *initial_.front()};
        initial_.pop_front();
        return event;
      }
      if (seen_ + 1 < server_.first_version()) {
        return OutOfRangeError(
            "the watch has fallen behind the server's history (410); list again");
      }
      while (seen_ < server_.version_) {
        const HistoryEvent& event = server_.history_[seen_ + 1 - server_.first_version()];
        ++seen_;
        if (const auto kind = KindFor(event)) return WatchEvent{*kind, *event.object};
      }
      const Instant now = server_.runtime_.clock.Now();
      if (now >= end_) return UnavailableError("the watch has ended; watch on from the last event");
      if (now >= next_bookmark_) {
        next_bookmark_ = now + server_.options_.bookmark_interval;
        return Bookmark();
      }
      if (now >= deadline) return DeadlineExceededError("no event yet");
      Instant wake = std::min({deadline, end_, next_bookmark_});
      if (!server_.pending_collections_.empty()) {
        wake = std::min(wake, server_.pending_collections_.front().due);
      }
      server_.monitor_->WaitUntil(wake);
    }
  }

 private:
  // What the change is for this watch; nullopt = nothing.
  std::optional<WatchEvent::Kind> KindFor(const HistoryEvent& event) const {
    const bool here = event.table == &table_ &&
                      (namespace_name_.empty() || event.namespace_name == namespace_name_);
    if (!here) return std::nullopt;
    const bool was = event.before != nullptr && selector_.Matches(*event.before);
    const bool is = event.kind != WatchEvent::Kind::kDeleted && selector_.Matches(*event.object);
    if (!was && !is) return std::nullopt;
    if (!is) return WatchEvent::Kind::kDeleted;
    return was ? WatchEvent::Kind::kModified : WatchEvent::Kind::kAdded;
  }

  WatchEvent Bookmark() const {
    const ResourceType& type = table_.definition.type;
    return {WatchEvent::Kind::kBookmark,
            {{"apiVersion", type.group.empty() ? type.version : type.group + "/" + type.version},
             {"kind", type.kind},
             {"metadata", {{"resourceVersion", std::to_string(seen_)}}}}};
  }

  InMemoryApiServer& server_;
  const Table& table_;
  const std::string namespace_name_;
  const LabelSelector selector_;
  uint64_t seen_;
  std::deque<std::shared_ptr<const Json>> initial_;
  const Instant end_;
  Instant next_bookmark_;
};

Result<std::unique_ptr<Watch>> InMemoryApiServer::StartWatch(const ResourceType& type,
                                                             const std::string& namespace_name,
                                                             const std::string& label_selector,
                                                             const std::string& resource_version) {
  MonitorLock lock(*monitor_);
  LDNN_ASSIGN_OR_RETURN(Table * table, FindTable(type));
  LDNN_ASSIGN_OR_RETURN(LabelSelector selector, LabelSelector::Parse(label_selector));
  std::deque<std::shared_ptr<const Json>> initial;
  uint64_t seen = version_;
  if (resource_version.empty() || resource_version == "0") {
    for (const auto& [name, object] : table->objects) {
      const bool here = namespace_name.empty() || name.namespace_name == namespace_name;
      if (here && selector.Matches(*object)) initial.push_back(object);
    }
  } else {
    const char* end = resource_version.data() + resource_version.size();
    const auto parsed = std::from_chars(resource_version.data(), end, seen);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return InvalidArgumentError("watch: \"" + resource_version + "\" is not a resourceVersion");
    }
    if (seen > version_) {
      return UnavailableError("watch: resourceVersion " + resource_version +
                              " is newer than this server's; try again");
    }
    if (seen + 1 < first_version()) {
      return OutOfRangeError("watch: resourceVersion " + resource_version +
                             " is too old (410); list again");
    }
  }
  return std::unique_ptr<Watch>(std::make_unique<StreamingWatch>(
      *this, *table, namespace_name, std::move(selector), seen, std::move(initial)));
}

}  // namespace lambdadnn
