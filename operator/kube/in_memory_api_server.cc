// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/in_memory_api_server.h"

#include <algorithm>
#include <charconv>

#include "common/base/files.h"
#include "common/base/time_text.h"
#include "common/json/dump_json.h"
#include "operator/kube/in_memory_table.h"
#include "operator/kube/label_selector.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

// Continue tokens of this many lists are good at a time, as a real server forgets old ones too.
constexpr size_t kMaxListSnapshots = 16;

std::string Described(const ResourceType& type, const ObjectName& name) {
  return type.plural + (type.group.empty() ? "" : "." + type.group) + " \"" + name.name + "\"";
}

Status NotFound(const ResourceType& type, const ObjectName& name) {
  return NotFoundError(Described(type, name) + " not found");
}

Status Conflict(const ResourceType& type, const ObjectName& name) {
  return AbortedError(Described(type, name) +
                      " was changed since it was read; read it again and decide anew");
}

Status Invalid(const ResourceType& type, const ObjectName& name,
               const std::vector<FieldError>& errors) {
  return ToStatus(errors).WithContext(type.kind + " \"" + name.name + "\" is invalid");
}

Status Expired() {
  return OutOfRangeError("the requested resourceVersion is too old (410); list again");
}

bool ParseVersion(const std::string& text, uint64_t* version) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *version);
  return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// Fields that the server owns keep what they had.
void KeepServerFields(const Json& current, Json* next) {
  Json& metadata = (*next)["metadata"];
  const Json& old = current.at("metadata");
  for (const char* field : {"uid", "creationTimestamp", "generation", "deletionTimestamp",
                            "deletionGracePeriodSeconds", "resourceVersion"}) {
    const auto found = old.find(field);
    if (found == old.end()) {
      metadata.erase(field);
    } else {
      metadata[field] = *found;
    }
  }
  metadata["name"] = old.at("name");
  metadata["namespace"] = old.at("namespace");
  (*next)["apiVersion"] = current.at("apiVersion");
  (*next)["kind"] = current.at("kind");
}

Json WithoutStatus(const Json& object) {
  Json rest = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (key != "status") rest[key] = value;
  }
  return rest;
}

bool HaveSameStatus(const Json& a, const Json& b) {
  const auto status_of = [](const Json& object) {
    const auto found = object.find("status");
    return found == object.end() ? nullptr : &*found;
  };
  const Json* const status = status_of(a);
  const Json* const other = status_of(b);
  return status == nullptr || other == nullptr ? status == other : *status == *other;
}

// Whether anything outside of metadata and status differs.
bool DesiredStateDiffers(const Json& a, const Json& b) {
  const auto counts = [](const std::string& key) { return key != "metadata" && key != "status"; };
  for (const auto& [key, value] : a.items()) {
    if (counts(key) && (!b.contains(key) || b.at(key) != value)) return true;
  }
  return std::any_of(b.items().begin(), b.items().end(), [&](const auto& item) {
    return counts(item.key()) && !a.contains(item.key());
  });
}

std::string RandomSuffix(Random& random) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kLetters[random.Below(kLetters.size())];
  return suffix;
}

}  // namespace

InMemoryApiServer::InMemoryApiServer(Runtime& runtime, InMemoryApiServerOptions options)
    : runtime_(runtime), options_(std::move(options)), monitor_(runtime.executor.NewMonitor()) {}

InMemoryApiServer::~InMemoryApiServer() = default;

void InMemoryApiServer::Define(ResourceDefinition definition) {
  MonitorLock lock(*monitor_);
  auto table = std::make_unique<Table>();
  table->definition = std::move(definition);
  const std::string key = table->Key();
  tables_[key] = std::move(table);
}

Result<InMemoryApiServer::Table*> InMemoryApiServer::FindTable(const ResourceType& type) {
  CollectGarbage();
  const auto found = tables_.find(type.plural + "." + type.group);
  if (found == tables_.end() || found->second->definition.type != type) {
    return NotFoundError("the server has no resource " + type.plural + " in " + type.group + "/" +
                         type.version);
  }
  return found->second.get();
}

Result<Json> InMemoryApiServer::Get(const ResourceType& type, const ObjectName& name) {
  MonitorLock lock(*monitor_);
  LDNN_ASSIGN_OR_RETURN(Table * table, FindTable(type));
  const auto found = table->objects.find(name);
  if (found == table->objects.end()) return NotFound(type, name);
  return *found->second;
}

