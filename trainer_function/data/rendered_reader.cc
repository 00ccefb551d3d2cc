// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/rendered_reader.h"

#include <algorithm>
#include <string>

#include "trainer_function/data/digit_renderer.h"

namespace lambdadnn {
namespace {

constexpr int kDigits = 10;
// Drawn at once: what is held beside the samples themselves.
constexpr int64_t kChunk = 256;

class RenderedReader final : public SampleReader {
 public:
  RenderedReader(int64_t samples, int classes, uint64_t seed, DigitSplit split)
      : seed_(seed), split_(split) {
    layout_.samples = samples;
    layout_.feature_shape = {1, kDigitSide, kDigitSide};
    layout_.byte_features = true;
    layout_.classes = classes;
    layout_.stored_bytes = 0;  // nothing is read from a store
  }

  const SampleLayout& layout() const override { return layout_; }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    int64_t samples = 0;
    for (const Range& range : ranges) samples += range.size();
    out.byte_values.reserve(out.byte_values.size() +
                            static_cast<size_t>(samples * kDigitSide * kDigitSide));
    for (const Range& range : ranges) {
      for (int64_t begin = range.begin; begin < range.end; begin += kChunk) {
        const DigitSet digits =
            RenderDigits(Range{begin, std::min(begin + kChunk, range.end)}, seed_, split_);
        out.byte_values.insert(out.byte_values.end(), digits.images.begin(), digits.images.end());
        out.labels.insert(out.labels.end(), digits.labels.begin(), digits.labels.end());
      }
    }
    return OkStatus();
  }

 private:
  const uint64_t seed_;
  const DigitSplit split_;
  SampleLayout layout_;
};

Status CheckCount(int64_t count, int64_t least, const std::string& name) {
  if (count >= least && count <= kMaxRenderedDigits) return OkStatus();
  return InvalidArgumentError("spec.dataset.renderedDigits." + name + " is " +
                              std::to_string(count) + "; it must be " + std::to_string(least) +
                              " to " + std::to_string(kMaxRenderedDigits));
}

}  // namespace

Result<SampleReaders> OpenRenderedDigits(const DatasetConfig& config) {
  const RenderedDigitsConfig& digits = *config.rendered_digits;
  LDNN_RETURN_IF_ERROR(CheckCount(digits.train, 1, "train"));
  LDNN_RETURN_IF_ERROR(CheckCount(digits.test, 0, "test"));
  if (!config.uri.empty() || !config.test_uri.empty()) {
    return InvalidArgumentError("spec.dataset: set either uri or renderedDigits, not both");
  }
  if (config.classes != 0 && config.classes < kDigits) {
    return InvalidArgumentError("spec.dataset.classes is " + std::to_string(config.classes) +
                                ", but rendered digits have 10; write 10 or leave it out");
  }
  const int classes = std::max(config.classes, kDigits);
  SampleReaders readers;
  readers.train =
      std::make_unique<RenderedReader>(digits.train, classes, digits.seed, DigitSplit::kTrain);
  if (digits.test > 0) {
    readers.test =
        std::make_unique<RenderedReader>(digits.test, classes, digits.seed, DigitSplit::kTest);
  }
  return readers;
}

}  // namespace lambdadnn
