// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/npy_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr uint64_t kMaxHeaderBytes = 64 << 10;

struct TypeName {
  std::string_view name;
  NpyType type;
  uint64_t bytes;
};
// Of a type with two names the first one is written.
constexpr std::array<TypeName, 9> kTypes = {{{"|u1", NpyType::kUint8, 1},
                                             {"|b1", NpyType::kUint8, 1},
                                             {"|i1", NpyType::kInt8, 1},
                                             {"<i2", NpyType::kInt16, 2},
                                             {"<u2", NpyType::kUint16, 2},
                                             {"<i4", NpyType::kInt32, 4},
                                             {"<i8", NpyType::kInt64, 8},
                                             {"<f4", NpyType::kFloat32, 4},
                                             {"<f8", NpyType::kFloat64, 8}}};

const TypeName& Known(NpyType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [&](const TypeName& known) { return known.type == type; });
}

double LoadNumber(NpyType type, const std::byte* at) {
  const auto load = [&]<typename T>(T) {
    return static_cast<double>(LoadLittleEndian<T>(ByteView(at, sizeof(T)), 0));
  };
  switch (type) {
    case NpyType::kUint8:
      return load(uint8_t{});
    case NpyType::kInt8:
      return load(int8_t{});
    case NpyType::kInt16:
      return load(int16_t{});
    case NpyType::kUint16:
      return load(uint16_t{});
    case NpyType::kInt32:
      return load(int32_t{});
    case NpyType::kInt64:
      return load(int64_t{});
    case NpyType::kFloat32:
      return static_cast<double>(load(float{}));
    case NpyType::kFloat64:
      return load(double{});
  }
  return 0;
}

// What stands after `'key':` in the header's dictionary, up to its end (a comma outside of
// parentheses, or the closing brace).
std::optional<std::string_view> FindValue(std::string_view header, std::string_view key) {
  const size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) return std::nullopt;
  const size_t colon = header.find(':', at);
  if (colon == std::string_view::npos) return std::nullopt;
  int depth = 0;
  for (size_t end = colon + 1; end < header.size(); ++end) {
    if (header[end] == '(' || header[end] == '[') ++depth;
    if (depth == 0 && (header[end] == ',' || header[end] == '}')) {
      return Trim(header.substr(colon + 1, end - colon - 1));
    }
    if (header[end] == ')' || header[end] == ']') --depth;
  }
  return std::nullopt;
}

Status BadHeader(const NpyArray& array, const std::string& what) {
  return InvalidArgumentError(array.name + " has a .npy header that " + what +
                              "; save the array again with numpy.save");
}

Status ParseShape(std::string_view text, NpyArray& array) {
  if (!text.starts_with('(') || !text.ends_with(')')) {
    return BadHeader(array, "has no shape");
  }
  for (const std::string& part : Split(text.substr(1, text.size() - 2), ',')) {
    const std::string_view word = Trim(part);
    if (word.empty()) continue;
    const auto dimension = ParseInteger(word);
    if (!dimension || *dimension < 0 || *dimension > kMaxSamples || array.shape.size() == 8) {
      return BadHeader(array, "has no valid shape");
    }
    array.shape.push_back(*dimension);
  }
  if (array.shape.empty()) {
    return InvalidArgumentError(array.name +
                                " is a single number; its first dimension must count samples");
  }
  return OkStatus();
}

Status ParseDictionary(std::string_view header, NpyArray& array) {
  const auto type = FindValue(header, "descr");
  const auto order = FindValue(header, "fortran_order");
  const auto shape = FindValue(header, "shape");
  if (!type || !order || !shape) return BadHeader(array, "lacks descr, fortran_order or shape");
  bool known = false;
  for (const TypeName& candidate : kTypes) {
    if (*type != "'" + std::string(candidate.name) + "'") continue;
    array.type = candidate.type;
    known = true;
  }
  if (!known) {
    return InvalidArgumentError(array.name + " has the dtype " + std::string(type->substr(0, 40)) +
                                "; save it as float32, float64, uint8, int32 or int64 in "
                                "little-endian order (array.astype('float32'))");
  }
  if (*order != "False") {
    return InvalidArgumentError(array.name +
                                " is in Fortran order; save numpy.ascontiguousarray(array)");
  }
  return ParseShape(*shape, array);
}

