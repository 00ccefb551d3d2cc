// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/compute_device.h"

#include <string>

#include "common/base/text.h"

namespace lambdadnn {

Result<ComputeDevice> ParseDevice(std::string_view name) {
  if (name.empty()) return ComputeDevice::kCpu;
  if (const auto device = FindEnum<ComputeDevice>(name)) return *device;
  return InvalidArgumentError(std::string(kDeviceVariable) + " must be " +
                              Join(EnumNameList<ComputeDevice>(), " or ") + ", not '" +
                              std::string(name) + "'");
}

}  // namespace lambdadnn
