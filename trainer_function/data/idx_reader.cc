// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/idx_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace lambdadnn {
namespace {

constexpr int kTypeByte = 0x08;
constexpr int kTypeInt32 = 0x0C;
constexpr int kTypeFloat = 0x0D;

uint32_t BigEndian32(const std::byte* bytes) {
  uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return __builtin_bswap32(value);
}

struct IdxHeader {
  int type = 0;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  uint64_t element_bytes() const { return type == kTypeByte ? 1 : 4; }
};

Result<IdxHeader> ReadHeader(const DataFile& file) {
  auto stream = FilePart::Whole(file).Stream();
  std::array<std::byte, 4> magic;
  Status status = stream->ReadExactly(magic, "the end of the IDX header");
  if (!status.ok()) return AtFile(status, file);
  IdxHeader header;
  header.type = std::to_integer<int>(magic[2]);
  const int dimensions = std::to_integer<int>(magic[3]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || dimensions < 1 || dimensions > 5) {
    return InvalidArgumentError(file.name() + " is not an IDX file: it begins with " +
                                Hex64(BigEndian32(magic.data())).substr(8) +
                                " instead of 0000 TYPE DIMENSIONS; check spec.dataset.format");
  }
  if (header.type != kTypeByte && header.type != kTypeInt32 && header.type != kTypeFloat) {
    return InvalidArgumentError(file.name() + " has IDX elements of type " +
                                std::to_string(header.type) +
                                "; bytes (8), int32 (12) and float32 (13) are read");
  }
  for (int i = 0; i < dimensions; ++i) {
    std::array<std::byte, 4> dimension;
    status = stream->ReadExactly(dimension, "the end of the IDX header");
    if (!status.ok()) return AtFile(status, file);
    header.shape.push_back(BigEndian32(dimension.data()));
  }
  header.bytes = 4 + 4 * static_cast<uint64_t>(dimensions);
  return header;
}

class IdxReader final : public SampleReader {
 public:
  static Result<std::unique_ptr<SampleReader>> Open(DataFile images, DataFile labels,
                                                    const LabelClasses& classes) {
    std::unique_ptr<IdxReader> reader(new IdxReader(std::move(images), std::move(labels)));
    LDNN_RETURN_IF_ERROR(reader->OpenImages());
    LDNN_RETURN_IF_ERROR(reader->OpenLabels());
    reader->layout_.classes = classes.count;
    if (classes.count == 0 || classes.checked) {
      LDNN_RETURN_IF_ERROR(reader->ReadLabels(classes.Seen(reader->layout_.samples)));
    }
    return std::unique_ptr<SampleReader>(std::move(reader));
  }

  const SampleLayout& layout() const override { return layout_; }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    LDNN_RETURN_IF_ERROR(ForEachRecordChunk(
        FilePart::Whole(images_), image_header_.bytes, sample_bytes_, ranges,
        [&](int64_t, ByteView bytes) {
          if (layout_.byte_features) {
            const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
            out.byte_values.insert(out.byte_values.end(), begin, begin + bytes.size());
            return OkStatus();
          }
          for (size_t i = 0; i < bytes.size(); i += 4) {
            out.values.push_back(std::bit_cast<float>(BigEndian32(bytes.data() + i)));
          }
          return OkStatus();
        }));
    return ForEachLabel(ranges, [&](int64_t record, int64_t label) {
      out.labels.push_back(label);
      return CheckLabel(label, layout_.classes, labels_.name(), record);
    });
  }

 private:
  IdxReader(DataFile images, DataFile labels)
      : images_(std::move(images)), labels_(std::move(labels)) {}

