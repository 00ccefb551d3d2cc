// SPDX-License-Identifier: Apache-2.0
// The Kubernetes API as the controller needs it: JSON objects by resource, optimistic concurrency,
// list and watch. Implemented by the in-memory API server (in_memory_api_server.h) and, for a real
// cluster, over HTTP. Thread-safe; every call may fail after it took effect, so all writes are
// create-once or carry a resourceVersion.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

struct ResourceType {
  std::string group;    // "apps"; empty = core
  std::string version;  // "v1"
  std::string plural;   // "secrets"
  std::string kind;     // "Secret"
  friend bool operator==(const ResourceType&, const ResourceType&) = default;
};

// events.k8s.io/v1 events.
const ResourceType& EventType();
// core/v1 secrets, pods, nodes.
const ResourceType& SecretType();
const ResourceType& PodType();
const ResourceType& NodeType();
// apps/v1 deployments.
const ResourceType& DeploymentType();

struct ObjectName {
  std::string namespace_name;
  std::string name;
  friend auto operator<=>(const ObjectName&, const ObjectName&) = default;
};

struct KubeList {
  std::vector<Json> items;
  std::string resource_version;
  std::string continue_token;
};

struct WatchEvent {
  enum class Kind { kAdded, kModified, kDeleted, kBookmark, kError };
  Kind kind = Kind::kAdded;
  Json object;  // kError: a Status object (code 410 = list again)
};

// One running watch. Next blocks until an event comes or the timeout ends (kDeadlineExceeded);
// kUnavailable = the stream ended, start a new one from the last resourceVersion seen;
// kOutOfRange = 410 Gone, list again.
class Watch {
 public:
  virtual ~Watch() = default;
  virtual Result<WatchEvent> Next(Duration timeout) = 0;
};

enum class Subresource { kNone, kStatus };

// Of a container that the kubelet starts again in its pod: the one that runs or ran last, or the
// one before it.
enum class ContainerRun { kCurrent, kPrevious };

// Errors: kNotFound, kAlreadyExists (create), kAborted (409 conflict: re-read and decide again),
// kInvalidArgument (422 and 400, with the server's causes), kPermissionDenied, kUnavailable,
// kOutOfRange (410).
class KubeClient {
 public:
  virtual ~KubeClient() = default;
  virtual Result<Json> Get(const ResourceType& type, const ObjectName& name) = 0;
  // All namespaces when `namespace_name` is empty.
  virtual Result<KubeList> List(const ResourceType& type, const std::string& namespace_name,
                                const std::string& label_selector, int limit,
                                const std::string& continue_token) = 0;
  virtual Result<Json> Create(const ResourceType& type, const Json& object) = 0;
  // Replace; metadata.resourceVersion must be the current one (else kAborted).
  virtual Result<Json> Update(const ResourceType& type, const Json& object,
                              Subresource subresource) = 0;
  // JSON merge patch; a resourceVersion inside is a precondition.
  virtual Result<Json> Patch(const ResourceType& type, const ObjectName& name,
                             const Json& merge_patch, Subresource subresource) = 0;
  // With a uid: only that incarnation of the object.
  virtual Status Delete(const ResourceType& type, const ObjectName& name,
                        const std::string& uid_precondition) = 0;
  // As Delete, for a pod: SIGKILL so long after SIGTERM, whatever the pod says (0 would take the
  // object away before the processes are gone).
  virtual Status DeleteWithin(const ResourceType& type, const ObjectName& name,
                              const std::string& uid_precondition, int grace_seconds) {
    static_cast<void>(grace_seconds);
    return Delete(type, name, uid_precondition);
  }
  // The last lines that a run of a pod's container has logged. kNotFound: it has not begun, or its
  // log is not kept. kUnimplemented where there are no pods.
  virtual Result<std::string> PodLog(const ObjectName& pod, const std::string& container,
                                     ContainerRun run, int last_lines);
  // An object that begins to match the selector is added, one that ceases to is deleted.
  virtual Result<std::unique_ptr<Watch>> StartWatch(const ResourceType& type,
                                                    const std::string& namespace_name,
                                                    const std::string& label_selector,
                                                    const std::string& resource_version) = 0;
};

}  // namespace lambdadnn
