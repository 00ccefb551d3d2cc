// SPDX-License-Identifier: Apache-2.0
#include "operator/server/operator_options.h"

namespace lambdadnn {
namespace {

constexpr int kMaxWorkers = 64;

}  // namespace

Status OperatorOptions::Validate() const {
  if (backend != "Local") {
    return InvalidArgumentError("--backend: " + backend +
                                " is not available in this release; use Local");
  }
  if (host_socket.empty()) {
    return InvalidArgumentError(
        "--host-socket: the backend Local needs the socket of a function host; start one with: "
        "lambdadnn host --socket SOCKET --dir FOLDER");
  }
  if (workers < 1 || workers > kMaxWorkers) {
    return InvalidArgumentError("--workers: must be from 1 to " + std::to_string(kMaxWorkers));
  }
  return OkStatus();
}

}  // namespace lambdadnn
