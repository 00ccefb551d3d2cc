// SPDX-License-Identifier: Apache-2.0
// CIFAR-10's binary version: records of one label byte and 3 x 32 x 32 bytes (red, green, blue
// planes), in one or more files that count as one.
#pragma once

#include <memory>
#include <vector>

#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

// `classes` 0 = 10. Reads nothing but the sizes.
Result<std::unique_ptr<SampleReader>> OpenCifar10(std::vector<DataFile> files, int classes);

}  // namespace lambdadnn
