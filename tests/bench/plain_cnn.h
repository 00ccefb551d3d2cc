// SPDX-License-Identifier: Apache-2.0
// The catalogue's cnn on rendered digits, in LibTorch's own C++: what ours is compared with; and a
// store with the same digits for ours.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <span>
#include <string>

#include "common/objectstore/memory_object_store.h"
#include "trainer_function/data/digit_renderer.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

class PlainCnn {
 public:
  explicit PlainCnn(const DigitSet& digits)
      : network_(torch::nn::Conv2d(1, 16, 5), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
                 torch::nn::Conv2d(16, 32, 5), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
                 torch::nn::Flatten(), torch::nn::Linear(512, 128), torch::nn::ReLU(),
                 torch::nn::Linear(128, 10)) {
    const auto bytes = [](const std::vector<uint8_t>& values, at::IntArrayRef shape) {
      return torch::from_blob(const_cast<uint8_t*>(values.data()), shape, torch::kUInt8);
    };
    const auto samples = static_cast<int64_t>(digits.labels.size());
    images_ = bytes(digits.images, {samples, 1, 28, 28}).clone();
    labels_ = bytes(digits.labels, {samples}).to(torch::kLong);
  }

  torch::nn::Sequential& network() { return network_; }
  // Over these samples: torch::kMean or kSum.
  template <typename Reduction>
  torch::Tensor Loss(std::span<int64_t> samples, Reduction reduction) {
    const torch::Tensor index =
        torch::from_blob(samples.data(), {std::ssize(samples)}, torch::kLong);
    const torch::Tensor x = images_.index_select(0, index).to(torch::kFloat).div_(255);
    return torch::nn::functional::cross_entropy(
        network_->forward(x), labels_.index_select(0, index),
        torch::nn::functional::CrossEntropyFuncOptions().reduction(reduction));
  }

 private:
  torch::nn::Sequential network_;
  torch::Tensor images_;
  torch::Tensor labels_;
};

// The digits as files, and what a job says of them and of the cnn.
inline std::shared_ptr<ObjectStore> StoreOf(const DigitSet& digits) {
  auto store = std::make_shared<MemoryObjectStore>();
  const auto put = [&](const char* key, const std::string& bytes) {
    LDNN_CHECK(store->ObjectStore::Put(key, AsBytes(bytes)).ok(), "memory store");
  };
  put("train-images-idx3-ubyte", EncodeIdxImages(digits));
  put("train-labels-idx1-ubyte", EncodeIdxLabels(digits));
  return store;
}
inline TrainingConfig CnnConfig() {
  TrainingConfig config;
  config.model.name = "cnn";
  config.dataset.uri = "memory://bench";
  config.dataset.format = DatasetFormat::kIdx;
  return config;
}

}  // namespace lambdadnn
