// SPDX-License-Identifier: Apache-2.0
// The safetensors file format, float32 only: 8 bytes length of a JSON header, the header
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

// `flat` has the manifest's layout.
std::string EncodeSafetensors(const ParameterManifest& manifest, std::span<const float> flat,
                              const std::map<std::string, std::string>& metadata);

struct SafetensorsFile {
  ParameterManifest manifest;  // in the order of the data
  std::vector<float> flat;
  std::map<std::string, std::string> metadata;
};

// kInvalidArgument saying what is wrong; any bytes are safe.
Result<SafetensorsFile> DecodeSafetensors(std::string_view file);

}  // namespace lambdadnn
