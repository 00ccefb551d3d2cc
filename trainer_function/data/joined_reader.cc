// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/joined_reader.h"

#include <algorithm>
#include <utility>

namespace lambdadnn {
namespace {

class JoinedReader final : public SampleReader {
 public:
  explicit JoinedReader(std::vector<NamedReader> parts) : parts_(std::move(parts)) {}

  Status Open() {
    layout_ = parts_.front().reader->layout();
    layout_.samples = 0;
    layout_.stored_bytes = 0;
    for (const NamedReader& part : parts_) {
      const SampleLayout& other = part.reader->layout();
      if (other.feature_shape != layout_.feature_shape ||
          other.byte_features != layout_.byte_features ||
          other.target_size != layout_.target_size ||
          (other.classes > 0) != (layout_.classes > 0)) {
        return InvalidArgumentError(
            part.name + " has samples of the shape " + ShapeText(other.feature_shape) + ", and " +
            parts_.front().name + " of " + ShapeText(layout_.feature_shape) +
            ", or of another type; save all files alike");
      }
      begins_.push_back(layout_.samples);
      layout_.samples += other.samples;
      layout_.stored_bytes += other.stored_bytes;
      layout_.classes = std::max(layout_.classes, other.classes);
      if (other.single_read.requests == 0) layout_.single_read = {};
    }
    return OkStatus();
  }

  const SampleLayout& layout() const override { return layout_; }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      SampleReader& reader = *parts_[i].reader;
      const std::vector<Range> own =
          PartsWithin(ranges, {begins_[i], begins_[i] + reader.layout().samples});
      if (own.empty()) continue;
      LDNN_RETURN_IF_ERROR(reader.Read(own, out));
    }
    return OkStatus();
  }

  int64_t bad_samples() const override {
    int64_t bad = 0;
    for (const NamedReader& part : parts_) bad += part.reader->bad_samples();
    return bad;
  }
  void ForgetBadSamples() override {
    for (const NamedReader& part : parts_) part.reader->ForgetBadSamples();
  }

 private:
  const std::vector<NamedReader> parts_;
  std::vector<int64_t> begins_;  // of each part's samples
  SampleLayout layout_;
};

}  // namespace

Result<std::unique_ptr<SampleReader>> JoinReaders(std::vector<NamedReader> parts) {
  auto reader = std::make_unique<JoinedReader>(std::move(parts));
  LDNN_RETURN_IF_ERROR(reader->Open());
  return std::unique_ptr<SampleReader>(std::move(reader));
}

}  // namespace lambdadnn