  Status OpenImages() {
    LDNN_ASSIGN_OR_RETURN(image_header_, ReadHeader(images_));
    if (image_header_.type == kTypeInt32 || image_header_.shape.size() < 2) {
      return InvalidArgumentError(images_.name() +
                                  " does not hold features: they need at least two dimensions of "
                                  "bytes or float32; is it the labels file?");
    }
    layout_.samples = image_header_.shape[0];
    layout_.feature_shape.assign(image_header_.shape.begin() + 1, image_header_.shape.end());
    if (layout_.feature_shape.size() == 2) {
      layout_.feature_shape.insert(layout_.feature_shape.begin(), 1);
    }
    layout_.byte_features = image_header_.type == kTypeByte;
    if (layout_.samples == 0) {
      return InvalidArgumentError(images_.name() + " holds no samples; give a data set with some");
    }
    LDNN_ASSIGN_OR_RETURN(const int64_t elements,
                          ElementCount(layout_.feature_shape, images_.name()));
    sample_bytes_ = static_cast<uint64_t>(elements) * image_header_.element_bytes();
    layout_.stored_bytes = static_cast<int64_t>(images_.size() + labels_.size());
    if (!images_.gzipped() && !labels_.gzipped()) {
      layout_.single_read = {2, layout_.stored_bytes / layout_.samples};
    }
    return CheckSize(images_, image_header_, sample_bytes_);
  }

  Status OpenLabels() {
    LDNN_ASSIGN_OR_RETURN(label_header_, ReadHeader(labels_));
    if (label_header_.type == kTypeFloat || label_header_.shape.size() != 1) {
      return InvalidArgumentError(labels_.name() +
                                  " does not hold labels: they are one dimension of bytes or "
                                  "int32; is it the images file?");
    }
    if (label_header_.shape[0] != layout_.samples) {
      return InvalidArgumentError(labels_.name() + " has " +
                                  std::to_string(label_header_.shape[0]) + " labels but " +
                                  images_.name() + " has " + std::to_string(layout_.samples) +
                                  " images; use files that belong together");
    }
    return CheckSize(labels_, label_header_, label_header_.element_bytes());
  }

  // The size of what a gzip file inflates to is only known at its end.
  Status CheckSize(const DataFile& file, const IdxHeader& header, uint64_t record_bytes) const {
    if (file.gzipped()) return OkStatus();
    const uint64_t expected = header.bytes + static_cast<uint64_t>(layout_.samples) * record_bytes;
    if (file.size() == expected) return OkStatus();
    const bool is_cut = file.size() < expected;
    const uint64_t whole = (std::max(file.size(), header.bytes) - header.bytes) / record_bytes;
    return InvalidArgumentError(
        file.name() + (is_cut ? " is cut" : " is too long") + ": " +
        std::to_string(layout_.samples) + " records need " + std::to_string(expected) +
        " bytes, it has " + std::to_string(file.size()) +
        (is_cut ? " (record " + std::to_string(whole) + " is incomplete)" : std::string()) +
        "; copy the file again");
  }

  // Checks these against the classes, or finds the classes.
  Status ReadLabels(const Range& seen) {
    const int most = layout_.classes > 0 ? layout_.classes : kMaxClasses;
    int64_t largest = 0;
    LDNN_RETURN_IF_ERROR(
        ForEachLabel(std::span(&seen, 1), [&](int64_t record, int64_t label) -> Status {
          largest = std::max(largest, label);
          return CheckLabel(label, most, labels_.name(), record);
        }));
    if (layout_.classes == 0) layout_.classes = static_cast<int>(largest) + 1;
    return OkStatus();
  }

  // handle(record, label) for every label of the ranges.
  template <typename Handle>
  Status ForEachLabel(std::span<const Range> ranges, Handle handle) const {
    const uint64_t width = label_header_.element_bytes();
    return ForEachRecordChunk(
        FilePart::Whole(labels_), label_header_.bytes, width, ranges,
        [&](int64_t first, ByteView bytes) -> Status {
          for (size_t i = 0; i < bytes.size(); i += width) {
            const int64_t label =
                width == 1 ? std::to_integer<int64_t>(bytes[i])
                           : static_cast<int64_t>(std::bit_cast<int32_t>(BigEndian32(&bytes[i])));
            LDNN_RETURN_IF_ERROR(handle(first + static_cast<int64_t>(i / width), label));
          }
          return OkStatus();
        });
  }

  const DataFile images_;
  const DataFile labels_;
  IdxHeader image_header_;
  IdxHeader label_header_;
  uint64_t sample_bytes_ = 0;
  SampleLayout layout_;
};

}  // namespace

Result<std::unique_ptr<SampleReader>> OpenIdx(DataFile images, DataFile labels,
                                              const LabelClasses& classes) {
  return IdxReader::Open(std::move(images), std::move(labels), classes);
}

}  // namespace lambdadnn