uint64_t RecordBytes(const NpyArray& array, int64_t elements) {
  return static_cast<uint64_t>(elements) * NpyTypeBytes(array.type);
}

std::vector<int64_t> SampleShape(const NpyArray& array) {
  if (array.shape.size() == 1) return {1};
  return {array.shape.begin() + 1, array.shape.end()};
}

class NpyReader final : public SampleReader {
 public:
  NpyReader(NpyArray features, NpyArray labels)
      : features_(std::move(features)), labels_(std::move(labels)) {}

  Status Open(const LabelClasses& classes) {
    layout_.samples = features_.shape[0];
    layout_.feature_shape = SampleShape(features_);
    layout_.byte_features = features_.type == NpyType::kUint8;
    layout_.classes = classes.count;
    if (layout_.samples != labels_.shape[0]) {
      return InvalidArgumentError(labels_.name + " has " + std::to_string(labels_.shape[0]) +
                                  " labels but " + features_.name + " has " +
                                  std::to_string(layout_.samples) +
                                  " samples; use arrays that belong together");
    }
    if (layout_.samples == 0) {
      return InvalidArgumentError(features_.name + " holds no samples; give a data set with some");
    }
    LDNN_ASSIGN_OR_RETURN(elements_, ElementCount(layout_.feature_shape, features_.name));
    LDNN_ASSIGN_OR_RETURN(layout_.target_size, ElementCount(SampleShape(labels_), labels_.name));
    const bool implied = classes.count == 0 && classes.implied;
    if ((classes.count > 0 || implied) && layout_.target_size != 1) {
      return InvalidArgumentError(
          labels_.name + " has " + std::to_string(layout_.target_size) +
          " numbers a sample where a label is one; if they are targets, " +
          (implied ? "set spec.training.loss: MSE" : "leave out spec.dataset.classes"));
    }
    const Range seen = classes.Seen(layout_.samples);
    if (implied) LDNN_RETURN_IF_ERROR(CountClasses(seen));
    if (classes.count > 0 && classes.checked) {
      SampleBlock labels;
      LDNN_RETURN_IF_ERROR(ReadLabels(std::span(&seen, 1), labels));
    }
    layout_.stored_bytes =
        static_cast<int64_t>(features_.part.stored_bytes + labels_.part.stored_bytes);
    if (features_.part.compression == Compression::kNone &&
        labels_.part.compression == Compression::kNone) {
      layout_.single_read = {2, layout_.stored_bytes / layout_.samples};
    }
    return OkStatus();
  }

  const SampleLayout& layout() const override { return layout_; }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    LDNN_RETURN_IF_ERROR(ReadFeatures(ranges, out));
    return ReadLabels(ranges, out);
  }

 private:
  // Or targets.
  Status ReadLabels(std::span<const Range> ranges, SampleBlock& out) {
    return ForEachNumber(
        labels_, layout_.target_size, ranges, [&](int64_t record, double value) -> Status {
          if (layout_.classes == 0) {
            out.targets.push_back(static_cast<float>(value));
            return OkStatus();
          }
          LDNN_ASSIGN_OR_RETURN(out.labels.emplace_back(), LabelOf(record, value));
          return CheckLabel(out.labels.back(), layout_.classes, labels_.name, record);
        });
  }

  Result<int64_t> LabelOf(int64_t record, double value) const {
    return ClassNumber(value, labels_.name + ", record " + std::to_string(record));
  }

  Status CountClasses(const Range& seen) {
    int64_t largest = 0;
    LDNN_RETURN_IF_ERROR(
        ForEachNumber(labels_, 1, std::span(&seen, 1), [&](int64_t record, double value) -> Status {
          LDNN_ASSIGN_OR_RETURN(const int64_t label, LabelOf(record, value));
          largest = std::max(largest, label);
          return OkStatus();
        }));
    LDNN_ASSIGN_OR_RETURN(layout_.classes, ImpliedClasses(largest, layout_.samples, labels_.name));
    return OkStatus();
  }

  Status ReadFeatures(std::span<const Range> ranges, SampleBlock& out) {
    if (!layout_.byte_features) {
      return ForEachNumber(features_, elements_, ranges, [&](int64_t, double value) {
        out.values.push_back(static_cast<float>(value));
        return OkStatus();
      });
    }
    return ForEachRecordChunk(
        features_.part, features_.header_bytes, RecordBytes(features_, elements_), ranges,
        [&](int64_t, ByteView bytes) {
          const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
          out.byte_values.insert(out.byte_values.end(), begin, begin + bytes.size());
          return OkStatus();
        });
  }

  // handle(record, value) for each number of the records; all are finite as float32.
  template <typename Handle>
  static Status ForEachNumber(const NpyArray& array, int64_t elements,
                              std::span<const Range> ranges, Handle handle) {
    const uint64_t width = NpyTypeBytes(array.type);
    const uint64_t record_bytes = RecordBytes(array, elements);
    return ForEachRecordChunk(
        array.part, array.header_bytes, record_bytes, ranges,
        [&](int64_t first, ByteView bytes) -> Status {
          for (uint64_t at = 0; at < bytes.size(); at += width) {
            const int64_t record = first + static_cast<int64_t>(at / record_bytes);
            const double value = LoadNumber(array.type, bytes.data() + at);
            if (!std::isfinite(static_cast<float>(value))) {
              return InvalidArgumentError(
                  array.name + ", record " + std::to_string(record) + ", element " +
                  std::to_string(at % record_bytes / width) + ": " +
                  (std::isnan(value) ? "NaN" : "a number that is no finite float32") +
                  "; fill in a value or remove the record");
            }
            LDNN_RETURN_IF_ERROR(handle(record, value));
          }
          return OkStatus();
        });
  }

  const NpyArray features_;
  const NpyArray labels_;
  int64_t elements_ = 0;
  SampleLayout layout_;
};

}  // namespace

