// SPDX-License-Identifier: Apache-2.0
// Lists of NetworkPolicyPeers (networking.k8s.io/v1) as an administrator writes them. Private
// to this folder.
#pragma once

#include <string>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {

// Reports what is no podSelector, namespaceSelector or ipBlock. An empty peer is reported as well:
// the API server would refuse it, or it would match everything.
void CheckPeers(const Json& peers, const std::string& path, std::vector<FieldError>* errors);

// A field of the reader that holds peers; absent leaves `*out` alone.
void TakePeers(JsonReader* reader, const char* name, Json* out, std::vector<FieldError>* errors);

}  // namespace lambdadnn
