// SPDX-License-Identifier: Apache-2.0
// The text of charts/lambdadnn-operator/files/rbac-rules.yaml, embedded when the program is built.
#pragma once

#include <string_view>

namespace lambdadnn {

std::string_view EmbeddedRbacRules();

}  // namespace lambdadnn
