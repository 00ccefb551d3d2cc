// SPDX-License-Identifier: Apache-2.0
// Memory in JSON: a quantity of Kubernetes as text, such as "1728Mi".
#pragma once

#include <string_view>

#include "common/json/json_reader.h"

namespace lambdadnn {

// A quantity of whole MiB. As JsonReader::Optional: true when *out was set; what cannot be read is
// reported.
bool ReadMemoryMib(JsonReader& reader, std::string_view name, int* out);
// The same when it must be there.
bool RequireMemoryMib(JsonReader& reader, std::string_view name, int* out);
// Any quantity, in MiB.
bool ReadMebibytes(JsonReader& reader, std::string_view name, double* out);
// Leaves out what is not above 0.
void PutMemoryMib(Json* json, const char* name, int memory_mib);

}  // namespace lambdadnn
