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
#include "trainer_function/data/npy_writer.h"
#include "trainer_function/data/open_readers.h"
#include "trainer_function/data/tar_writer.h"

namespace lambdadnn {
namespace {

constexpr int64_t kMaxSamplesPerShard = 1'000'000;

std::string Numbered(const char* format, int64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, format, static_cast<long long>(number));
  return text;
}

// One set, whose samples are made shards by number.
class ShardInput {
 public:
  virtual ~ShardInput() = default;
  virtual int64_t size() const = 0;
  // The files of shard `number` of this set ("train", "test").
  virtual std::vector<std::string> Names(const std::string& set, int64_t number) const = 0;
  // Their contents, in the same order.
  virtual Result<std::vector<std::string>> Make(Range samples) = 0;
};

// An archive a shard.
class ImageInput : public ShardInput {
 public:
  std::vector<std::string> Names(const std::string& set, int64_t number) const override {
    return {set + "-" + Numbered("%05lld", number) + ".tar"};
  }
  Result<std::vector<std::string>> Make(Range samples) override {
    TarWriter archive;
    int64_t number = samples.begin;
    const auto add = [&](const char* extension, std::string_view image, int64_t label) {
      const std::string key = Numbered("%09lld", number++);
      const Status status = archive.Add(key + "." + extension, image);
      return status.ok() ? archive.Add(key + ".cls", std::to_string(label)) : status;
    };
    LDNN_RETURN_IF_ERROR(ForEach(samples, add));
    return std::vector<std::string>{archive.Finish()};
  }

 protected:
  // Calls add(extension, image, label) for each.
  using AddSample = std::function<Status(const char*, std::string_view, int64_t)>;
  virtual Status ForEach(Range samples, const AddSample& add) = 0;
};

// Stored as bytes [channels, height, width], with classes.
class ByteInput final : public ImageInput {
 public:
  explicit ByteInput(std::unique_ptr<SampleReader> reader) : reader_(std::move(reader)) {}

  static bool Takes(const SampleLayout& layout) {
    const std::vector<int64_t>& shape = layout.feature_shape;
    return layout.byte_features && layout.classes > 0 && shape.size() == 3 &&
           (shape[0] == 1 || shape[0] == 3);
  }

  int64_t size() const override { return reader_->layout().samples; }

