// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/node_capacity.h"

#include "operator/api/quantity.h"

namespace lambdadnn {

int64_t SchedulableMemoryMib(const Json& node) {
  if (node.value(Json::json_pointer("/spec/unschedulable"), false)) return 0;
  const Json memory = node.value(Json::json_pointer("/status/allocatable/memory"), Json(nullptr));
  if (!memory.is_string()) return 0;
  const Result<int64_t> mib = ParseMemoryMibRoundedDown(memory.get<std::string>());
  return mib.ok() ? *mib : 0;
}

}  // namespace lambdadnn
