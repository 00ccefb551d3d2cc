// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

uint64_t PayloadBytes(ObjectKind kind, Range elements, int64_t block_elements) {
  const auto count = static_cast<uint64_t>(elements.size());
  if (kind != ObjectKind::kNorms) return count * sizeof(float);
  return static_cast<uint64_t>(BlockCount(elements.size(), block_elements)) * sizeof(double);
}

}  // namespace lambdadnn
