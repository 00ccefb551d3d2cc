// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/node_capacity.h"

#include "common/json/json_path.h"
#include "operator/api/quantity.h"

namespace lambdadnn {

int64_t SchedulableMemoryMib(const Json& node) {
  if (IsTrueAt(node, {"spec", "unschedulable"})) return 0;
  const Json* memory = FindPath(node, {"status", "allocatable", "memory"});
  if (memory == nullptr || !memory->is_string()) return 0;
  const Result<int64_t> mib = ParseMemoryMibRoundedDown(memory->get<std::string>());
  return mib.ok() ? *mib : 0;
}

}  // namespace lambdadnn
