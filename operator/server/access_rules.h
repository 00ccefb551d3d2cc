// SPDX-License-Identifier: Apache-2.0
// charts/lambdadnn-operator/files/rbac-rules.yaml as it was when this program was built: the access
// rules that the operator needs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambdadnn {

// One permission: a verb on a resource of a group.
struct AccessRule {
  std::string
      set;  // "jobs", "lease", "knative", "openfaas", "gateway", "isolation", "limits", "optional"
  std::string group;
  std::string resource;
  std::string subresource;
  std::string name;  // of one object; empty = any
  std::string verb;
};

const std::vector<AccessRule>& AccessRules();
// The text of that file, which the build writes into embedded_rbac.cc.
std::string_view EmbeddedRbacRules();

// "patch serverlesstrainingjobs/status in lambdadnn.io".
std::string DescribeRule(const AccessRule& rule);

}  // namespace lambdadnn
