// SPDX-License-Identifier: Apache-2.0
// metadata of API objects: accessors, and rules that hold for every kind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// A text field of any JSON value; empty when that is no object, or the field absent or not text.
std::string TextField(const Json& value, std::string_view field);
// The same of an API object's metadata.
std::string MetadataText(const Json& object, const char* field);
// The value of a label; empty when there is none.
std::string LabelText(const Json& object, std::string_view label);
ObjectName NameOf(const Json& object);
std::string UidOf(const Json& object);
std::string ResourceVersionOf(const Json& object);
bool HasFinalizers(const Json& object);
bool IsBeingDeleted(const Json& object);
// uids of metadata.ownerReferences.
std::vector<std::string> OwnerUids(const Json& object);

// Reports what is wrong with apiVersion, kind and metadata, unknown metadata fields included.
void CheckMetadata(const ResourceType& type, const Json& object, std::vector<FieldError>* errors);

}  // namespace lambdadnn
