// SPDX-License-Identifier: Apache-2.0
// Checks whether an operator could work with an API server, for `lambdadnn-operator --check` and
// `kubectl lambdadnn doctor`. Changes nothing, except for a probe object in the store, if one is
// given, which it deletes again.
#pragma once

#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

struct AccessCheckOptions {
  // Namespaces whose jobs are managed; empty = all.
  std::vector<std::string> namespaces = {};
  // Where the Lease lies; empty = no leader election.
  std::string lease_namespace = "";
  // Functions are pods of Knative.
  bool knative = false;
  // Functions are pods of OpenFaaS in this namespace; empty = they are not.
  std::string openfaas_namespace = "";
  std::string openfaas_gateway_namespace = "";  // of OpenFaaS itself
};

struct CheckFinding {
  enum class Level { kGood, kWarning, kMissing };
  Level level = Level::kGood;
  std::string subject;  // what was checked: "API server", "CRD", "access", "object store"
  // One sentence: what is right, or what is wrong and what to do about it.
  std::string text;
};

// The API server answers, the CRD is there and is the one this program was built with, and the
// client may do everything that the operator needs. Ends after the first finding when the server
// does not answer.
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
