// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/convert.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "common/base/files.h"
#include "trainer_function/data/image_source.h"
#include "trainer_function/data/images/decode_image.h"
#include "trainer_function/data/images/encode_png.h"
#include "trainer_function/data/open_readers.h"
#include "trainer_function/data/tar_writer.h"

namespace lambdadnn {
namespace {

constexpr int64_t kMaxSamplesPerShard = 1'000'000;

// One set, whose samples are added to shards by number.
class ShardInput {
 public:
  virtual ~ShardInput() = default;
  virtual int64_t size() const = 0;
  // Calls add(extension, image, label) for each.
  using AddSample = std::function<Status(const char*, std::string_view, int64_t)>;
  virtual Status ForEach(Range samples, const AddSample& add) = 0;
};

// Stored as bytes of one shape.
class ByteInput final : public ShardInput {
 public:
  explicit ByteInput(std::unique_ptr<SampleReader> reader) : reader_(std::move(reader)) {}

  Status Check() const {
    const SampleLayout& layout = reader_->layout();
    const std::vector<int64_t>& shape = layout.feature_shape;
    if (!layout.byte_features || shape.size() != 3 || (shape[0] != 1 && shape[0] != 3) ||
        layout.classes == 0) {
      return InvalidArgumentError(
          "samples of shape " + ShapeText(shape) +
          " are no images with classes: shards are made of bytes [channels, height, width] with "
          "one or three channels");
    }
    return OkStatus();
  }

  int64_t size() const override { return reader_->layout().samples; }
  Status ForEach(Range samples, const AddSample& add) override {
    SampleBlock block;
    LDNN_RETURN_IF_ERROR(reader_->Read(std::span(&samples, 1), block));
    const std::vector<int64_t>& shape = reader_->layout().feature_shape;
    const auto bytes = static_cast<size_t>(shape[0] * shape[1] * shape[2]);
    for (size_t i = 0; i < block.labels.size(); ++i) {
      LDNN_ASSIGN_OR_RETURN(const std::string png,
                            EncodePng({shape[1], shape[2]}, static_cast<int>(shape[0]),
                                      std::span(block.byte_values).subspan(i * bytes, bytes)));
      LDNN_RETURN_IF_ERROR(add("png", png, block.labels[i]));
    }
    return OkStatus();
  }

 private:
  const std::unique_ptr<SampleReader> reader_;
};

// Files that are taken as they are.
class FileInput final : public ShardInput {
 public:
  explicit FileInput(std::unique_ptr<ImageSource> source) : source_(std::move(source)) {}

  int64_t size() const override { return source_->size(); }
  Status ForEach(Range samples, const AddSample& add) override {
    return source_->ForEach(
        std::span(&samples, 1),
        [&](int64_t index, int64_t label, const Result<ByteView>& image) -> Status {
          const auto decoded = image.ok() ? DecodeImage(*image, 3) : image.status();
          if (!decoded.ok()) return decoded.status().WithContext(source_->Describe(index));
          const bool png = AsText(*image).starts_with("\x89PNG");
          return add(png ? "png" : "jpg", AsText(*image), label);
        });
  }

