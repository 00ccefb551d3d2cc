// SPDX-License-Identifier: Apache-2.0
// Whether an operator could do its work at an API server: what `lambdadnn-operator --check` and
// `kubectl lambdadnn doctor` say. Asks, changes nothing (but for a probe object in a store that it
// is told to try, which it takes away again).
#pragma once

#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

struct AccessCheckOptions {
  // Whose jobs are looked after; empty = all namespaces.
  std::vector<std::string> namespaces = {};
  // Where the Lease lies; empty = no leader election.
  std::string lease_namespace = "";
  // Functions are pods of Knative.
  bool knative = false;
};

struct CheckFinding {
  enum class Level { kGood, kWarning, kMissing };
  Level level = Level::kGood;
  std::string subject;  // what was looked at: "API server", "CRD", "access", "object store"
  // One sentence: what is well, or what is not and what to do about it.
  std::string text;
};

// The API server answers, the CRD is there and is the one this program was built with, and whoever
// the client is may do everything that the operator needs. Ends after the first finding when the
// server does not answer.
std::vector<CheckFinding> CheckCluster(KubeClient& kube, const AccessCheckOptions& options);

// Writes, reads, lists and deletes one small object under "lambdadnn-probe/".
CheckFinding CheckStore(Runtime& runtime, ObjectStore& store);
// The same for a store that may not even have opened.
CheckFinding CheckStore(Runtime& runtime, const Result<std::unique_ptr<ObjectStore>>& store);

// False when something is missing.
bool AllUsable(const std::vector<CheckFinding>& findings);
// A line each: "ok       CRD: ...", "warning  ...", "missing  ...".
std::string FormatFindings(const std::vector<CheckFinding>& findings);

}  // namespace lambdadnn