uint64_t NpyTypeBytes(NpyType type) { return Known(type).bytes; }

std::string_view NpyTypeName(NpyType type) { return Known(type).name; }

Result<NpyArray> OpenNpy(FilePart part, std::string name, uint64_t unpacked_bytes) {
  NpyArray array;
  array.part = std::move(part);
  array.name = std::move(name);
  auto stream = array.part.Stream();
  std::array<std::byte, 8> magic;
  const auto named = [&](const Status& status) {
    return Status(status.code(), array.name + " " + status.message());
  };
  if (Status status = stream->ReadExactly(magic, "the end of the .npy header"); !status.ok()) {
    return named(status);
  }
  const int version = std::to_integer<int>(magic[6]);
  if (!AsText(magic).starts_with(kNpyMagic) || version < 1 || version > 3) {
    return InvalidArgumentError(array.name +
                                " is not a .npy array of version 1 to 3; check "
                                "spec.dataset.format");
  }
  Bytes length(version == 1 ? 2 : 4);
  if (Status status = stream->ReadExactly(length, "the end of the .npy header"); !status.ok()) {
    return named(status);
  }
  const uint64_t header_bytes =
      version == 1 ? LoadLittleEndian<uint16_t>(length, 0) : LoadLittleEndian<uint32_t>(length, 0);
  if (header_bytes > kMaxHeaderBytes) return BadHeader(array, "is too long");
  Bytes header(header_bytes);
  if (Status status = stream->ReadExactly(header, "the end of the .npy header"); !status.ok()) {
    return named(status);
  }
  LDNN_RETURN_IF_ERROR(ParseDictionary(AsText(header), array));
  array.header_bytes = magic.size() + length.size() + header_bytes;
  if (array.shape[0] == 0) return array;
  LDNN_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(SampleShape(array), array.name));
  const uint64_t needed =
      array.header_bytes + static_cast<uint64_t>(array.shape[0]) * RecordBytes(array, elements);
  if (unpacked_bytes < needed) {
    return InvalidArgumentError(array.name + " is cut: its shape " + ShapeText(array.shape) +
                                " needs " + std::to_string(needed) + " bytes, it has " +
                                std::to_string(unpacked_bytes) + "; copy the file again");
  }
  return array;
}

Result<std::unique_ptr<SampleReader>> MakeNpyReader(NpyArray features, NpyArray labels,
                                                    const LabelClasses& classes) {
  auto reader = std::make_unique<NpyReader>(std::move(features), std::move(labels));
  LDNN_RETURN_IF_ERROR(reader->Open(classes));
  return std::unique_ptr<SampleReader>(std::move(reader));
}

}  // namespace lambdadnn
