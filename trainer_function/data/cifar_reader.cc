// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/cifar_reader.h"

#include <algorithm>
#include <utility>

namespace lambdadnn {
namespace {

constexpr uint64_t kImageBytes = 3 * 32 * 32;
constexpr uint64_t kRecordBytes = 1 + kImageBytes;

class CifarReader final : public SampleReader {
 public:
  explicit CifarReader(int classes) {
    layout_.feature_shape = {3, 32, 32};
    layout_.byte_features = true;
    layout_.classes = classes == 0 ? 10 : classes;
  }

  Status Add(DataFile file) {
    if (file.size() == 0 || file.size() % kRecordBytes != 0) {
      return InvalidArgumentError(
          file.name() + " is cut or no CIFAR-10 file: its " + std::to_string(file.size()) +
          " bytes are not a multiple of " + std::to_string(kRecordBytes) + " (record " +
          std::to_string(file.size() / kRecordBytes) + " is incomplete); copy the file again");
    }
    layout_.stored_bytes += static_cast<int64_t>(file.size());
    first_records_.push_back(layout_.samples);
    layout_.samples += static_cast<int64_t>(file.size() / kRecordBytes);
    files_.push_back(FilePart::Whole(std::move(file)));
    return OkStatus();
  }

  const SampleLayout& layout() const override { return layout_; }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    for (const Range& range : ranges) {
      for (size_t i = 0; i < files_.size(); ++i) {
        const int64_t first = first_records_[i];
        const int64_t end = i + 1 < files_.size() ? first_records_[i + 1] : layout_.samples;
        const Range own{std::max(range.begin, first) - first, std::min(range.end, end) - first};
        if (own.size() > 0) LDNN_RETURN_IF_ERROR(ReadFile(files_[i], own, out));
      }
    }
    return OkStatus();
  }

 private:
  Status ReadFile(const FilePart& file, const Range& range, SampleBlock& out) const {
    return ForEachRecordChunk(
        file, 0, kRecordBytes, std::span(&range, 1), [&](int64_t first, ByteView bytes) {
          for (; !bytes.empty(); bytes = bytes.subspan(kRecordBytes)) {
            out.labels.push_back(std::to_integer<int64_t>(bytes[0]));
            LDNN_RETURN_IF_ERROR(
                CheckLabel(out.labels.back(), layout_.classes, file.file.name(), first++));
            const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data() + 1);
            out.byte_values.insert(out.byte_values.end(), begin, begin + kImageBytes);
          }
          return OkStatus();
        });
  }

  SampleLayout layout_;
  std::vector<FilePart> files_;
  std::vector<int64_t> first_records_;
};

}  // namespace

Result<std::unique_ptr<SampleReader>> OpenCifar10(std::vector<DataFile> files, int classes) {
  auto reader = std::make_unique<CifarReader>(classes);
  for (DataFile& file : files) LDNN_RETURN_IF_ERROR(reader->Add(std::move(file)));
  return std::unique_ptr<SampleReader>(std::move(reader));
}

}  // namespace lambdadnn
