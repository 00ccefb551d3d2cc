// SPDX-License-Identifier: Apache-2.0
// A KubeClient that answers what a user may do, and with a CRD, as told; anything else is another
// client's, if there is one. Header only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "operator/api/job_schema.h"
#include "tests/support/refusing_kube_client.h"

namespace lambdadnn {

class ReviewingKube final : public RefusingKubeClient {
 public:
  explicit ReviewingKube(KubeClient* others = nullptr)
      : others_(others == nullptr ? none_ : *others) {}

  std::set<std::string> forbidden;  // "NAMESPACE: verb resource/subresource"
  Result<Json> crd = JobCrd();
  Status down;
  std::optional<Json> review;  // instead of an answer that makes sense

  Result<Json> Get(const ResourceType& type, const ObjectName& name) override {
    if (!down.ok()) return down;
    if (type.kind == "CustomResourceDefinition") return crd;
    return others_.Get(type, name);
  }
  Result<Json> Create(const ResourceType& type, const Json& object) override {
    if (!down.ok()) return down;
    EXPECT_EQ(type.kind, "SelfSubjectAccessReview") << "nothing is changed";
    const Json& asked = object.at("spec").at("resourceAttributes");
    std::string what = asked.value("namespace", "") + ": " + asked.at("verb").get<std::string>() +
                       " " + asked.at("resource").get<std::string>();
    if (asked.contains("subresource")) what += "/" + asked["subresource"].get<std::string>();
    if (review.has_value()) return *review;
    Json answer = object;
    answer["status"] = {{"allowed", !forbidden.contains(what)}};
    return answer;
  }
  Result<KubeList> List(const ResourceType& type, const std::string& namespace_name,
                        const std::string& selector, int limit,
                        const std::string& continue_token) override {
    return others_.List(type, namespace_name, selector, limit, continue_token);
  }

 private:
  RefusingKubeClient none_;
  KubeClient& others_;
};

}  // namespace lambdadnn