 protected:
  Status ForEach(Range samples, const AddSample& add) override {
    SampleBlock block;
    LDNN_RETURN_IF_ERROR(reader_->Read(std::span(&samples, 1), block));
    const std::vector<int64_t>& shape = reader_->layout().feature_shape;
    const auto bytes = static_cast<size_t>(ElementsIn(shape));
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
class FileInput final : public ImageInput {
 public:
  explicit FileInput(std::unique_ptr<ImageSource> source) : source_(std::move(source)) {}

  int64_t size() const override { return source_->size(); }

 protected:
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

// What is no image: two arrays a shard.
class ArrayInput final : public ShardInput {
 public:
  explicit ArrayInput(std::unique_ptr<SampleReader> reader) : reader_(std::move(reader)) {}

  int64_t size() const override { return reader_->layout().samples; }
  // The features last: a reader looks for them first.
  std::vector<std::string> Names(const std::string& set, int64_t number) const override {
    const std::string rest = "_" + set + "_" + Numbered("%03lld", number) + ".npy";
    return {"y" + rest, "x" + rest};
  }
  Result<std::vector<std::string>> Make(Range samples) override {
    SampleBlock block;
    LDNN_RETURN_IF_ERROR(reader_->Read(std::span(&samples, 1), block));
    const SampleLayout& layout = reader_->layout();
    std::vector<int64_t> shape = layout.feature_shape;
    shape.insert(shape.begin(), samples.size());
    std::vector<std::string> files;
    files.push_back(Labels(samples.size(), block));
    if (layout.byte_features) {
      files.push_back(
          EncodeNpy(NpyType::kUint8, shape, std::as_bytes(std::span(block.byte_values))));
    } else if (layout.padding) {  // of texts
      const std::vector<int32_t> ids(block.values.begin(), block.values.end());
      files.push_back(EncodeNpy(NpyType::kInt32, shape, std::as_bytes(std::span(ids))));
    } else {
      files.push_back(EncodeNpy(NpyType::kFloat32, shape, std::as_bytes(std::span(block.values))));
    }
    return files;
  }

 private:
  std::string Labels(int64_t samples, const SampleBlock& block) const {
    if (reader_->layout().classes > 0) {
      return EncodeNpy(NpyType::kInt64, std::span(&samples, 1),
                       std::as_bytes(std::span(block.labels)));
    }
    const int64_t shape[] = {samples, reader_->layout().target_size};
    return EncodeNpy(NpyType::kFloat32, shape, std::as_bytes(std::span(block.targets)));
  }

  const std::unique_ptr<SampleReader> reader_;
};

using Input = std::unique_ptr<ShardInput>;
struct Inputs {
  Input train;
  Input test;
};

Input InputOf(std::unique_ptr<SampleReader> reader) {
  if (ByteInput::Takes(reader->layout())) return std::make_unique<ByteInput>(std::move(reader));
  return std::make_unique<ArrayInput>(std::move(reader));
}

// Of sets of encoded images; no training set where this is none.
Result<ImageSources> FindImages(const DatasetConfig& config, const DatasetLocation& location,
                                const std::shared_ptr<ObjectStore>& store) {
  if (config.format == DatasetFormat::kImageFolder) {
    return OpenImageFolders(config, location, store);
  }
  if (config.format == DatasetFormat::kParquet) return FindParquetImages(config, location, store);
  return ImageSources();
}

Result<Inputs> OpenInputs(const DatasetConfig& config, const std::shared_ptr<ObjectStore>& store) {
  Inputs inputs;
  if (config.format == DatasetFormat::kWebDataset) {
    return InvalidArgumentError("the data set has WebDataset's shards already");
  }
  LDNN_ASSIGN_OR_RETURN(const DatasetLocation location, LocateDataset(config));
  LDNN_ASSIGN_OR_RETURN(ImageSources images, FindImages(config, location, store));
  if (images.train != nullptr) {
    inputs.train = std::make_unique<FileInput>(std::move(images.train));
    if (images.test != nullptr) inputs.test = std::make_unique<FileInput>(std::move(images.test));
    return inputs;
  }
  LDNN_ASSIGN_OR_RETURN(SampleReaders readers, OpenReaders(config, location, store));
  inputs.train = InputOf(std::move(readers.train));
  if (readers.test != nullptr) inputs.test = InputOf(std::move(readers.test));
  return inputs;
}

Status MakeShard(const std::string& folder, const std::vector<std::string>& names,
                 ShardInput& input, Range samples) {
  const auto exists = [&](const std::string& name) {
    std::error_code unknown;
    return std::filesystem::exists(folder + "/" + name, unknown);
  };
  if (std::ranges::all_of(names, exists)) return OkStatus();
  LDNN_ASSIGN_OR_RETURN(const std::vector<std::string> contents, input.Make(samples));
  for (size_t i = 0; i < names.size(); ++i) {
    LDNN_RETURN_IF_ERROR(WriteFileAtomically(folder + "/" + names[i], contents[i]));
  }
  return OkStatus();
}

Status WriteSet(const ConvertOptions& options, const std::string& set, ShardInput& input,
                const ConvertReport& report) {
  const int64_t all = input.size();
  for (Range samples{0, 0}; samples.begin < all; samples.begin = samples.end) {
    samples.end = std::min(samples.begin + options.samples_per_shard, all);
    const std::vector<std::string> names =
        input.Names(set, samples.begin / options.samples_per_shard);
    LDNN_RETURN_IF_ERROR(MakeShard(options.folder, names, input, samples));
    report(names.back(), samples.end, all);
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
