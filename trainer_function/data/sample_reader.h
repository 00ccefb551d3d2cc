// SPDX-License-Identifier: Apache-2.0
// One file format: decodes numbered samples out of the files of one set (training or test).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/plan/geometry.h"
#include "trainer_function/model/dataset_info.h"

namespace lambdadnn {

// No sample of ours is larger; a header that claims more is refused before anything is allocated.
inline constexpr int64_t kMaxSampleElements = 16 << 20;
inline constexpr int64_t kMaxSamples = int64_t{1} << 36;
inline constexpr int kMaxClasses = 1 << 20;

// What the labels of a file without a word about classes are: numeric targets where both are unset.
struct LabelClasses {
  int count = 0;  // as the job says
  // Where it does not: labels are whole numbers from 0 on, and there is one class more than the
  // largest.
  bool implied = false;
  // Opening looks at all labels, and not only at those that are loaded later.
  bool checked = false;
  // Opening looks at no more records than these. 0 = all.
  int64_t first = 0;
  // Those of `samples` whose labels opening looks at.
  Range Seen(int64_t samples) const { return {0, first > 0 ? std::min(first, samples) : samples}; }
};

struct SampleLayout {
  int64_t samples = 0;
  std::vector<int64_t> feature_shape;
  bool byte_features = false;  // stored as bytes, meant as value / 255
  int classes = 0;             // 0 = numeric targets
  int64_t target_size = 1;
  int64_t stored_bytes = 0;
  // As in DatasetInfo.
  SingleRead single_read = {};
  int64_t vocabulary = 0;
  std::optional<int64_t> padding = {};
  std::vector<std::string> class_names = {};
};

// Samples one after another. Exactly one of byte_values and values is used, as the layout says.
struct SampleBlock {
  std::vector<uint8_t> byte_values;
  std::vector<float> values;
  std::vector<int64_t> labels;
  std::vector<float> targets;
};

class SampleReader {
 public:
  virtual ~SampleReader() = default;
  virtual const SampleLayout& layout() const = 0;
  // Appends the samples of these ranges (ascending, disjoint, within the layout) to `out`. Reads
  // only their bytes where the format allows it.
  virtual Status Read(std::span<const Range> ranges, SampleBlock& out) = 0;
  // Samples in whose place others were read since ForgetBadSamples: those that the limit is for.
  virtual int64_t bad_samples() const { return 0; }
  virtual void ForgetBadSamples() {}
};

// What of the ranges lies in `own`, counted from its begin.
std::vector<Range> PartsWithin(std::span<const Range> ranges, const Range& own);
// The product; kInvalidArgument naming `file` for dimensions below 1 or a product beyond
// kMaxSampleElements.
Result<int64_t> ElementCount(std::span<const int64_t> shape, const std::string& file);
// kInvalidArgument unless label is in [0, classes).
Status CheckLabel(int64_t label, int classes, const std::string& file, int64_t record);
// The classes that labels up to `largest` imply; kInvalidArgument naming `file` when they are more
// than its samples: such labels are numbers.
Result<int> ImpliedClasses(int64_t largest, int64_t samples, const std::string& file);
// kInvalidArgument, at `place` in a file, unless the label is a class's number, whatever the
// classes.
Result<int64_t> ClassNumber(double label, const std::string& place);
// "[1, 28, 28]".
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace lambdadnn
