// SPDX-License-Identifier: Apache-2.0
// spec.profile and status.profile: JSON <-> WorkloadProfile. Sample and byte counts are whole
// numbers, everything else decimals as strings; fields at zero (unknown) are left out.
#pragma once

#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "common/plan/workload.h"

namespace lambdadnn {

WorkloadProfile DecodeWorkloadProfile(const Json& json, const std::string& path,
                                      std::vector<FieldError>* errors);
Json EncodeWorkloadProfile(const WorkloadProfile& profile);

}  // namespace lambdadnn
