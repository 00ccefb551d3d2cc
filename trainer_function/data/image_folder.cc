// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "common/base/text.h"
#include "trainer_function/data/image_source.h"
#include "trainer_function/data/tar_reader.h"

namespace lambdadnn {
namespace {

// An index takes some 60 bytes of each image; ImageNet has 1.3 million.
constexpr int64_t kMaxFolderImages = 10'000'000;
// One more than '/': no name that begins with a folder's lies beyond "FOLDER0".
constexpr char kAfterSlash = '/' + 1;

class FolderImages final : public PlacedImages {
 public:
  FolderImages(std::shared_ptr<ObjectStore> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}

  // `name` below the prefix.
  void Add(std::string_view name, uint64_t bytes, int64_t label) {
    entries_.push_back({Xxh3(AsBytes(name)), names_.size(), bytes, static_cast<int32_t>(label),
                        static_cast<uint32_t>(name.size())});
    names_ += name;
    stored_bytes_ += static_cast<int64_t>(bytes);
  }
  void End(int classes) {
    classes_ = classes;
    std::sort(entries_.begin(), entries_.end(), [this](const Entry& a, const Entry& b) {
      return a.hash != b.hash ? a.hash < b.hash : NameOf(a) < NameOf(b);
    });
  }

  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  ImagePlace Place(int64_t index) const override {
    const Entry& entry = entries_[static_cast<size_t>(index)];
    return {index, 0, entry.bytes, entry.label};
  }
  DataFile File(int64_t file) const override {
    const Entry& entry = entries_[static_cast<size_t>(file)];
    return DataFile::OfSize(store_, prefix_ + std::string(NameOf(entry)), entry.bytes);
  }
  std::string Describe(int64_t index) const override { return ShownName(File(index).name()); }
  int classes() const override { return classes_; }
  int64_t stored_bytes() const override { return stored_bytes_; }

 private:
  struct Entry {
    uint64_t hash;
    uint64_t name;  // where it begins in names_
    uint64_t bytes;
    int32_t label;
    uint32_t name_bytes;
  };
  std::string_view NameOf(const Entry& entry) const {
    return std::string_view(names_).substr(entry.name, entry.name_bytes);
  }

  const std::shared_ptr<ObjectStore> store_;
  const std::string prefix_;
  std::vector<Entry> entries_;
  std::string names_;
  int classes_ = 0;
  int64_t stored_bytes_ = 0;
};

// Formats that other tools read: to leave these out in silence would be to train on a part.
bool IsOtherImage(std::string_view name) {
  const std::string lower = LowerCase(name);
  static constexpr std::string_view kEndings[] = {".bmp", ".gif", ".heic", ".jp2", ".jpe",
                                                  ".pgm", ".ppm", ".tiff", ".tif", ".webp"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return lower.ends_with(ending); });
}

struct FoundImage {
  std::string name;  // below the folder
  uint64_t bytes;
};

// The images of a listing, as CLASS/NAME; classes in the order of their names.
class FolderListing {
 public:
  explicit FolderListing(std::string prefix) : prefix_(std::move(prefix)) {}

  Status Add(const ObjectInfo& object) {
    const std::string_view name = std::string_view(object.key).substr(prefix_.size());
    if (IsOtherImage(name)) {
      return InvalidArgumentError(ShownName(object.key) +
                                  ": JPEG and PNG images are read; convert it, or remove it");
    }
    if (!IsImageName(name)) return OkStatus();
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos || slash == 0) {
      return InvalidArgumentError(ShownName(object.key) +
                                  ": the image lies in no class's folder; move it to "
                                  "CLASS/NAME, or remove it");
    }
    classes_.try_emplace(std::string(name.substr(0, slash)), 0);
    images_.push_back({std::string(name), object.size});
    return OkStatus();
  }

