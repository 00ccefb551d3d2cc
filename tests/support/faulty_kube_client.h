// SPDX-License-Identifier: Apache-2.0
// A KubeClient that fails as told: before the call (no effect) or after it (the effect took place,
// the reply is lost). Header only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/json/dump_json.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

class FaultyKubeClient final : public KubeClient {
 public:
  enum class Point { kBefore, kAfter };
  // Gets "get", "list", "create", "update", "updateStatus", "patch", "patchStatus", "delete",
  // "podLog", "watch" or "next", and the object's name, of a list the kind's plural; OK = no fault
  // here.
  using Decide = std::function<Status(const std::string& call, const std::string& name, Point)>;

  // Both outlive this.
  FaultyKubeClient(KubeClient& client, Decide decide)
      : client_(client), decide_(std::move(decide)) {}

  // What containers have logged, instead of the client's own answer.
  std::function<Result<std::string>(const ObjectName& pod, ContainerRun run)> pod_log = nullptr;

  Result<Json> Get(const ResourceType& type, const ObjectName& name) override {
    return Around<Result<Json>>("get", name.name, [&] { return client_.Get(type, name); });
  }
  Result<KubeList> List(const ResourceType& type, const std::string& namespace_name,
                        const std::string& label_selector, int limit,
                        const std::string& continue_token) override {
    return Around<Result<KubeList>>("list", type.plural, [&] {
      return client_.List(type, namespace_name, label_selector, limit, continue_token);
    });
  }
  Result<Json> Create(const ResourceType& type, const Json& object) override {
    return Around<Result<Json>>("create", NameIn(object),
                                [&] { return client_.Create(type, OnTheWire(object)); });
  }
  Result<Json> Update(const ResourceType& type, const Json& object,
                      Subresource subresource) override {
    const char* call = subresource == Subresource::kStatus ? "updateStatus" : "update";
    return Around<Result<Json>>(
        call, NameIn(object), [&] { return client_.Update(type, OnTheWire(object), subresource); });
  }
  Result<Json> Patch(const ResourceType& type, const ObjectName& name, const Json& merge_patch,
                     Subresource subresource) override {
    const char* call = subresource == Subresource::kStatus ? "patchStatus" : "patch";
    return Around<Result<Json>>(call, name.name, [&] {
      return client_.Patch(type, name, OnTheWire(merge_patch), subresource);
    });
  }
  Status Delete(const ResourceType& type, const ObjectName& name,
                const std::string& uid_precondition) override {
    return Around<Status>("delete", name.name,
                          [&] { return client_.Delete(type, name, uid_precondition); });
  }
  Result<std::string> PodLog(const ObjectName& pod, const std::string& container, ContainerRun run,
                             int last_lines) override {
    return Around<Result<std::string>>("podLog", pod.name, [&] {
      return pod_log ? pod_log(pod, run) : client_.PodLog(pod, container, run, last_lines);
    });
  }
  Result<std::unique_ptr<Watch>> StartWatch(const ResourceType& type,
                                            const std::string& namespace_name,
                                            const std::string& label_selector,
                                            const std::string& resource_version) override {
    using Started = Result<std::unique_ptr<Watch>>;
    Started started = Around<Started>("watch", "", [&] {
      return client_.StartWatch(type, namespace_name, label_selector, resource_version);
    });
    if (!started.ok()) return started;
    return std::unique_ptr<Watch>(std::make_unique<FaultyWatch>(*this, std::move(*started)));
  }

 private:
  // What a server gets of it: text that is not UTF-8 does not travel.
  static Json OnTheWire(const Json& body) { return Json::parse(DumpJson(body)); }

  class FaultyWatch final : public Watch {
   public:
    FaultyWatch(FaultyKubeClient& client, std::unique_ptr<Watch> watch)
        : client_(client), watch_(std::move(watch)) {}
    Result<WatchEvent> Next(Duration timeout) override {
      return client_.Around<Result<WatchEvent>>("next", "", [&] { return watch_->Next(timeout); });
    }

   private:
    FaultyKubeClient& client_;
    std::unique_ptr<Watch> watch_;
  };

  static std::string NameIn(const Json& object) {
    const Json::json_pointer pointer("/metadata/name");
    return object.contains(pointer) ? object.at(pointer).get<std::string>() : "";
  }

  template <typename R, typename Call>
  R Around(const std::string& call, const std::string& name, Call&& body) {
    if (Status fault = decide_(call, name, Point::kBefore); !fault.ok()) return fault;
    R result = body();
    if (Status fault = decide_(call, name, Point::kAfter); !fault.ok()) return fault;
    return result;
  }

  KubeClient& client_;
  Decide decide_;
};

}  // namespace lambdadnn
