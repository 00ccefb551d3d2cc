// SPDX-License-Identifier: Apache-2.0
// Pieces that the codecs of this folder share. Not for use outside of common/protocol.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/json/json_reader.h"
#include "common/protocol/slice.h"

namespace lambdadnn::codec {

// One line; text that is not UTF-8 (a message from a library) is repaired rather than thrown on.
std::string Dump(const Json& json);
// The nested value; null and a report when it is absent.
const Json* RequiredChild(JsonReader& reader, std::string_view name);
Json CheckpointToJson(const CheckpointReference& checkpoint);
CheckpointReference ReadCheckpoint(const Json& json, const std::string& path,
                                   std::vector<FieldError>* errors);

}  // namespace lambdadnn::codec