std::shared_ptr<const Json> InMemoryApiServer::Peek(const ResourceType& type,
                                                    const ObjectName& name) {
  MonitorLock lock(*monitor_);
  const Result<Table*> table = FindTable(type);
  if (!table.ok()) return nullptr;
  const auto found = (*table)->objects.find(name);
  return found == (*table)->objects.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<const Json>> InMemoryApiServer::PeekAll(const ResourceType& type) {
  MonitorLock lock(*monitor_);
  std::vector<std::shared_ptr<const Json>> objects;
  const Result<Table*> table = FindTable(type);
  if (!table.ok()) return objects;
  for (const auto& [name, object] : (*table)->objects) objects.push_back(object);
  return objects;
}

Result<KubeList> InMemoryApiServer::List(const ResourceType& type,
                                         const std::string& namespace_name,
                                         const std::string& label_selector, int limit,
                                         const std::string& continue_token) {
  MonitorLock lock(*monitor_);
  LDNN_ASSIGN_OR_RETURN(Table * table, FindTable(type));
  LDNN_ASSIGN_OR_RETURN(const LabelSelector selector, LabelSelector::Parse(label_selector));
  ListSnapshot fresh{version_, {}};
  const ListSnapshot* snapshot = &fresh;
  uint64_t id = 0;
  uint64_t offset = 0;
  if (continue_token.empty()) {
    for (const auto& [name, object] : table->objects) {
      if (!namespace_name.empty() && name.namespace_name != namespace_name) continue;
      if (selector.Matches(*object)) fresh.objects.push_back(object);
    }
  } else {
    const size_t colon = continue_token.find(':');
    if (colon == std::string::npos || !ParseVersion(continue_token.substr(0, colon), &id) ||
        !ParseVersion(continue_token.substr(colon + 1), &offset)) {
      return InvalidArgumentError("list: the continue token is not one of this server's");
    }
    const auto kept = list_snapshots_.find(id);
    if (kept == list_snapshots_.end() || offset > kept->second.objects.size()) return Expired();
    snapshot = &kept->second;
  }
  KubeList list;
  list.resource_version = std::to_string(snapshot->resource_version);
  const uint64_t end = limit > 0 ? std::min<uint64_t>(offset + static_cast<uint64_t>(limit),
                                                      snapshot->objects.size())
                                 : snapshot->objects.size();
  for (uint64_t i = offset; i < end; ++i) list.items.push_back(*snapshot->objects[i]);
  if (end < snapshot->objects.size()) {
    if (id == 0) {
      id = next_list_id_++;
      list_snapshots_[id] = std::move(fresh);
      if (list_snapshots_.size() > kMaxListSnapshots) {
        list_snapshots_.erase(list_snapshots_.begin());
      }
    }
    list.continue_token = std::to_string(id) + ":" + std::to_string(end);
  }
  return list;
}

Status InMemoryApiServer::Validate(const Table& table, const Json& object, const Json* old,
                                   Subresource changed) {
  std::vector<FieldError> errors;
  const ResourceDefinition& definition = table.definition;
  if (changed == Subresource::kNone) CheckMetadata(definition.type, object, &errors);
  if (definition.schema != nullptr) {
    for (const auto& [key, value] : object.items()) {
      if (key == "apiVersion" || key == "kind" || key == "metadata") continue;
      if ((key == "status") != (changed == Subresource::kStatus)) continue;
      const bool known = old != nullptr && old->contains(key);
      definition.schema->ValidateProperty(key, value, "", &errors, known ? &old->at(key) : nullptr);
    }
    if (changed == Subresource::kNone) definition.schema->CheckRequired(object, "", &errors);
  }
  if (changed == Subresource::kNone && definition.rules) definition.rules(object, old, &errors);
  return errors.empty() ? OkStatus() : Invalid(definition.type, NameOf(object), errors);
}

Result<Json> InMemoryApiServer::Create(const ResourceType& type, const Json& object) {
  MonitorLock lock(*monitor_);
  LDNN_ASSIGN_OR_RETURN(Table * table, FindTable(type));
  if (!object.is_object() || !object.contains("metadata") || !object.at("metadata").is_object()) {
    return InvalidArgumentError(type.kind + ": needs metadata with a name");
  }
  if (!MetadataText(object, "resourceVersion").empty()) {
    return InvalidArgumentError("resourceVersion must not be set on an object to be created");
  }
  Json created = object;
  Json& metadata = created["metadata"];
  if (MetadataText(created, "namespace").empty()) metadata["namespace"] = "default";
  if (MetadataText(created, "name").empty() && !MetadataText(created, "generateName").empty()) {
    metadata["name"] = MetadataText(created, "generateName") + RandomSuffix(runtime_.random);
  }
  if (table->definition.has_status) created.erase("status");
  metadata.erase("deletionTimestamp");
  metadata.erase("deletionGracePeriodSeconds");
  metadata["uid"] = MakeUuid(runtime_.random);
  metadata["generation"] = 1;
  const WallTime now = runtime_.clock.Wall();
  metadata["creationTimestamp"] =
      options_.creation_in_milliseconds ? FormatRfc3339Millis(now) : FormatRfc3339(now);
  if (table->definition.schema != nullptr) table->definition.schema->ApplyDefaults(&created);
  LDNN_RETURN_IF_ERROR(Validate(*table, created, nullptr, Subresource::kNone));
  const ObjectName name = NameOf(created);
  if (table->objects.contains(name)) {
    return AlreadyExistsError(Described(type, name) + " already exists");
  }
  ExpireOld(*table);
  Store(*table, WatchEvent::Kind::kAdded, std::move(created));
  const std::shared_ptr<const Json> stored = table->objects.at(name);
  if (table->definition.time_to_live.count() > 0) {
    table->expiries.push_back({runtime_.clock.Now() + table->definition.time_to_live, name});
  }
  for (const std::string& owner : OwnerUids(*stored)) {
    if (!IsAlive(owner)) {
      pending_collections_.push_back(
          {runtime_.clock.Now() + options_.garbage_collection_delay, owner});
    }
  }
  LDNN_RETURN_IF_ERROR(Persist());
  return *stored;
}

Result<Json> InMemoryApiServer::Update(const ResourceType& type, const Json& object,
                                       Subresource subresource) {
  MonitorLock lock(*monitor_);
  LDNN_ASSIGN_OR_RETURN(Table * table, FindTable(type));
  const ObjectName name = NameOf(object);
  if (MetadataText(object, "resourceVersion").empty()) {
    return InvalidArgumentError(Described(type, name) +
                                ": metadata.resourceVersion must be set for an update");
  }
  return Replace(*table, name, object, subresource);
}

Result<Json> InMemoryApiServer::Patch(const ResourceType& type, const ObjectName& name,
                                      const Json& merge_patch, Subresource subresource) {
  MonitorLock lock(*monitor_);
  LDNN_ASSIGN_OR_RETURN(Table * table, FindTable(type));
  const auto found = table->objects.find(name);
  if (found == table->objects.end()) return NotFound(type, name);
  if (!merge_patch.is_object()) {
    return InvalidArgumentError(Described(type, name) + ": the patch must be a JSON object");
  }
  Json next;
  if (subresource == Subresource::kStatus) {  // Replace uses nothing else
    next["metadata"] = found->second->at("metadata");
    if (found->second->contains("status")) next["status"] = found->second->at("status");
  } else {
    next = table->definition.has_status ? WithoutStatus(*found->second) : *found->second;
  }
  next.merge_patch(merge_patch);
  return Replace(*table, name, std::move(next), subresource);
}

Result<Json> InMemoryApiServer::Replace(Table& table, const ObjectName& name, Json next,
                                        Subresource subresource) {
  const ResourceType& type = table.definition.type;
  const auto found = table.objects.find(name);
  if (found == table.objects.end()) return NotFound(type, name);
  const std::shared_ptr<const Json> current = found->second;
  if (subresource == Subresource::kStatus && !table.definition.has_status) {
    return NotFoundError(type.plural + " have no status subresource");
  }
  if (!next.contains("metadata") || !next.at("metadata").is_object() || NameOf(next) != name) {
    return InvalidArgumentError(Described(type, name) +
                                ": metadata.name and namespace must not change");
  }
  const std::string version = MetadataText(next, "resourceVersion");
  if (!version.empty() && version != MetadataText(*current, "resourceVersion")) {
    return Conflict(type, name);
  }
  const std::string uid = MetadataText(next, "uid");
  if (!uid.empty() && uid != MetadataText(*current, "uid")) return Conflict(type, name);

  if (subresource == Subresource::kStatus) {
    if (HaveSameStatus(next, *current)) return *current;
    Json with_status = WithoutStatus(*current);
    if (next.contains("status")) with_status["status"] = std::move(next["status"]);
    next = std::move(with_status);
  } else {
    KeepServerFields(*current, &next);
    if (table.definition.has_status) {
      next.erase("status");
      if (current->contains("status")) next["status"] = current->at("status");
    }
  }
  if (subresource == Subresource::kNone) {
    if (table.definition.schema != nullptr) table.definition.schema->ApplyDefaults(&next);
    if (next == *current) return *current;
  }
  LDNN_RETURN_IF_ERROR(Validate(table, next, current.get(), subresource));
  if (IsBeingDeleted(*current) && subresource == Subresource::kNone) {
    LDNN_RETURN_IF_ERROR(
        CheckFinalizersOnlyShrink(*current, next).WithContext(Described(type, name)));
  }
  if (subresource == Subresource::kNone && DesiredStateDiffers(*current, next)) {
    next["metadata"]["generation"] = current->at("metadata").value("generation", int64_t{0}) + 1;
  }
  const bool gone = IsBeingDeleted(next) && !HasFinalizers(next);
  if (gone) {
    Remove(table, name, next);
    next["metadata"]["resourceVersion"] = std::to_string(version_);
  } else {
    Store(table, WatchEvent::Kind::kModified, std::move(next));
    next = *table.objects.at(name);
  }
  LDNN_RETURN_IF_ERROR(Persist());
  return next;
}

Status InMemoryApiServer::Delete(const ResourceType& type, const ObjectName& name,
                                 const std::string& uid_precondition) {
  MonitorLock lock(*monitor_);
  auto table = FindTable(type);
  LDNN_RETURN_IF_ERROR(table.status());
  const auto found = (*table)->objects.find(name);
  if (found == (*table)->objects.end()) return NotFound(type, name);
  if (!uid_precondition.empty() && uid_precondition != MetadataText(*found->second, "uid")) {
    return AbortedError(Described(type, name) + " is another object with that name by now");
  }
  BeginDeletion(**table, name);
  return Persist();
}

Status InMemoryApiServer::Persist() {
  if (options_.file.empty()) return OkStatus();
  Json objects = Json::array();
  for (const auto& [key, table] : tables_) {
    for (const auto& [name, object] : table->objects) objects.push_back(*object);
  }
  const Json snapshot = {{"resourceVersion", version_}, {"objects", std::move(objects)}};
  const Status written = WriteFileAtomically(options_.file, DumpJson(snapshot));
  if (written.ok()) return written;
  return UnavailableError("the change took effect but could not be saved: " + written.message());
}

Json InMemoryApiServer::Snapshot() {
  MonitorLock lock(*monitor_);
  CollectGarbage();
  Json objects = Json::array();
  for (const auto& [key, table] : tables_) {
    for (const auto& [name, object] : table->objects) objects.push_back(*object);
  }
  return {{"resourceVersion", version_}, {"objects", std::move(objects)}};
}

Status InMemoryApiServer::Restore(const Json& snapshot) {
  MonitorLock lock(*monitor_);
  uint64_t version = 0;
  std::vector<FieldError> errors;
  JsonReader reader(snapshot, "", &errors);
  reader.Required("resourceVersion", &version);
  const Json* objects = reader.Child("objects");
  if (objects == nullptr || !objects->is_array()) reader.Report("objects", "must be a list");
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  std::map<std::string, std::map<ObjectName, std::shared_ptr<const Json>>> restored;
  std::map<std::string, ObjectName> living;
  for (const Json& object : *objects) {
    const std::string api_version = object.is_object() ? object.value("apiVersion", "") : "";
    const std::string kind = object.is_object() ? object.value("kind", "") : "";
    const auto table = std::find_if(tables_.begin(), tables_.end(), [&](const auto& each) {
      const ResourceType& type = each.second->definition.type;
      const std::string group = type.group.empty() ? "" : type.group + "/";
      return type.kind == kind && group + type.version == api_version;
    });
    if (table == tables_.end()) {
      return InvalidArgumentError("saved state: no resource for kind \"" + kind + "\" of \"" +
                                  api_version + "\"");
    }
    CheckMetadata(table->second->definition.type, object, &errors);
    if (!errors.empty()) return Invalid(table->second->definition.type, NameOf(object), errors);
    living[MetadataText(object, "uid")] = NameOf(object);
    restored[table->first][NameOf(object)] = std::make_shared<const Json>(object);
  }
  for (auto& [key, table] : tables_) {
    table->objects = std::move(restored[key]);
    table->expiries.clear();
    for (const auto& [name, object] : table->objects) {
      if (table->definition.time_to_live.count() > 0) {
        table->expiries.push_back({runtime_.clock.Now() + table->definition.time_to_live, name});
      }
    }
  }
  living_ = std::move(living);
  // One past everything that a watch may hold, so that all of them list again.
  version_ = std::max(version, version_) + 1;
  history_.clear();
  list_snapshots_.clear();
  pending_collections_.clear();
  monitor_->NotifyAll();
  return OkStatus();
}

Status InMemoryApiServer::RestoreFile() {
  LDNN_ASSIGN_OR_RETURN(const std::string text, ReadFile(options_.file));
  auto snapshot = ParseJson(text);
  if (!snapshot.ok()) return snapshot.status().WithContext(options_.file);
  return Restore(*snapshot).WithContext(options_.file);
}

}  // namespace lambdadnn
