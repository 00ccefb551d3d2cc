// SPDX-License-Identifier: Apache-2.0
// The built-in models with branches, batch norm or embeddings, as far as they are known without
// LibTorch: which sizes a job's parameters and data give their layers. The layers themselves are
// TorchScript (networks/networks.py, network_model.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/architecture.h"
#include "trainer_function/model/dataset_info.h"

namespace lambdadnn {

struct SizedNetwork : OutputForm {
  std::string file;                      // in networks/, without its ending
  std::vector<int64_t> input_shape;      // of a sample
  std::map<std::string, int64_t> sizes;  // of the layers, by their names in networks.py
  int64_t first_stride = 2;              // of a network for images
  bool first_pool = true;                // resnets
  double dropout = 0;
};

bool IsNetwork(const std::string& name);

// resnet18, resnet50 {smallImages: from the images, groupNorm: 0}; mobilenet {the same, dropout:
// 0.2}; textcnn {vocabulary: needed, embedding: 128, width: 100, kernels: [3, 4, 5], dropout: 0.5}.
// With smallImages, the default below 64 pixels, the first convolution is 3 x 3 (mobilenet's always
// is) and keeps every pixel, and resnets leave out the pooling behind it. With groupNorm there is
// no batch norm, and no buffers. kInvalidArgument naming the field for a parameter that is unknown
// or out of range, or data that does not fit.
Result<SizedNetwork> BuildNetwork(const ModelConfig& model, const DatasetInfo& dataset, Loss loss);

}  // namespace lambdadnn