 private:
  const std::unique_ptr<ImageSource> source_;
};

using Input = std::unique_ptr<ShardInput>;
struct Inputs {
  Input train;
  Input test;
};

Result<Input> InputOf(std::unique_ptr<SampleReader> reader) {
  auto input = std::make_unique<ByteInput>(std::move(reader));
  LDNN_RETURN_IF_ERROR(input->Check());
  return Input(std::move(input));
}

Result<Inputs> OpenInputs(const DatasetConfig& config, const std::shared_ptr<ObjectStore>& store) {
  Inputs inputs;
  if (config.format == DatasetFormat::kWebDataset) {
    return InvalidArgumentError("the data set has WebDataset's shards already");
  }
  LDNN_ASSIGN_OR_RETURN(const DatasetLocation location, LocateDataset(config));
  const bool parquet = config.format == DatasetFormat::kParquet;
  if (parquet || config.format == DatasetFormat::kImageFolder) {
    LDNN_ASSIGN_OR_RETURN(ImageSources sources, parquet
                                                    ? FindParquetImages(config, location, store)
                                                    : OpenImageFolders(config, location, store));
    inputs.train = std::make_unique<FileInput>(std::move(sources.train));
    if (sources.test != nullptr) inputs.test = std::make_unique<FileInput>(std::move(sources.test));
    return inputs;
  }
  LDNN_ASSIGN_OR_RETURN(SampleReaders readers, OpenReaders(config, location, store));
  LDNN_ASSIGN_OR_RETURN(inputs.train, InputOf(std::move(readers.train)));
  if (readers.test == nullptr) return inputs;
  LDNN_ASSIGN_OR_RETURN(inputs.test, InputOf(std::move(readers.test)));
  return inputs;
}

std::string Numbered(const char* format, int64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, format, static_cast<long long>(number));
  return text;
}

Result<std::string> MakeShard(ShardInput& input, Range samples) {
  TarWriter archive;
  int64_t number = samples.begin;
  const auto add = [&](const char* extension, std::string_view image, int64_t label) {
    const std::string key = Numbered("%09lld", number++);
    const Status status = archive.Add(key + "." + extension, image);
    return status.ok() ? archive.Add(key + ".cls", std::to_string(label)) : status;
  };
  LDNN_RETURN_IF_ERROR(input.ForEach(samples, add));
  return archive.Finish();
}

Status WriteSet(const ConvertOptions& options, const std::string& name, ShardInput& input,
                const ConvertReport& report) {
  const int64_t all = input.size();
  for (Range samples{0, 0}; samples.begin < all; samples.begin = samples.end) {
    samples.end = std::min(samples.begin + options.samples_per_shard, all);
    const std::string shard =
        name + "-" + Numbered("%05lld", samples.begin / options.samples_per_shard) + ".tar";
    const std::string path = options.folder + "/" + shard;
    if (std::error_code unknown; !std::filesystem::exists(path, unknown)) {
      LDNN_ASSIGN_OR_RETURN(const std::string bytes, MakeShard(input, samples));
      LDNN_RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
    }
    report(shard, samples.end, all);
  }
  return OkStatus();
}

// What the shards of the folder are of: a conversion goes on with those of the same alone.
Status ClaimFolder(const ConvertOptions& options, const Inputs& inputs) {
  const std::string path = options.folder + "/source.txt";
  const std::string source =
      options.dataset.uri + "\n" + std::to_string(inputs.train->size()) + " training and " +
      std::to_string(inputs.test == nullptr ? 0 : inputs.test->size()) + " test samples, " +
      std::to_string(options.samples_per_shard) + " a shard\n";
  const auto before = ReadFile(path);
  if (!before.ok() && before.status().code() == StatusCode::kNotFound) {
    return WriteFileAtomically(path, source);
  }
  if (!before.ok()) return before.status();
  if (*before == source) return OkStatus();
  return InvalidArgumentError(path +
                              " says that the shards there are of other samples; name an "
                              "empty folder");
}

}  // namespace

Status ConvertToShards(const ConvertOptions& options, const std::shared_ptr<ObjectStore>& store,
                       const ConvertReport& report) {
  if (options.samples_per_shard < 1 || options.samples_per_shard > kMaxSamplesPerShard) {
    return InvalidArgumentError("samples per shard: must be 1 to " +
                                std::to_string(kMaxSamplesPerShard));
  }
  LDNN_ASSIGN_OR_RETURN(const Inputs inputs, OpenInputs(options.dataset, store));
  LDNN_RETURN_IF_ERROR(ClaimFolder(options, inputs));
  LDNN_RETURN_IF_ERROR(WriteSet(options, "train", *inputs.train, report));
  if (inputs.test == nullptr) return OkStatus();
  return WriteSet(options, "test", *inputs.test, report);
}

}  // namespace lambdadnn
