// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/performance_model.h"

namespace lambdadnn {

bool SplitByFunctions(const Box& box, std::vector<Box>* parts) {
  if (box.first_functions == box.last_functions) return false;
  Box part = box;
  for (int n = box.first_functions; n <= box.last_functions; ++n) {
    part.first_functions = part.last_functions = n;
    parts->push_back(part);
  }
  return true;
}

bool SplitBySize(const Box& box, std::vector<Box>* parts) {
  if (box.first_size == box.last_size) return false;
  Box part = box;
  for (int size = box.first_size; size <= box.last_size; ++size) {
    part.first_size = part.last_size = size;
    parts->push_back(part);
  }
  return true;
}

}  // namespace lambdadnn
