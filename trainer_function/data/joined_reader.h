// SPDX-License-Identifier: Apache-2.0
// Several files that count as one: the samples of the first, then those of the second, and so on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

struct NamedReader {
  std::string name;  // for messages
  std::unique_ptr<SampleReader> reader;
};

// At least one. Classes are the most that one of them has. kInvalidArgument naming the first whose
// samples are not of the same form.
Result<std::unique_ptr<SampleReader>> JoinReaders(std::vector<NamedReader> parts);

}  // namespace lambdadnn
