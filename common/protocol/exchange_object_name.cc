// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/exchange_object_name.h"

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

}  // namespace lambdadnn
