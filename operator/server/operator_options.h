// SPDX-License-Identifier: Apache-2.0
// What an operator's process is told at its start: plain values, from flags and LAMBDADNN_*
// variables (operator/cmd).
#pragma once

#include <string>

#include "common/base/status.h"

namespace lambdadnn {

struct OperatorOptions {
  // The API server. Both empty: this pod's service account, else what kubectl would use.
  std::string kubeconfig = "";
  std::string context = "";
  // Whose jobs are looked after; empty = all namespaces.
  std::string namespace_name = "";

  // Where functions run. Local: the function host (`lambdadnn host`) that serves this socket.
  std::string backend = "Local";
  std::string host_socket = "";
  // Prices, sizes and limits of functions; empty = this machine's, for the backend Local.
  std::string platform_file = "";
  // PEM file of the authorities that sign the object stores' certificates; empty = the system's.
  std::string store_ca_file = "";

  int workers = 2;  // jobs reconciled at once

  Status Validate() const;
};

}  // namespace lambdadnn
