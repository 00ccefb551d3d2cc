// SPDX-License-Identifier: Apache-2.0
// The IDX format of MNIST and its relatives, plain or gzipped: big-endian header (two zero bytes,
// element type, number of dimensions, each dimension), then the elements. An images file of three
// dimensions gives samples [1, height, width].
#pragma once

#include <memory>

#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

// Reads both headers. Labels imply the classes where the job says nothing, whatever `classes` says
// of that; then all of them are read once.
Result<std::unique_ptr<SampleReader>> OpenIdx(DataFile images, DataFile labels,
                                              const LabelClasses& classes);

}  // namespace lambdadnn
