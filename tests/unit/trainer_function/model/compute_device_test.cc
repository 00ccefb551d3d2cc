// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/compute_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(ComputeDevice, IsTheProcessorUnlessNamed) {
  EXPECT_EQ(ParseDevice("").value(), ComputeDevice::kCpu);
  EXPECT_EQ(ParseDevice("cpu").value(), ComputeDevice::kCpu);
  EXPECT_EQ(ParseDevice("cuda").value(), ComputeDevice::kCuda);
}

TEST(ComputeDevice, RefusesOtherNames) {
  for (const char* name : {"gpu", "CUDA", "cuda:0", "cuda ", " cpu", "cpu,cuda"}) {
    const auto device = ParseDevice(name);
    EXPECT_EQ(device.status().code(), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(device.status().message(),
              "LAMBDADNN_DEVICE must be cpu or cuda, not '" + std::string(name) + "'");
  }
}

}  // namespace
}  // namespace lambdadnn
