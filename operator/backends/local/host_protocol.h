// SPDX-License-Identifier: Apache-2.0
// JSON of the function host's API (docs/formats.md, "Function host API"), for both of its ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "operator/backends/local/function_host.h"

namespace lambdadnn {

struct HostInfo {
  int64_t pid = 0;
  std::string isolation;         // FunctionBackend::IsolationName()
  std::string isolation_reason;  // why it is "pacing"
  std::string directory;
  int64_t memory_mib = 0;  // of all functions together; 0 = no limit
  int64_t gpus = 0;        // likewise; 0 = none
};

// Decoding is strict: kInvalidArgument with field paths.
std::string EncodeFunctionSpec(const HostedFunctionSpec& spec);
Result<HostedFunctionSpec> DecodeFunctionSpec(std::string_view text);
std::string EncodeFunctions(const std::vector<FunctionInstance>& functions);
Result<std::vector<FunctionInstance>> DecodeFunctions(std::string_view text);
std::string EncodeHostInfo(const HostInfo& info);
Result<HostInfo> DecodeHostInfo(std::string_view text);

}  // namespace lambdadnn
