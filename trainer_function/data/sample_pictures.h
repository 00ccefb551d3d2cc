// SPDX-License-Identifier: Apache-2.0
// A few samples of each class as small PNG files, for people to look at: samples that are images,
// [height, width] or [channels, height, width] with one or three channels. Numbers from 0 to 1 are
// drawn from black to white; of a sample with others its least is black and its largest white.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "trainer_function/data/images/image.h"
#include "trainer_function/model/dataset_info.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

struct SamplePicture {
  int64_t sample = 0;  // its number
  int64_t label = 0;   // 0 without classes
  ImageSize size;      // the picture's
  std::string png;
};

class SamplePictures {
 public:
  // None are made of samples that are no images.
  explicit SamplePictures(const DatasetInfo& info);

  // The next samples of the set; the first of the batch has this number. kInternal when a picture
  // cannot be written.
  Status Add(const Batch& batch, int64_t first);
  // In the order of their numbers.
  std::vector<SamplePicture> Take() { return std::move(pictures_); }

 private:
  bool full() const { return missing_ == 0; }

  ImageSize size_;
  int channels_ = 0;  // 0 = no images
  int64_t each_ = 0;  // of a class
  int64_t missing_ = 0;
  std::vector<int64_t> drawn_;  // by class
  std::vector<SamplePicture> pictures_;
};

}  // namespace lambdadnn
