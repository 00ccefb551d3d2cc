// SPDX-License-Identifier: Apache-2.0
// Knative Serving as far as a fixed-scale Service goes, on an in-memory API server: a revision and
// its PodAutoscaler for each Service, as many pods as the PodAutoscaler says, which get ready, end
// and are started anew when the test says so. It acts only in Reconcile, so that a test may check
// the state between any two steps.
#pragma once

#include <string>
#include <vector>

#include "operator/backends/knative/knative_backend.h"
#include "operator/backends/knative/knative_types.h"
#include "operator/backends/knative/pod_endpoint.h"
#include "operator/backends/kubernetes/pod_instances.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {

class KnativeStandIn {
 public:
  explicit KnativeStandIn(InMemoryApiServer& server) : server_(server) {
    const ResourceType config_maps = {"", "v1", "configmaps", "ConfigMap"};
    const ResourceType quotas = {"", "v1", "resourcequotas", "ResourceQuota"};
    const ResourceType limit_ranges = {"", "v1", "limitranges", "LimitRange"};
    for (const ResourceType& type :
         {ServerlessTrainingJobType(), SecretType(), PodType(), NodeType(), PodAutoscalerType(),
          ServiceAccountType(), NetworkPolicyType(), config_maps, quotas, limit_ranges}) {
      ResourceDefinition definition;
      definition.type = type;
      server_.Define(std::move(definition));
    }
    ResourceDefinition services;
    services.type = KnativeServiceType();
    services.has_status = true;
    server_.Define(std::move(services));
  }

  // What Knative's controllers would do next, all of it.
  void Reconcile() {
    for (const Json& service : All(KnativeServiceType())) EnsureRevision(service);
    for (const Json& autoscaler : All(PodAutoscalerType())) EnsurePods(autoscaler);
  }

  std::vector<Json> All(const ResourceType& type) {
    return server_.List(type, "", "", 1000, "").value().items;
  }
  // Ready, at an address of its own.
  void MakeReady(const Json& pod) {
    const std::string ip = "10.244.1." + std::to_string(++addresses_);
    SetStatus(pod,
              {{"phase", "Running"},
               {"podIP", ip},
               {"conditions",
                Json::array(
                    {{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", kReadyTime}}})},
               {"containerStatuses",
                Json::array({{{"name", kFunctionContainer}, {"restartCount", 0}}})}});
  }
  // What stands before Knative's Services knows all that there are.
  void MakeRoutes() {
    SetRoutes({{"conditions", Json::array({{{"type", "RoutesReady"}, {"status", "True"}}})},
               {"traffic", Json::array({{{"percent", 100}}})}});
  }
  // The revision of each counts as failed; routes that there are stay.
  void FailRevisions() {
    SetRoutes({{"conditions", Json::array({{{"type", "RoutesReady"},
                                            {"status", "False"},
                                            {"reason", "RevisionMissing"}}})}});
  }
  void SetStatus(const Json& pod, const Json& status) {
    static_cast<void>(
        server_.Patch(PodType(), NameOf(pod), {{"status", status}}, Subresource::kNone).value());
  }

  static constexpr const char* kReadyTime = "2033-01-01T00:00:00Z";

 private:
  void SetRoutes(const Json& status) {
    for (const Json& service : All(KnativeServiceType())) {
      static_cast<void>(server_
                            .Patch(KnativeServiceType(), NameOf(service), {{"status", status}},
                                   Subresource::kStatus)
                            .value());
    }
  }

  static std::string Annotation(const Json& object, const char* path, const char* name) {
    return TextField(object.value(Json::json_pointer(path), Json(Json::object())), name);
  }

  void EnsureRevision(const Json& service) {
    const ObjectName name = NameOf(service);
    const std::string revision = name.name + "-00001";
    if (server_.Get(PodAutoscalerType(), {name.namespace_name, revision}).ok()) return;
    Json meta = service["spec"]["template"]["metadata"];
    meta["labels"][kServiceLabel] = name.name;
    static_cast<void>(
        server_
            .Create(PodAutoscalerType(),
                    {{"apiVersion", "autoscaling.internal.knative.dev/v1alpha1"},
                     {"kind", "PodAutoscaler"},
                     {"metadata",
                      {{"name", revision},
                       {"namespace", name.namespace_name},
                       {"labels", meta["labels"]},
                       {"annotations", meta["annotations"]},
                       {"ownerReferences", Json::array({{{"apiVersion", service["apiVersion"]},
                                                         {"kind", service["kind"]},
                                                         {"name", name.name},
                                                         {"uid", UidOf(service)}}})}}},
                     {"spec",
                      {{"serviceAccountName", service["spec"]["template"]["spec"].value(
                                                  "serviceAccountName", "default")}}}})
            .value());
    static_cast<void>(server_
                          .Patch(KnativeServiceType(), name,
                                 {{"status", {{"latestCreatedRevisionName", revision}}}},
                                 Subresource::kStatus)
                          .value());
  }

  void EnsurePods(const Json& autoscaler) {
    const auto wanted = static_cast<size_t>(std::stoi(
        Annotation(autoscaler, "/metadata/annotations", "autoscaling.knative.dev/min-scale")));
    std::vector<Json> living;
    for (const Json& pod : All(PodType())) {
      const std::vector<std::string> owners = OwnerUids(pod);
      if (owners.size() == 1 && owners[0] == UidOf(autoscaler)) living.push_back(pod);
    }
    for (size_t i = living.size(); i < wanted; ++i) {
      const ObjectName name = NameOf(autoscaler);
      static_cast<void>(
          server_
              .Create(PodType(),
                      {{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"metadata",
                        {{"name", name.name + "-pod-" + std::to_string(++pods_)},
                         {"namespace", name.namespace_name},
                         {"labels", autoscaler["metadata"]["labels"]},
                         {"ownerReferences", Json::array({{{"apiVersion", autoscaler["apiVersion"]},
                                                           {"kind", autoscaler["kind"]},
                                                           {"name", name.name},
                                                           {"controller", true},
                                                           {"uid", UidOf(autoscaler)}}})}}},
                       {"spec", autoscaler["spec"]}})
              .value());
    }
    for (size_t i = wanted; i < living.size(); ++i) {
      static_cast<void>(server_.Delete(PodType(), NameOf(living[i]), ""));
    }
  }

  InMemoryApiServer& server_;
  int pods_ = 0;
  int addresses_ = 0;
};

}  // namespace lambdadnn
