// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

std::string ExchangeObjectName::Brief() const {
  const char* const what = kind == ObjectKind::kGradient  ? "gradient of iteration "
                           : kind == ObjectKind::kWeights ? "weights of version "
                           : kind == ObjectKind::kNorms   ? "norms of iteration "
                                                          : "object of iteration ";
  std::string brief = what;
  brief += std::to_string(iteration);
  brief += ", shard ";
  brief += std::to_string(shard);
  brief += layer == 0 ? ", from worker " : ", from server layer ";
  if (layer > 0) {
    brief += std::to_string(layer);
    brief += " index ";
  }
  brief += std::to_string(index);
  return brief;
}

uint64_t PayloadBytes(ObjectKind kind, Range elements, int64_t block_elements) {
  const auto count = static_cast<uint64_t>(elements.size());
  if (kind != ObjectKind::kNorms) return count * sizeof(float);
  return static_cast<uint64_t>(BlockCount(elements.size(), block_elements)) * sizeof(double);
}

}  // namespace lambdadnn
