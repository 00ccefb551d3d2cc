// SPDX-License-Identifier: Apache-2.0
// The command line of lambdadnn-operator. Every flag has an environment variable LAMBDADNN_<FLAG>,
// which the flag overrides, except for those of a single call: --check, --check-store and the
// uninstallation's.
#pragma once

#include <optional>
#include <string>

#include "operator/server/operator_options.h"

namespace lambdadnn {

struct OperatorFlags {
  OperatorOptions options;
  std::string backend = BackendName(BackendKind::kLocal);  // as it is named; read into the options
  bool check = false;                                      // say what is missing, and end
  bool prepare_uninstall = false;                          // prepare the uninstallation, and end
  std::string uninstall_deployment = "";                   // "NAMESPACE/NAME"; empty = none
  double uninstall_wait_seconds = 120;
  std::string log_format = "text";
  std::string log_level = "info";
};

// nullopt: the process must end with *exit_code; messages have been printed.
std::optional<OperatorFlags> ParseOperatorFlags(int argc, char** argv, int* exit_code);

}  // namespace lambdadnn
