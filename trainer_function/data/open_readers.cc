// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/open_readers.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/cifar_reader.h"
#include "trainer_function/data/csv_reader.h"
#include "trainer_function/data/idx_reader.h"
#include "trainer_function/data/image_reader.h"
#include "trainer_function/data/image_source.h"
#include "trainer_function/data/joined_reader.h"
#include "trainer_function/data/npy_reader.h"
#include "trainer_function/data/parquet_reader.h"
#include "trainer_function/data/text_reader.h"
#include "trainer_function/data/vocabulary.h"

namespace lambdadnn {
namespace {

using Store = std::shared_ptr<ObjectStore>;
using Reader = std::unique_ptr<SampleReader>;

constexpr int kCifarBatches = 5;
constexpr size_t kShardDigits = 3;  // at least, in the names of shards of arrays

enum class SetName { kTrain, kTest };

LabelClasses ClassesOf(const DatasetConfig& config) {
  return {config.classes, config.labels_imply_classes, config.check_labels, config.first_records};
}

std::string InFolder(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

// The images file itself, or its usual names in a folder.
std::vector<std::string> IdxNames(const std::string& path, SetName set, const std::string& what,
                                  const std::string& dimensions) {
  if (IsDataFileName(path)) {
    std::string name = path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
    if (what == "images") return {name};
    const size_t at = name.rfind("images");
    if (at == std::string::npos) return {name + "-labels"};
    name.replace(at, 6, "labels");
    const size_t rank = name.rfind("idx");
    if (rank != std::string::npos && rank + 3 < name.size()) name[rank + 3] = dimensions[0];
    return {name};
  }
  const std::string base = InFolder(path, set == SetName::kTrain ? "train-" : "t10k-") + what;
  return {base + "-idx" + dimensions + "-ubyte", base + ".idx" + dimensions + "-ubyte"};
}

Result<Reader> OpenIdxSet(const DatasetConfig& config, const Store& store, const std::string& path,
                          SetName set) {
  LDNN_ASSIGN_OR_RETURN(DataFile images,
                        OpenFirst(store, IdxNames(path, set, "images", "3"), true, "images"));
  LDNN_ASSIGN_OR_RETURN(DataFile labels,
                        OpenFirst(store, IdxNames(path, set, "labels", "1"), true, "labels"));
  return OpenIdx(std::move(images), std::move(labels), ClassesOf(config));
}

Result<Reader> OpenCifarSet(const DatasetConfig& config, const Store& store,
                            const std::string& path, SetName set) {
  std::vector<DataFile> files;
  if (IsDataFileName(path)) {
    LDNN_ASSIGN_OR_RETURN(files.emplace_back(), DataFile::Open(store, path));
  } else if (set == SetName::kTest) {
    LDNN_ASSIGN_OR_RETURN(files.emplace_back(), OpenFirst(store, {InFolder(path, "test_batch.bin")},
                                                          false, "CIFAR-10 test file"));
  } else {
    for (int i = 1; i <= kCifarBatches; ++i) {
      const std::string name = InFolder(path, "data_batch_" + std::to_string(i) + ".bin");
      LDNN_ASSIGN_OR_RETURN(files.emplace_back(),
                            OpenFirst(store, {name}, false, "CIFAR-10 training file"));
    }
  }
  return OpenCifar10(std::move(files), config.classes);
}

Result<Reader> OpenCifar100Set(const DatasetConfig& config, const Store& store,
                               const std::string& path, SetName set) {
  const std::string name = IsDataFileName(path)
                               ? path
                               : InFolder(path, set == SetName::kTrain ? "train.bin" : "test.bin");
  std::vector<DataFile> files(1);
  LDNN_ASSIGN_OR_RETURN(files[0], OpenFirst(store, {name}, false, "CIFAR-100 file"));
  return OpenCifar100(std::move(files), config.cifar100_labels, config.classes);
}

Result<Reader> OpenCsvSet(const DatasetConfig& config, const Store& store, const std::string& path,
                          SetName set) {
  const std::string name = IsDataFileName(path)
                               ? path
                               : InFolder(path, set == SetName::kTrain ? "train.csv" : "test.csv");
  LDNN_ASSIGN_OR_RETURN(DataFile file, OpenFirst(store, {name}, !IsDataFileName(path), "CSV file"));
  return OpenCsv(std::move(file), {config.label_column, config.csv_header, ClassesOf(config)});
}

struct ArrayNames {
  const char* features;
  const char* labels;
};
constexpr ArrayNames kTrainArrays[] = {
    {"x_train", "y_train"}, {"X_train", "y_train"}, {"train_x", "train_y"}, {"x", "y"}, {"X", "y"},
    {"data", "target"}};
constexpr ArrayNames kTestArrays[] = {
    {"x_test", "y_test"}, {"X_test", "y_test"}, {"test_x", "test_y"}};

std::vector<ArrayNames> NamesOf(SetName set) {
  if (set == SetName::kTrain) return {std::begin(kTrainArrays), std::end(kTrainArrays)};
  return {std::begin(kTestArrays), std::end(kTestArrays)};
}

std::string ListNames(SetName set) {
  std::vector<std::string> names;
  for (const ArrayNames& pair : NamesOf(set)) {
    names.push_back(std::string(pair.features) + " and " + pair.labels);
  }
  return Join(names, ", ");
}

Result<Reader> OpenArchive(const DatasetConfig& config, const DataFile& file, SetName set) {
  LDNN_ASSIGN_OR_RETURN(const std::vector<ZipMember> members,
                        ListZip(file, {".npz archive", "save it again with numpy.savez"}));
  const auto find = [&](const std::string& name) -> const ZipMember* {
    for (const ZipMember& member : members) {
      if (member.name == name + ".npy") return &member;
    }
    return nullptr;
  };
  const auto open = [&](const ZipMember& member) {
    return OpenNpy(member.part, file.name() + ": " + member.name, member.unpacked_bytes);
  };
  for (const ArrayNames& pair : NamesOf(set)) {
    const ZipMember* const features = find(pair.features);
    const ZipMember* const labels = find(pair.labels);
    if (features == nullptr || labels == nullptr) continue;
    LDNN_ASSIGN_OR_RETURN(NpyArray x, open(*features));
    LDNN_ASSIGN_OR_RETURN(NpyArray y, open(*labels));
    return MakeNpyReader(std::move(x), std::move(y), ClassesOf(config));
  }
  return NotFoundError("no arrays for samples and labels in " + file.name() +
                       "; looked for: " + ListNames(set));
}

Result<NpyArray> OpenArrayFile(const Store& store, const std::string& key) {
  LDNN_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(store, key));
  const std::string name = file.name();
  const uint64_t size = file.size();
  return OpenNpy(FilePart::Whole(std::move(file)), name, size);
}

Result<Reader> OpenArrayFiles(const DatasetConfig& config, const Store& store,
                              const std::string& features, const std::string& labels) {
  LDNN_ASSIGN_OR_RETURN(NpyArray x, OpenArrayFile(store, features));
  LDNN_ASSIGN_OR_RETURN(NpyArray y, OpenArrayFile(store, labels));
  return MakeNpyReader(std::move(x), std::move(y), ClassesOf(config));
}

// x_train_000.npy and y_train_000.npy, x_train_001.npy and so on, up to the first that is missing.
Result<Reader> OpenArrayShards(const DatasetConfig& config, const Store& store,
                               const std::string& features, const std::string& labels) {
  std::vector<NamedReader> shards;
  while (true) {
    std::string number = std::to_string(shards.size());
    number.insert(0, std::max<size_t>(kShardDigits, number.size()) - number.size(), '0');
    const std::string name = features + "_" + number + ".npy";
    const auto found = store->Head(name);
    if (!found.ok() && found.status().code() == StatusCode::kNotFound) break;
    if (!found.ok()) return found.status();
    LDNN_ASSIGN_OR_RETURN(Reader reader,
                          OpenArrayFiles(config, store, name, labels + "_" + number + ".npy"));
    shards.push_back({name, std::move(reader)});
  }
  if (shards.empty()) return NotFoundError("no shards");
  return JoinReaders(std::move(shards));
}

// "sub/x_train.npy" -> "sub/y_train.npy"; empty when the name has no x or data to replace.
std::string LabelsBeside(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  std::string name = path.substr(begin);
  const size_t data = name.find("data");
  const size_t x = name.find_first_of("xX");
  if (data != std::string::npos) {
    name.replace(data, 4, "target");
  } else if (x != std::string::npos) {
    name[x] = 'y';
  } else {
    return "";
  }
  return path.substr(0, begin) + name;
}

Result<Reader> OpenNpySet(const DatasetConfig& config, const Store& store, const std::string& path,
                          SetName set) {
  if (path.ends_with(".npz")) {
    LDNN_ASSIGN_OR_RETURN(const DataFile file, DataFile::Open(store, path));
    auto reader = OpenArchive(config, file, set);
    const bool own_test = set == SetName::kTest && !config.test_uri.empty();
    if (!own_test || reader.ok() || reader.status().code() != StatusCode::kNotFound) return reader;
    return OpenArchive(config, file, SetName::kTrain);  // an archive of test samples named x and y
  }
  if (IsDataFileName(path)) {
    const std::string labels = LabelsBeside(path);
    if (labels.empty()) {
      return InvalidArgumentError("spec.dataset.uri: the labels of " + path +
                                  " cannot be found by name; call the files x_train.npy and "
                                  "y_train.npy");
    }
    return OpenArrayFiles(config, store, path, labels);
  }
  const std::string archive = InFolder(path, "data.npz");
  if (auto file = DataFile::Open(store, archive); file.ok()) {
    return OpenArchive(config, *file, set);
  } else if (file.status().code() != StatusCode::kNotFound) {
    return file.status();
  }
  for (const ArrayNames& pair : NamesOf(set)) {
    const std::string features = InFolder(path, std::string(pair.features) + ".npy");
    const std::string labels = InFolder(path, std::string(pair.labels) + ".npy");
    const auto found = store->Head(features);
    if (found.ok()) return OpenArrayFiles(config, store, features, labels);
    if (found.status().code() != StatusCode::kNotFound) return found.status();
    auto shards =
        OpenArrayShards(config, store, InFolder(path, pair.features), InFolder(path, pair.labels));
    if (shards.ok() || shards.status().code() != StatusCode::kNotFound) return shards;
  }
  return NotFoundError("no arrays in " + store->Describe() + (path.empty() ? "" : "/" + path) +
                       "; looked for data.npz and, as .npy files or shards of them (…_000.npy), " +
                       ListNames(set));
}

// Of the shards of a folder those are for testing whose names begin so.
bool IsTestShard(const DataFile& shard) {
  const std::string& name = shard.name();
  const std::string_view last = std::string_view(name).substr(name.rfind('/') + 1);
  return last.starts_with("test") || last.starts_with("val");
}

// The file that is named, or those of the folder with this ending. One at least.
Result<std::vector<DataFile>> FindShards(const DatasetConfig& config, const Store& store,
                                         const std::string& path, SetName set,
                                         const std::string& ending) {
  std::vector<DataFile> shards;
  if (IsDataFileName(path)) {
    LDNN_ASSIGN_OR_RETURN(shards.emplace_back(), DataFile::Open(store, path));
    return shards;
  }
  LDNN_ASSIGN_OR_RETURN(shards, ListShards(store, path, ending));
  // A folder of its own for testing has nothing else.
  if (set == SetName::kTrain || config.test_uri.empty()) {
    std::erase_if(shards, [&](const DataFile& shard) {
      return IsTestShard(shard) != (set == SetName::kTest);
    });
  }
  if (!shards.empty()) return shards;
  return NotFoundError("no shards in " + store->Describe() + (path.empty() ? "" : "/" + path) +
                       "; looked for: *" + ending +
                       (set == SetName::kTest ? " whose names begin with test or val" : ""));
}

Result<Reader> OpenWebDatasetSet(const DatasetConfig& config, const Store& store,
                                 const std::string& path, SetName set) {
  LDNN_ASSIGN_OR_RETURN(std::vector<DataFile> shards, FindShards(config, store, path, set, ".tar"));
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ImageSource> source,
                        OpenTarShards(std::move(shards), ClassesOf(config)));
  return MakeImageReader(std::move(source), config);
}

Result<std::vector<DataFile>> FindParquet(const DatasetConfig& config, const Store& store,
                                          const std::string& path, SetName set) {
  return FindShards(config, store, path, set, ".parquet");
}

Result<Reader> OpenParquetSet(const DatasetConfig& config, const Store& store,
                              const std::string& path, SetName set) {
  LDNN_ASSIGN_OR_RETURN(std::vector<DataFile> files, FindParquet(config, store, path, set));
  return OpenParquet(std::move(files), config, ClassesOf(config));
}

Result<bool> HasObjects(const Store& store, const std::string& folder) {
  LDNN_ASSIGN_OR_RETURN(const ObjectList list, store->List(folder + "/", "", 1));
  return !list.objects.empty();
}

Result<SampleReaders> ReadImageFolders(const DatasetConfig& config, const DatasetLocation& location,
                                       const Store& store) {
  LDNN_ASSIGN_OR_RETURN(ImageSources sources, OpenImageFolders(config, location, store));
  SampleReaders readers;
  LDNN_ASSIGN_OR_RETURN(readers.train, MakeImageReader(std::move(sources.train), config));
  if (sources.test == nullptr) return readers;
  LDNN_ASSIGN_OR_RETURN(readers.test, MakeImageReader(std::move(sources.test), config));
  return readers;
}

std::string TextKey(const std::string& path, SetName set) {
  if (IsDataFileName(path)) return path;
  return InFolder(path, set == SetName::kTrain ? "train.txt" : "test.txt");
}

Result<Reader> OpenTextSet(const Store& store, const std::string& path, SetName set,
                           const TextOptions& options) {
  LDNN_ASSIGN_OR_RETURN(DataFile file,
                        OpenFirst(store, {TextKey(path, set)}, !IsDataFileName(path), "text file"));
  return OpenText(std::move(file), options);
}

Result<std::shared_ptr<const Vocabulary>> OpenVocabulary(const Store& store,
                                                         const std::string& samples,
                                                         const std::string& name) {
  if (name.empty()) return std::shared_ptr<const Vocabulary>();
  if (name.find("://") != std::string::npos || name.starts_with('/') ||
      name.find("..") != std::string::npos) {
    return InvalidArgumentError("spec.dataset.text.vocabulary: '" + name +
                                "' must be the name of a file in the folder of the samples");
  }
  const size_t slash = samples.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : samples.substr(0, slash);
  LDNN_ASSIGN_OR_RETURN(const DataFile file,
                        OpenFirst(store, {InFolder(folder, name)}, true, "vocabulary"));
  LDNN_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Read(file));
  return std::make_shared<const Vocabulary>(std::move(vocabulary));
}

