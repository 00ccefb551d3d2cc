// SPDX-License-Identifier: Apache-2.0
// The safetensors file format: 8 bytes length of a JSON header, the header
// {"name": {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}, then the tensors.
// Names and layouts are PyTorch's, so load_state_dict takes the file's tensors as they are.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

// The data of tensors with larger elements first, so that all of it is aligned; else in their
// order.
std::string EncodeSafetensors(std::span<const StateTensor> tensors,
                              const std::map<std::string, std::string>& metadata);

struct SafetensorsFile {
  std::vector<StateTensor> tensors;  // in the order of the data
  std::map<std::string, std::string> metadata;
};

// kInvalidArgument saying what is wrong; any bytes are safe.
Result<SafetensorsFile> DecodeSafetensors(std::string_view file);

}  // namespace lambdadnn
