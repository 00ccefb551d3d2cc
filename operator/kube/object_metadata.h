// SPDX-License-Identifier: Apache-2.0
// metadata of API objects: the accessors and the rules that hold for every kind.
#pragma once

#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// A text field of metadata; empty when absent or not text.
std::string MetadataText(const Json& object, const char* field);
ObjectName NameOf(const Json& object);
bool HasFinalizers(const Json& object);
bool IsBeingDeleted(const Json& object);
// uids of metadata.ownerReferences.
std::vector<std::string> OwnerUids(const Json& object);

// Reports what is wrong with apiVersion, kind and metadata, unknown metadata fields included.
void CheckMetadata(const ResourceType& type, const Json& object, std::vector<FieldError>* errors);

}  // namespace lambdadnn