// Test labels have the numbers of the training labels.
Result<SampleReaders> OpenTexts(const DatasetConfig& config, const DatasetLocation& location,
                                const Store& store) {
  TextOptions options = {
      config.text, nullptr, ClassesOf(config), {}, config.on_bad_sample, config.max_bad_samples};
  LDNN_ASSIGN_OR_RETURN(
      options.vocabulary,
      OpenVocabulary(store, TextKey(location.train, SetName::kTrain), config.text.vocabulary));
  SampleReaders readers;
  LDNN_ASSIGN_OR_RETURN(readers.train,
                        OpenTextSet(store, location.train, SetName::kTrain, options));
  const bool own_test = !config.test_uri.empty();
  if (!own_test && IsDataFileName(location.train)) return readers;
  // Of labels that were not all looked at, some may be missing.
  if (config.first_records == 0) options.class_names = readers.train->layout().class_names;
  auto test =
      OpenTextSet(store, own_test ? location.test : location.train, SetName::kTest, options);
  if (test.ok()) {
    readers.test = std::move(test).value();
  } else if (own_test || test.status().code() != StatusCode::kNotFound) {
    return test.status();
  }
  return readers;
}

using OpenSet = Result<Reader> (*)(const DatasetConfig&, const Store&, const std::string&, SetName);