  // Numbers the classes by name, or finds them among those of the training set.
  Status NumberClasses(std::vector<std::string>* names) {
    if (names->empty()) {
      for (auto& [name, number] : classes_) {
        number = static_cast<int64_t>(names->size());
        names->push_back(name);
      }
      return OkStatus();
    }
    for (auto& [name, number] : classes_) {
      const auto found = std::find(names->begin(), names->end(), name);
      if (found == names->end()) {
        return InvalidArgumentError("the test images have a class " + ShownName(name) +
                                    " that the training images lack; name the folders alike");
      }
      number = found - names->begin();
    }
    return OkStatus();
  }
  int64_t LabelOf(const FoundImage& image) const {
    return classes_.at(image.name.substr(0, image.name.find('/')));
  }
  const std::vector<FoundImage>& images() const { return images_; }

 private:
  const std::string prefix_;
  std::map<std::string, int64_t> classes_;
  std::vector<FoundImage> images_;
};

// So many images, and those of the other classes that each request happens to show, one at least:
// a request a class, however many images it has.
Status ListSome(ObjectStore& store, const std::string& prefix, int64_t images,
                FolderListing* listing) {
  std::string after;
  const auto enough = [&] { return static_cast<int64_t>(listing->images().size()) >= images; };
  while (true) {
    LDNN_ASSIGN_OR_RETURN(const ObjectList page, store.List(prefix, after, kMaxListLimit));
    std::string folder;  // of the object before, up to its '/'
    for (const ObjectInfo& object : page.objects) {
      const bool of_same = !folder.empty() && object.key.starts_with(folder);
      if (!enough() || !of_same) LDNN_RETURN_IF_ERROR(listing->Add(object));
      const size_t slash = object.key.find('/', prefix.size());
      folder = slash == std::string::npos ? "" : object.key.substr(0, slash + 1);
    }
    if (page.next_start_after.empty()) return OkStatus();
    after = page.next_start_after;
    if (!folder.empty() && enough()) {
      folder.back() = kAfterSlash;
      after = folder;
    }
  }
}

}  // namespace

Result<ImageFolder> OpenImageFolder(std::shared_ptr<ObjectStore> store, const std::string& folder,
                                    const LabelClasses& classes,
                                    const std::vector<std::string>& class_names) {
  const std::string prefix = folder.empty() ? "" : folder + "/";
  FolderListing listing(prefix);
  if (classes.first > 0) {
    LDNN_RETURN_IF_ERROR(ListSome(*store, prefix, classes.first, &listing));
  } else {
    LDNN_RETURN_IF_ERROR(ForEachObject(
        *store, prefix, [&](const ObjectInfo& object) { return listing.Add(object); },
        kMaxFolderImages));
  }
  const std::string place = store->Describe() + (folder.empty() ? "" : "/" + folder);
  if (listing.images().empty()) {
    return NotFoundError("no images in " + place + "; looked for: CLASS/NAME.jpg, .jpeg and .png");
  }
  ImageFolder result{nullptr, class_names};
  LDNN_RETURN_IF_ERROR(listing.NumberClasses(&result.class_names));
  const auto found = static_cast<int64_t>(result.class_names.size());
  if (found > kMaxClasses || (classes.count > 0 && found > classes.count)) {
    return InvalidArgumentError(place + " has " + std::to_string(found) +
                                " folders of images, more than spec.dataset.classes; correct one "
                                "of them");
  }
  auto source = std::make_unique<FolderImages>(std::move(store), prefix);
  for (const FoundImage& image : listing.images()) {
    source->Add(image.name, image.bytes, listing.LabelOf(image));
  }
  source->End(classes.count > 0 ? classes.count : static_cast<int>(found));
  result.source = std::move(source);
  return result;
}

Result<std::vector<DataFile>> ListShards(const std::shared_ptr<ObjectStore>& store,
                                         const std::string& folder, std::string_view ending) {
  const std::string prefix = folder.empty() ? "" : folder + "/";
  std::vector<DataFile> shards;
  LDNN_RETURN_IF_ERROR(ForEachObject(*store, prefix, [&](const ObjectInfo& object) {
    const bool below = object.key.find('/', prefix.size()) != std::string::npos;
    if (!below && object.key.ends_with(ending)) {
      shards.push_back(DataFile::OfSize(store, object.key, object.size));
    }
    return OkStatus();
  }));
  return shards;
}

}  // namespace lambdadnn
