// SPDX-License-Identifier: Apache-2.0
// A KubeClient that answers every request with one status; a test's own client overrides what it is
// about. Header only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "operator/kube/kube_client.h"

namespace lambdadnn {

class RefusingKubeClient : public KubeClient {
 public:
  explicit RefusingKubeClient(Status refusal = UnimplementedError("not in this test"))
      : refusal_(std::move(refusal)) {}

  Result<Json> Get(const ResourceType&, const ObjectName&) override { return refusal_; }
  Result<KubeList> List(const ResourceType&, const std::string&, const std::string&, int,
                        const std::string&) override {
    return refusal_;
  }
  Result<Json> Create(const ResourceType&, const Json&) override { return refusal_; }
  Result<Json> Update(const ResourceType&, const Json&, Subresource) override { return refusal_; }
  Result<Json> Patch(const ResourceType&, const ObjectName&, const Json&, Subresource) override {
    return refusal_;
  }
  Status Delete(const ResourceType&, const ObjectName&, const std::string&) override {
    return refusal_;
  }
  Result<std::unique_ptr<Watch>> StartWatch(const ResourceType&, const std::string&,
                                            const std::string&, const std::string&) override {
    return refusal_;
  }

 private:
  const Status refusal_;
};

}  // namespace lambdadnn