// The test set at test_uri, or the usual one of the folder (or archive), if any.
Result<SampleReaders> OpenBoth(OpenSet open, const DatasetConfig& config,
                               const DatasetLocation& location, const Store& store) {
  SampleReaders readers;
  LDNN_ASSIGN_OR_RETURN(readers.train, open(config, store, location.train, SetName::kTrain));
  DatasetConfig test_config = config;
  // Of training labels that were not all seen, the largest may be missing.
  if (config.first_records == 0) test_config.classes = readers.train->layout().classes;
  if (!config.test_uri.empty()) {
    LDNN_ASSIGN_OR_RETURN(readers.test, open(test_config, store, location.test, SetName::kTest));
    return readers;
  }
  if (IsDataFileName(location.train) && !location.train.ends_with(".npz")) return readers;
  auto test = open(test_config, store, location.train, SetName::kTest);
  if (test.ok()) {
    readers.test = std::move(test).value();
  } else if (test.status().code() != StatusCode::kNotFound) {
    return test.status();
  }
  return readers;
}

}  // namespace

bool IsDataFileName(std::string_view name) {
  static constexpr std::string_view kEndings[] = {".csv",   ".npy", ".npz", ".bin",    ".txt",
                                                  "-ubyte", ".gz",  ".tar", ".parquet"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

Result<ImageSources> OpenImageFolders(const DatasetConfig& config, const DatasetLocation& location,
                                      const std::shared_ptr<ObjectStore>& store) {
  const std::string train_folder = InFolder(location.train, "train");
  LDNN_ASSIGN_OR_RETURN(const bool divided, HasObjects(store, train_folder));
  LDNN_ASSIGN_OR_RETURN(
      ImageFolder train,
      OpenImageFolder(store, divided ? train_folder : location.train, ClassesOf(config), {}));
  std::optional<std::string> test_folder;
  if (!config.test_uri.empty()) {
    test_folder = location.test;
  } else if (divided) {
    for (const char* const name : {"test", "val"}) {
      LDNN_ASSIGN_OR_RETURN(const bool found, HasObjects(store, InFolder(location.train, name)));
      if (found && !test_folder) test_folder = InFolder(location.train, name);
    }
  }
  ImageSources sources;
  sources.train = std::move(train.source);
  if (!test_folder) return sources;
  LabelClasses classes = ClassesOf(config);
  classes.count = sources.train->classes();
  LDNN_ASSIGN_OR_RETURN(ImageFolder test,
                        OpenImageFolder(store, *test_folder, classes, train.class_names));
  sources.test = std::move(test.source);
  return sources;
}

Result<ImageSources> FindParquetImages(const DatasetConfig& config, const DatasetLocation& location,
                                       const std::shared_ptr<ObjectStore>& store) {
  const bool own_test = !config.test_uri.empty();
  LabelClasses classes = ClassesOf(config);
  ImageSources sources;
  LDNN_ASSIGN_OR_RETURN(std::vector<DataFile> train,
                        FindParquet(config, store, location.train, SetName::kTrain));
  LDNN_ASSIGN_OR_RETURN(sources.train, OpenParquetImages(std::move(train), config, classes));
  if (sources.train == nullptr) return sources;
  if (!own_test && IsDataFileName(location.train)) return sources;
  auto test = FindParquet(config, store, own_test ? location.test : location.train, SetName::kTest);
  if (!test.ok() && !own_test && test.status().code() == StatusCode::kNotFound) return sources;
  if (!test.ok()) return test.status();
  classes.count = sources.train->classes();
  LDNN_ASSIGN_OR_RETURN(sources.test, OpenParquetImages(std::move(*test), config, classes));
  return sources;
}

Result<SampleReaders> OpenReaders(const DatasetConfig& config, const DatasetLocation& location,
                                  const std::shared_ptr<ObjectStore>& store) {
  static constexpr OpenSet kOpeners[] = {OpenIdxSet, OpenCifarSet, OpenCifar100Set,
                                         OpenCsvSet, OpenNpySet,   OpenWebDatasetSet};
  static_assert(std::size(kOpeners) == static_cast<size_t>(DatasetFormat::kImageFolder));
  if (config.format == DatasetFormat::kImageFolder) {
    return ReadImageFolders(config, location, store);
  }
  if (config.format == DatasetFormat::kText) return OpenTexts(config, location, store);
  if (config.format == DatasetFormat::kParquet) {
    return OpenBoth(OpenParquetSet, config, location, store);
  }
  return OpenBoth(kOpeners[static_cast<size_t>(config.format)], config, location, store);
}

}  // namespace lambdadnn
