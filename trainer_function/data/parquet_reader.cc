// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/parquet_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer_function/data/image_reader.h"
#include "trainer_function/data/parquet_shards.h"

namespace lambdadnn {
namespace {

using Shards = std::unique_ptr<ParquetShards>;
using GroupRows = ParquetShards::GroupRows;

// The number of classes; 0 = labels are targets.
Result<int> ClassesIn(ParquetShards& shards, const LabelClasses& classes, const std::string& file) {
  const bool implied = classes.count == 0 && classes.implied;
  const int64_t width = shards.width(shards.columns().label);
  if (classes.count == 0 && !implied) return 0;
  if (width != 1) {
    return InvalidArgumentError(
        file + " has " + std::to_string(width) + " numbers a sample in column '" +
        shards.columns().label.name + "' where a label is one; if they are targets, " +
        (implied ? "set spec.training.loss: MSE" : "leave out spec.dataset.classes"));
  }
  if (!implied && !classes.checked) return classes.count;
  LDNN_ASSIGN_OR_RETURN(const int64_t largest, shards.LargestClass(classes));
  if (!implied) return classes.count;
  return ImpliedClasses(largest, classes.first > 0 ? kMaxSamples : shards.rows(), file);
}

// Numbers in columns.
class ParquetRows final : public SampleReader {
 public:
  explicit ParquetRows(Shards shards) : shards_(std::move(shards)) {}

  Status Open(const LabelClasses& classes, const std::string& file) {
    const ParquetSelection& columns = shards_->columns();
    int64_t elements = 0;
    for (const ParquetField& field : columns.features) elements += shards_->width(field);
    layout_.samples = shards_->rows();
    layout_.feature_shape = {elements};
    LDNN_RETURN_IF_ERROR(ElementCount(layout_.feature_shape, file).status());
    const ParquetField& first = columns.features.front();
    layout_.byte_features =
        columns.features.size() == 1 && first.byte && first.kind == ParquetField::Kind::kList;
    LDNN_ASSIGN_OR_RETURN(layout_.classes, ClassesIn(*shards_, classes, file));
    layout_.target_size = shards_->width(columns.label);
    layout_.stored_bytes = shards_->stored_bytes();
    layout_.single_read = shards_->single_read();
    return OkStatus();
  }

  const SampleLayout& layout() const override { return layout_; }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    return shards_->ForEachGroup(ranges, [&](const GroupRows& group) -> Status {
      // First: memory for all columns is taken for rows that are there.
      LDNN_RETURN_IF_ERROR(ReadLabels(group, out));
      if (layout_.byte_features) return ReadColumn(group, 0, 0, out.byte_values);
      const size_t begin = out.values.size();
      if (shards_->columns().features.size() == 1) return ReadColumn(group, 0, begin, out.values);
      out.values.resize(begin + static_cast<size_t>(group.count() * layout_.feature_shape[0]));
      for (size_t i = 0; i < shards_->columns().features.size(); ++i) {
        LDNN_RETURN_IF_ERROR(ReadColumn(group, i, begin, out.values));
      }
      return OkStatus();
    });
  }

 private:
  Status ReadLabels(const GroupRows& group, SampleBlock& out) const {
    return group.file.ReadNumbers(
        group.row_group, shards_->columns().label.column, layout_.target_size, group.rows,
        [&](int64_t row, std::span<const double> numbers) -> Status {
          for (const double number : numbers) {
            if (layout_.classes == 0) {
              out.targets.push_back(static_cast<float>(number));
              continue;
            }
            LDNN_ASSIGN_OR_RETURN(out.labels.emplace_back(),
                                  shards_->ClassOf(group, row++, number, layout_.classes));
          }
          return OkStatus();
        });
  }

  // Feature `number` of the rows. Where there are others, too, it is put between them into `out`
  // from `begin` on; else it is appended.
  template <typename Value>
  Status ReadColumn(const GroupRows& group, size_t number, size_t begin,
                    std::vector<Value>& out) const {
    const std::vector<ParquetField>& features = shards_->columns().features;
    const auto width = static_cast<size_t>(shards_->width(features[number]));
    const auto each = static_cast<size_t>(layout_.feature_shape[0]);
    size_t at = begin;  // of the next row's numbers
    for (size_t i = 0; i < number; ++i) at += static_cast<size_t>(shards_->width(features[i]));
    return group.file.ReadNumbers(
        group.row_group, features[number].column, static_cast<int64_t>(width), group.rows,
        [&](int64_t, std::span<const double> numbers) -> Status {
          if (features.size() == 1) {
            for (const double value : numbers) out.push_back(static_cast<Value>(value));
            return OkStatus();
          }
          for (size_t i = 0; i < numbers.size(); ++i) {
            out[at + i / width * each + i % width] = static_cast<Value>(numbers[i]);
          }
          at += numbers.size() / width * each;
          return OkStatus();
        });
  }

