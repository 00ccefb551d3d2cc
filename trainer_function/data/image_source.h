// SPDX-License-Identifier: Apache-2.0
// The encoded images of one set, and their labels. Opening makes an index of them, and reads no
// image. Samples are numbered from 0.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

// Encoded. Also bounds what is held beside the decoded samples.
inline constexpr uint64_t kMaxImageBytes = 64 << 20;

class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  // handle(sample, label, encoded) for each of the samples (ranges as of SampleReader::Read), in
  // their order; `encoded` lives as long as the call. It is kInvalidArgument, to go on behind the
  // sample's name, for what cannot be an image whatever it holds. An error of `handle` ends it.
  using HandleImage =
      std::function<Status(int64_t sample, int64_t label, const Result<ByteView>& encoded)>;
  virtual Status ForEach(std::span<const Range> samples, const HandleImage& handle) = 0;
  // "s3://bucket/train-0.tar, record 12 (dog/7.jpg)": for errors. May read.
  virtual std::string Describe(int64_t sample) const = 0;
  virtual int classes() const = 0;
  virtual int64_t stored_bytes() const = 0;
  virtual SingleRead single_read() const = 0;
};

struct ImagePlace {
  int64_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  int64_t label = 0;
};

// Images that are bytes of files; those that lie close to each other are read by one request.
class PlacedImages : public ImageSource {
 public:
  virtual ImagePlace Place(int64_t index) const = 0;
  // ImagePlace::file counts these.
  virtual DataFile File(int64_t file) const = 0;

  Status ForEach(std::span<const Range> samples, const HandleImage& handle) final;
  SingleRead single_read() const final;

 private:
  Status ReadGroup(std::span<const int64_t> group, const HandleImage& handle) const;
};

// What is wrong with an image of more than kMaxImageBytes.
Status TooLongImage(uint64_t bytes);

// WebDataset's shards: consecutive members of one name up to its first '.' are a sample, which has
// one image (.jpg, .jpeg, .png) and its class as a decimal number (.cls); other members are passed
// over. `shards` count as one, in this order; all their headers are read.
// kInvalidArgument names the shard and the member of what is refused.
Result<std::unique_ptr<ImageSource>> OpenTarShards(std::vector<DataFile> shards,
                                                   const LabelClasses& classes);

// The images below `folder` of the store, as CLASS/NAME.jpg (.jpeg, .png), NAME with folders of its
// own or not: classes are numbered by their folders' names, in the order of their bytes. Samples
// are in the order of a hash of their names, so that each part of the set has images of all
// classes. `class_names`: those of the training set, for a test set; empty = those that are found.
// kNotFound when there is no image.
struct ImageFolder {
  std::unique_ptr<ImageSource> source;
  std::vector<std::string> class_names;
};
Result<ImageFolder> OpenImageFolder(std::shared_ptr<ObjectStore> store, const std::string& folder,
                                    const LabelClasses& classes,
                                    const std::vector<std::string>& class_names);

// The files right in `folder` whose names end so (".tar"), in order of their names, with their
// sizes. None is no error.
Result<std::vector<DataFile>> ListShards(const std::shared_ptr<ObjectStore>& store,
                                         const std::string& folder, std::string_view ending);

// ".jpg" and the like, in any case of letters.
bool IsImageName(std::string_view name);

}  // namespace lambdadnn
