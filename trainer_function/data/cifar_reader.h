// SPDX-License-Identifier: Apache-2.0
// CIFAR-10's and CIFAR-100's binary versions: records of a label byte, of CIFAR-100 two (the coarse
// one first), and 3 x 32 x 32 bytes (red, green, blue planes), in one or more files that count as
// one.
#pragma once

#include <memory>
#include <vector>

#include "common/plan/training_values.h"
#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

// `classes` 0 = 10. Reads nothing but the sizes.
Result<std::unique_ptr<SampleReader>> OpenCifar10(std::vector<DataFile> files, int classes);
// `classes` 0 = 100, or 20 of the coarse labels.
Result<std::unique_ptr<SampleReader>> OpenCifar100(std::vector<DataFile> files, CifarLabels labels,
                                                   int classes);

}  // namespace lambdadnn