  const Shards shards_;
  SampleLayout layout_;
};

class ParquetImages final : public ImageSource {
 public:
  ParquetImages(Shards shards, int classes) : shards_(std::move(shards)), classes_(classes) {}

  int64_t size() const override { return shards_->rows(); }
  std::string Describe(int64_t sample) const override { return shards_->Describe(sample); }
  int classes() const override { return classes_; }
  int64_t stored_bytes() const override { return shards_->stored_bytes(); }
  SingleRead single_read() const override { return shards_->single_read(); }

  Status ForEach(std::span<const Range> samples, const HandleImage& handle) override {
    return shards_->ForEachGroup(samples, [&](const GroupRows& group) -> Status {
      const ParquetSelection& columns = shards_->columns();
      std::vector<int64_t> labels;
      LDNN_RETURN_IF_ERROR(group.file.ReadNumbers(
          group.row_group, columns.label.column, 1, group.rows,
          [&](int64_t row, std::span<const double> numbers) -> Status {
            for (const double number : numbers) {
              LDNN_ASSIGN_OR_RETURN(labels.emplace_back(),
                                    shards_->ClassOf(group, row++, number, classes_));
            }
            return OkStatus();
          }));
      size_t next = 0;
      return group.file.ReadBytes(group.row_group, columns.features[0].column, group.rows,
                                  [&](int64_t row, std::optional<ByteView> bytes) {
                                    return handle(group.first + row, labels[next++],
                                                  Encoded(bytes));
                                  });
    });
  }

 private:
  static Result<ByteView> Encoded(std::optional<ByteView> bytes) {
    if (!bytes) return InvalidArgumentError("is null where an image should be");
    if (bytes->size() > kMaxImageBytes) return TooLongImage(bytes->size());
    return *bytes;
  }

  const Shards shards_;
  const int classes_;
};

// As in other sets of images, labels are classes whatever the loss.
Result<std::unique_ptr<ImageSource>> ImagesOf(Shards shards, LabelClasses classes,
                                              const std::string& file) {
  classes.implied = true;
  LDNN_ASSIGN_OR_RETURN(const int count, ClassesIn(*shards, classes, file));
  return std::unique_ptr<ImageSource>(std::make_unique<ParquetImages>(std::move(shards), count));
}

Result<Shards> OpenShards(std::vector<DataFile> files, const DatasetConfig& config,
                          const LabelClasses& classes) {
  LDNN_ASSIGN_OR_RETURN(const ParquetLibrary library, ParquetLibrary::Load());
  return ParquetShards::Open(library, std::move(files), config.label_column, classes);
}

}  // namespace

Result<std::unique_ptr<SampleReader>> OpenParquet(std::vector<DataFile> files,
                                                  const DatasetConfig& config,
                                                  const LabelClasses& classes) {
  const std::string name = files.front().name();
  LDNN_ASSIGN_OR_RETURN(Shards shards, OpenShards(std::move(files), config, classes));
  if (shards->columns().images) {
    LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ImageSource> images,
                          ImagesOf(std::move(shards), classes, name));
    return MakeImageReader(std::move(images), config);
  }
  const char* const field = config.image.height > 0                     ? "image"
                            : config.on_bad_sample == BadSamples::kSkip ? "onBadSample: Skip"
                                                                        : nullptr;
  if (field != nullptr) {
    return InvalidArgumentError("spec.dataset." + std::string(field) + ": is for images, and " +
                                name + " has none; remove it");
  }
  auto reader = std::make_unique<ParquetRows>(std::move(shards));
  LDNN_RETURN_IF_ERROR(reader->Open(classes, name));
  return std::unique_ptr<SampleReader>(std::move(reader));
}

Result<std::unique_ptr<ImageSource>> OpenParquetImages(std::vector<DataFile> files,
                                                       const DatasetConfig& config,
                                                       const LabelClasses& classes) {
  const std::string name = files.front().name();
  LDNN_ASSIGN_OR_RETURN(Shards shards, OpenShards(std::move(files), config, classes));
  if (!shards->columns().images) return std::unique_ptr<ImageSource>();
  return ImagesOf(std::move(shards), classes, name);
}

}  // namespace lambdadnn
