// SPDX-License-Identifier: Apache-2.0
// Properties of the data set that a model depends on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lambdadnn {

// How many numbers there are in a tensor of this shape. It must fit, as that of a data set's
// samples is known to do.
inline int64_t ElementsIn(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return elements;
}

// What reading one sample by itself takes of the store. Without requests it cannot be read so: the
// files can only be read from their begin (compressed), or there are none.
struct SingleRead {
  int requests = 0;
  int64_t bytes = 0;
  // Requests a sample where many that follow one another are read; 0 = as the files' bytes say.
  double requests_in_a_row = 0;
};

struct DatasetInfo {
  int64_t samples = 0;
  int64_t test_samples = 0;
  std::vector<int64_t> feature_shape;
  int classes = 0;                       // 0 = numeric targets
  bool more_classes = false;             // not all labels were looked at: there may be others
  int64_t bytes = 0;                     // d_t: of the training files as stored
  int64_t target_size = 1;               // numbers per sample when classes is 0
  int64_t vocabulary = 0;                // token ids that there are, where a file says so
  std::optional<int64_t> padding;        // of texts: the id that fills them up
  std::vector<std::string> class_names;  // of texts, by number
  int64_t loaded_sample_bytes = 0;       // in memory, of a sample that is loaded
  SingleRead single_read;                // of a training or test sample
};

}  // namespace lambdadnn
