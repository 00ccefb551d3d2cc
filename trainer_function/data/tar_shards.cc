// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "trainer_function/data/image_source.h"
#include "trainer_function/data/tar_reader.h"

namespace lambdadnn {
namespace {

constexpr uint64_t kMaxLabelBytes = 32;

// What of a sample has been seen; its members follow one another.
struct OpenSample {
  std::string key;
  std::optional<TarMember> image;
  std::optional<int64_t> label;
};

struct MemberName {
  std::string_view key;        // with the folders
  std::string_view extension;  // without the dot; empty = the name has none
};

MemberName SplitName(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', begin);
  if (dot == std::string_view::npos || dot == begin) return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

class TarShards final : public PlacedImages {
 public:
  explicit TarShards(const LabelClasses& classes) : declared_(classes) {}

  // Of the samples, at most as many as opening is to look at.
  Status Add(DataFile shard) {
    stored_bytes_ += static_cast<int64_t>(shard.size());
    if (Enough()) return OkStatus();
    files_.push_back(std::move(shard));
    first_records_.push_back(size());
    TarReader reader(files_.back());
    OpenSample sample;
    while (!Enough()) {
      LDNN_ASSIGN_OR_RETURN(const std::optional<TarMember> member, reader.Next());
      if (!member) break;
      LDNN_RETURN_IF_ERROR(Take(*member, reader, &sample));
    }
    return Enough() ? OkStatus() : Finish(&sample);
  }

  // After all shards.
  Status End() {
    if (places_.empty()) {
      return InvalidArgumentError(files_.front().name() +
                                  " holds no samples: no image (.jpg, .png) with a class (.cls) "
                                  "beside it; give shards of WebDataset's layout");
    }
    classes_ = declared_.count > 0 ? declared_.count : static_cast<int>(largest_label_) + 1;
    return OkStatus();
  }

  int64_t size() const override { return static_cast<int64_t>(places_.size()); }
  ImagePlace Place(int64_t index) const override {
    const Packed& place = places_[static_cast<size_t>(index)];
    return {place.file, place.offset, place.bytes, place.label};
  }
  DataFile File(int64_t file) const override { return files_[static_cast<size_t>(file)]; }
  std::string Describe(int64_t index) const override {
    const ImagePlace place = Place(index);
    const DataFile& file = files_[static_cast<size_t>(place.file)];
    const int64_t record = index - first_records_[static_cast<size_t>(place.file)];
    std::string text = file.name() + ", record " + std::to_string(record);
    // The index has no names: the member's own header has.
    const auto header = file.Read(place.offset - kTarBlock, kTarBlock);
    if (!header.ok()) return text;
    const std::string_view name = AsText(*header).substr(0, 100);
    return text + " (" + ShownName(name.substr(0, name.find('\0'))) + ")";
  }
  int classes() const override { return classes_; }
  int64_t stored_bytes() const override { return stored_bytes_; }

 private:
  // 24 bytes of each sample of the set.
  struct Packed {
    uint64_t offset;
    uint64_t bytes;
    int32_t file;
    int32_t label;
  };

  bool Enough() const { return declared_.first > 0 && size() >= declared_.first; }

  Status Refuse(const TarMember& member, const std::string& what) const {
    return InvalidArgumentError(files_.back().name() + ", member " + ShownName(member.name) + ": " +
                                what);
  }

  Status Take(const TarMember& member, TarReader& reader, OpenSample* sample) {
    const MemberName name = SplitName(member.name);
    const bool is_image = IsImageName(member.name);
    const bool is_label = LowerCase(name.extension) == "cls";
    if (name.key != sample->key) {
      LDNN_RETURN_IF_ERROR(Finish(sample));
      sample->key = std::string(name.key);
    }
    if ((is_image && sample->image) || (is_label && sample->label)) {
      return Refuse(member, std::string("its sample has another ") +
                                (is_image ? "image" : "class") +
                                "; give each sample a name of its own");
    }
    if (is_image) sample->image = member;
    if (!is_label) return OkStatus();
    LDNN_ASSIGN_OR_RETURN(sample->label, ReadLabel(member, reader));
    return OkStatus();
  }

  Result<std::optional<int64_t>> ReadLabel(const TarMember& member, TarReader& reader) const {
    LDNN_ASSIGN_OR_RETURN(const Bytes contents, reader.Contents(member, kMaxLabelBytes));
    const auto label = ParseInteger(Trim(AsText(contents)));
    const int most = declared_.count > 0 ? declared_.count : kMaxClasses;
    if (!label) {
      return Refuse(member, "holds no class: write its number, 0, 1, 2, …, as text");
    }
    if (*label < 0 || *label >= most) {
      return Refuse(member, "the label " + std::to_string(*label) +
                                " is outside the classes 0 to " + std::to_string(most - 1) +
                                "; correct the file or spec.dataset.classes");
    }
    return std::optional<int64_t>(*label);
  }

  // A sample without an image or a class is part of no training that was meant.
  Status Finish(OpenSample* sample) {
    if (sample->image.has_value() != sample->label.has_value()) {
      return InvalidArgumentError(
          files_.back().name() + ", sample " + ShownName(sample->key) + ": has " +
          (sample->image ? "no class (.cls)" : "no image (.jpg, .jpeg, .png)") +
          "; members of one sample must follow one another, under one name");
    }
    if (sample->image) {
      if (size() >= kMaxSamples || files_.size() > kMaxClasses) {
        return InvalidArgumentError(files_.back().name() + ": the set has too many samples");
      }
      places_.push_back({sample->image->offset, sample->image->bytes,
                         static_cast<int32_t>(files_.size() - 1),
                         static_cast<int32_t>(*sample->label)});
      largest_label_ = std::max(largest_label_, *sample->label);
    }
    *sample = OpenSample();
    return OkStatus();
  }

  const LabelClasses declared_;
  std::vector<DataFile> files_;
  std::vector<int64_t> first_records_;
  std::vector<Packed> places_;
  int64_t largest_label_ = 0;
  int classes_ = 0;
  int64_t stored_bytes_ = 0;
};

}  // namespace

bool IsImageName(std::string_view name) {
  const std::string lower = LowerCase(name);
  return lower.ends_with(".jpg") || lower.ends_with(".jpeg") || lower.ends_with(".png");
}

Result<std::unique_ptr<ImageSource>> OpenTarShards(std::vector<DataFile> shards,
                                                   const LabelClasses& classes) {
  auto source = std::make_unique<TarShards>(classes);
  for (DataFile& shard : shards) LDNN_RETURN_IF_ERROR(source->Add(std::move(shard)));
  LDNN_RETURN_IF_ERROR(source->End());
  return std::unique_ptr<ImageSource>(std::move(source));
}

}  // namespace lambdadnn
