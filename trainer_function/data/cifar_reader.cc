// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/cifar_reader.h"

#include <algorithm>
#include <utility>

namespace lambdadnn {
namespace {

constexpr uint64_t kImageBytes = 3 * 32 * 32;

// What the versions of CIFAR differ in.
struct CifarForm {
  const char* name;
  int classes;
  uint64_t label_bytes;  // before each image
  size_t label;          // which of them
};
constexpr CifarForm kCifar10 = {"CIFAR-10", 10, 1, 0};
constexpr CifarForm kCifar100Fine = {"CIFAR-100", 100, 2, 1};
constexpr CifarForm kCifar100Coarse = {"CIFAR-100", 20, 2, 0};

class CifarReader final : public SampleReader {
 public:
  CifarReader(const CifarForm& form, int classes)
      : form_(form), record_bytes_(form.label_bytes + kImageBytes) {
    layout_.feature_shape = {3, 32, 32};
    layout_.byte_features = true;
    layout_.classes = classes == 0 ? form.classes : classes;
    layout_.single_read = {1, static_cast<int64_t>(record_bytes_)};
  }

  Status Add(DataFile file) {
    if (file.size() == 0 || file.size() % record_bytes_ != 0) {
      return InvalidArgumentError(file.name() + " is cut or no " + form_.name + " file: its " +
                                  std::to_string(file.size()) + " bytes are not a multiple of " +
                                  std::to_string(record_bytes_) + " (record " +
                                  std::to_string(file.size() / record_bytes_) +
                                  " is incomplete); copy the file again");
    }
    layout_.stored_bytes += static_cast<int64_t>(file.size());
    first_records_.push_back(layout_.samples);
    layout_.samples += static_cast<int64_t>(file.size() / record_bytes_);
    files_.push_back(FilePart::Whole(std::move(file)));
    return OkStatus();
  }

  const SampleLayout& layout() const override { return layout_; }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    for (size_t i = 0; i < files_.size(); ++i) {
      const int64_t first = first_records_[i];
      const int64_t end = i + 1 < files_.size() ? first_records_[i + 1] : layout_.samples;
      const std::vector<Range> own = PartsWithin(ranges, {first, end});
      if (!own.empty()) LDNN_RETURN_IF_ERROR(ReadFile(files_[i], own, out));
    }
    return OkStatus();
  }

 private:
  Status ReadFile(const FilePart& file, std::span<const Range> ranges, SampleBlock& out) const {
    return ForEachRecordChunk(file, 0, record_bytes_, ranges, [&](int64_t first, ByteView bytes) {
      for (; !bytes.empty(); bytes = bytes.subspan(record_bytes_)) {
        out.labels.push_back(std::to_integer<int64_t>(bytes[form_.label]));
        LDNN_RETURN_IF_ERROR(
            CheckLabel(out.labels.back(), layout_.classes, file.file.name(), first++));
        const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data() + form_.label_bytes);
        out.byte_values.insert(out.byte_values.end(), begin, begin + kImageBytes);
      }
      return OkStatus();
    });
  }

  const CifarForm form_;
  const uint64_t record_bytes_;
  SampleLayout layout_;
  std::vector<FilePart> files_;
  std::vector<int64_t> first_records_;
};

Result<std::unique_ptr<SampleReader>> Open(std::vector<DataFile> files, const CifarForm& form,
                                           int classes) {
  auto reader = std::make_unique<CifarReader>(form, classes);
  for (DataFile& file : files) LDNN_RETURN_IF_ERROR(reader->Add(std::move(file)));
  return std::unique_ptr<SampleReader>(std::move(reader));
}

}  // namespace

Result<std::unique_ptr<SampleReader>> OpenCifar10(std::vector<DataFile> files, int classes) {
  return Open(std::move(files), kCifar10, classes);
}

Result<std::unique_ptr<SampleReader>> OpenCifar100(std::vector<DataFile> files, CifarLabels labels,
                                                   int classes) {
  return Open(std::move(files), labels == CifarLabels::kFine ? kCifar100Fine : kCifar100Coarse,
              classes);
}

}  // namespace lambdadnn
