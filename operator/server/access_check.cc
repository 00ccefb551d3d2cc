// SPDX-License-Identifier: Apache-2.0
#include "operator/server/access_check.h"

#include <map>
#include <set>

#include "common/json/json_path.h"
#include "operator/api/job_schema.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"
#include "operator/server/access_rules.h"

namespace lambdadnn {
namespace {

using Level = CheckFinding::Level;

constexpr const char* kCrdName = "serverlesstrainingjobs.lambdadnn.io";
constexpr size_t kMaxNamed = 5;

const ResourceType& CrdType() {
  static const ResourceType type{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                 "CustomResourceDefinition"};
  return type;
}

const ResourceType& AccessReviewType() {
  static const ResourceType type{"authorization.k8s.io", "v1", "selfsubjectaccessreviews",
                                 "SelfSubjectAccessReview"};
  return type;
}

// Paths of all fields below a structural schema.
void CollectFields(const Json& schema, const std::string& path, std::set<std::string>* fields) {
  if (const Json* items = FindPath(schema, {"items"})) CollectFields(*items, path + "[]", fields);
  if (const Json* values = FindPath(schema, {"additionalProperties"})) {
    CollectFields(*values, path + ".*", fields);
  }
  const Json* properties = FindPath(schema, {"properties"});
  if (properties == nullptr || !properties->is_object()) return;
  for (const auto& [name, child] : properties->items()) {
    const std::string field = path.empty() ? name : path + "." + name;
    fields->insert(field);
    CollectFields(child, field, fields);
  }
}

// Of the version that this program speaks; empty when the CRD does not serve it.
std::set<std::string> FieldsOf(const Json& crd) {
  std::set<std::string> fields;
  const Json* versions = FindPath(crd, {"spec", "versions"});
  if (versions == nullptr || !versions->is_array()) return fields;
  for (const Json& version : *versions) {
    if (TextField(version, "name") != ServerlessTrainingJobType().version) continue;
    const Json* schema = FindPath(version, {"schema", "openAPIV3Schema"});
    if (schema != nullptr) CollectFields(*schema, "", &fields);
  }
  return fields;
}

CheckFinding CompareCrd(const Json& installed) {
  const std::set<std::string> have = FieldsOf(installed);
  std::string missing;
  size_t count = 0;
  for (const std::string& field : FieldsOf(JobCrd())) {
    if (have.contains(field)) continue;
    if (++count <= kMaxNamed) missing += (missing.empty() ? "" : ", ") + field;
  }
  if (count == 0) return {Level::kGood, "CRD", std::string(kCrdName) + " is the operator's"};
  if (count > kMaxNamed) missing += " and " + std::to_string(count - kMaxNamed) + " more";
  return {Level::kMissing, "CRD",
          std::string(kCrdName) + " is of another version, it lacks " + missing +
              "; apply the CRD that came with this operator"};
}

CheckFinding CheckCrd(KubeClient& kube) {
  const Result<Json> crd = kube.Get(CrdType(), {"", kCrdName});
  if (crd.ok()) return CompareCrd(*crd);
  if (crd.status().code() == StatusCode::kNotFound) {
    return {Level::kMissing, "CRD",
            std::string(kCrdName) + " is not installed; apply crds/ of this release"};
  }
  if (crd.status().code() == StatusCode::kPermissionDenied) {
    return {Level::kWarning, "CRD",
            "its version cannot be compared without the right to get " + std::string(kCrdName)};
  }
  return {Level::kMissing, "CRD", crd.status().message()};
}

Result<bool> MayI(KubeClient& kube, const AccessRule& rule, const std::string& namespace_name) {
  Json attributes = {{"group", rule.group}, {"resource", rule.resource}, {"verb", rule.verb}};
  if (!rule.subresource.empty()) attributes["subresource"] = rule.subresource;
  if (!rule.name.empty()) attributes["name"] = rule.name;
  if (!namespace_name.empty()) attributes["namespace"] = namespace_name;
  LDNN_ASSIGN_OR_RETURN(
      const Json review,
      kube.Create(AccessReviewType(), {{"apiVersion", "authorization.k8s.io/v1"},
                                       {"kind", "SelfSubjectAccessReview"},
                                       {"spec", {{"resourceAttributes", attributes}}}}));
  // An answer that cannot be read counts as not allowed.
  return IsTrueAt(review, {"status", "allowed"});
}

// How work goes on without the rules of a set; "" = it does not.
std::string WorkWithout(const std::string& set) {
  if (set == "isolation") {
    return "jobs run all the same, less bounded (docs/operations.md, Isolation)";
  }
  if (set == "openfaas") {
    return "jobs run all the same, and their status tells of a function only whether it is "
           "available "
           "(docs/operations.md, OpenFaaS)";
  }
  return "";
}

// A finding per rule that is missing, in `namespace_name` (empty = in the whole cluster).
void CheckRules(KubeClient& kube, const std::string& set, const std::string& namespace_name,
                std::vector<CheckFinding>* findings) {
  int allowed = 0;
  int missing = 0;
  const std::string where =
      namespace_name.empty() ? "in all namespaces" : "in namespace " + namespace_name;
  for (const AccessRule& rule : AccessRules()) {
    if (rule.set != set) continue;
    const Result<bool> answer = MayI(kube, rule, namespace_name);
    if (!answer.ok()) {
      findings->push_back({Level::kMissing, "access", answer.status().message()});
      return;
    }
    ++(*answer ? allowed : missing);
    if (*answer) continue;
    if (const std::string spared = WorkWithout(set); !spared.empty()) {
      findings->push_back({Level::kWarning, "access",
                           "may not " + DescribeRule(rule) + " " + where + "; " + spared});
      continue;
    }
    findings->push_back({Level::kMissing, "access",
                         "may not " + DescribeRule(rule) + " " + where +
                             "; bind the rules of rbac-rules.yaml to this user"});
  }
  if (missing > 0) return;
  findings->push_back({Level::kGood, "access",
                       "all " + std::to_string(allowed) + " rules for " +
                           (set == "lease" ? "the Lease" : set) + " hold " + where});
}

// What does not work without an optional rule; "" = reported elsewhere.
std::string LossWithout(const AccessRule& rule) {
  static const std::map<std::string, std::string> losses = {
      {"nodes", "jobs are planned and admitted as if the nodes had capacity without end"},
      {"pods", "capacity of the nodes counts as if no other pods used it"},
      {"configmaps",
       "the platform file alone says how long a request may take and how many "
       "functions there may be"},
      {"deployments",
       "time-outs of OpenFaaS' gateway and provider are not known unless "
       "--openfaas-timeout-seconds (openfaas.timeoutSeconds) tells them"},
      {"resourcequotas", "plans may exceed the namespace's quota, and their functions then wait"},
      {"limitranges",
       "functions may be larger or smaller than the namespace allows, and are then "
       "not created"},
  };
  const auto found = losses.find(rule.resource);
  return found == losses.end() ? "" : found->second;
}

// A warning per rule that is missing and could be spared.
void CheckOptionalRules(KubeClient& kube, const std::string& set, const std::string& namespace_name,
                        std::vector<CheckFinding>* findings) {
  for (const AccessRule& rule : AccessRules()) {
    const std::string loss = rule.set == set ? LossWithout(rule) : "";
    if (loss.empty()) continue;
    const Result<bool> answer = MayI(kube, rule, namespace_name);
    if (answer.ok() && *answer) continue;
    findings->push_back(
        {Level::kWarning, "access",
         "may not " + DescribeRule(rule) +
             (namespace_name.empty() ? " in all namespaces" : " in namespace " + namespace_name) +
             ": " + loss});
  }
}

}  // namespace

std::vector<CheckFinding> CheckCluster(KubeClient& kube, const AccessCheckOptions& options) {
  std::vector<CheckFinding> findings;
  // Everybody may ask what he may do: an answer at all shows server and credentials.
  const Result<bool> reached = MayI(kube, AccessRules().front(), "default");
  if (!reached.ok()) {
    findings.push_back({Level::kMissing, "API server", reached.status().message()});
    return findings;
  }
  findings.push_back({Level::kGood, "API server", "answers"});
  findings.push_back(CheckCrd(kube));
  std::vector<std::string> namespaces = options.namespaces;
  if (namespaces.empty()) namespaces.emplace_back();
  for (const std::string& name : namespaces) {
    CheckRules(kube, "jobs", name, &findings);
    if (!options.knative) continue;
    CheckRules(kube, "knative", name, &findings);
    CheckRules(kube, "isolation", name, &findings);
    CheckOptionalRules(kube, "limits", name, &findings);
  }
  if (!options.openfaas_namespace.empty()) {
    CheckRules(kube, "openfaas", options.openfaas_namespace, &findings);
    CheckOptionalRules(kube, "limits", options.openfaas_namespace, &findings);
    CheckOptionalRules(kube, "gateway", options.openfaas_gateway_namespace, &findings);
  }
  if (options.knative || !options.openfaas_namespace.empty()) {
    CheckOptionalRules(kube, "optional", "", &findings);
  }
  if (!options.lease_namespace.empty()) {
    CheckRules(kube, "lease", options.lease_namespace, &findings);
  }
  return findings;
}

CheckFinding CheckStore(Runtime& runtime, ObjectStore& store) {
  const std::string prefix = "lambdadnn-probe/" + MakeUuid(runtime.random) + "/";
  const Bytes content = ToBytes("probe");
  const auto attempt = [&]() -> Status {
    LDNN_RETURN_IF_ERROR(store.Put(prefix + "object", ByteView(content)));
    LDNN_ASSIGN_OR_RETURN(const Bytes read,
                          GetBounded(store, prefix + "object", content.size(), "a probe"));
    if (read != content) return DataLossError("the probe object was read back differently");
    LDNN_ASSIGN_OR_RETURN(const std::vector<ObjectInfo> listed, ListAll(store, prefix));
    if (listed.size() != 1) return DataLossError("the probe object is not listed");
    return OkStatus();
  };
  const Status tried = attempt();
  const Status cleaned = DeletePrefix(store, prefix).status();
  const Status& bad = tried.ok() ? cleaned : tried;
  if (bad.ok())
    return {Level::kGood, "object store", store.Describe() + " takes and gives objects"};
  return {Level::kMissing, "object store", store.Describe() + ": " + bad.message()};
}

CheckFinding CheckStore(Runtime& runtime, const Result<std::unique_ptr<ObjectStore>>& store) {
  if (store.ok()) return CheckStore(runtime, **store);
  return {Level::kMissing, "object store", store.status().message()};
}

bool AllUsable(const std::vector<CheckFinding>& findings) {
  for (const CheckFinding& finding : findings) {
    if (finding.level == Level::kMissing) return false;
  }
  return true;
}

std::string FormatFindings(const std::vector<CheckFinding>& findings) {
  std::string text;
  for (const CheckFinding& finding : findings) {
    switch (finding.level) {
      case Level::kGood:
        text += "ok       ";
        break;
      case Level::kWarning:
        text += "warning  ";
        break;
      case Level::kMissing:
        text += "missing  ";
        break;
    }
    text += finding.subject + ": " + finding.text + "\n";
  }
  return text;
}

}  // namespace lambdadnn
