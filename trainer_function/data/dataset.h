// SPDX-License-Identifier: Apache-2.0
// A data set as the training loop sees it: numbered samples, of which a rank loads only its own.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/objectstore/object_store.h"
#include "common/plan/geometry.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/dataset_info.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

// What of the samples that are loaded stays in memory: the first `kept`. While the others are
// looked at, at most `at_once` samples more are in memory.
struct SampleBudget {
  int64_t kept = std::numeric_limits<int64_t>::max();
  int64_t at_once = 1;
};

// Since loading began.
struct SampleCounts {
  int64_t most_bytes = 0;  // of samples in memory, fingerprints included
  int64_t read_again = 0;  // samples that were fetched
  int64_t loaded = 0;      // samples; less than were asked for while a load goes on
};

// Samples that are fetched between two looks at whether they are still wanted; of these neighbours
// share a request.
inline constexpr size_t kFetchedAtOnce = 16;

// OK as long as a fetch is wanted; null = it is.
using FetchCheck = std::function<Status()>;

// Thread-compatible: const methods from many threads once loaded. Fetch, and Read where samples are
// fetched, belong to one thread, FetchTest and ReadTest to another or the same.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;
  // What Load and LoadTest keep from now on; all unless this is called. Samples that are not kept
  // need info().single_read to have requests.
  virtual void LimitMemory(const SampleBudget& /*training*/, const SampleBudget& /*test*/) {}
  // What Load and LoadTest ask now and then from now on; null (as at first) = nothing. Its error
  // ends them, and they go on where they were when they are called again for the same samples.
  virtual void WatchLoads(FetchCheck /*check*/) {}
  // Reads the samples of these half-open ranges by range requests and keeps them in memory, or as
  // many as LimitMemory allows, in place of those loaded before. Bad records are kInvalidArgument
  // naming the file and the record, also where they are not kept.
  virtual Status Load(std::span<const Range> sample_ranges) = 0;
  // Test samples in [begin, end), kept apart from the training samples.
  virtual Status LoadTest(Range samples) = 0;
  // Whether some training samples that are loaded are not kept: Fetch must name those that are read
  // next.
  virtual bool streams() const { return false; }
  // Brings these samples into memory, in place of those fetched before. `check` is asked now and
  // then; its error ends it. kFailedPrecondition when the files have changed since Load; errors of
  // the store keep their code.
  virtual Status Fetch(std::span<const int64_t> /*indices*/, const FetchCheck& /*check*/) {
    return OkStatus();
  }
  virtual Status FetchTest(Range /*samples*/) { return OkStatus(); }
  // Reads these training samples (ascending, at most kFetchedAtOnce) as Fetch would, loaded or not,
  // and keeps nothing: for who measures it.
  virtual Status ReadOnce(std::span<const int64_t> /*indices*/) { return OkStatus(); }
  // Whether reading a batch takes as long as a step may: samples are fetched, or changed by more
  // than a copy.
  virtual bool reads_slowly() const { return false; }
  // Samples by number, in this order; all must be loaded, and fetched where they are not kept.
  // `augment_seed` + the sample's number decide the augmentation.
  virtual Result<Batch> Read(std::span<const int64_t> indices, uint64_t augment_seed) const = 0;
  virtual Result<Batch> ReadTest(Range samples) const = 0;
  // Of those that are loaded, training and test: samples that could not be read, in whose place
  // others are (spec.dataset.onBadSample: Skip).
  virtual int64_t bad_samples() const { return 0; }
  // XXH3 of the training samples that are loaded, as they were stored, in order of their numbers
  // (where they are fetched, of their fingerprints).
  virtual uint64_t loaded_checksum() const { return 0; }
  // Of training and test samples together.
  virtual SampleCounts counts() const { return {}; }
};

// The folder to open the store at, and what lies in it: the longest common folder of uri and
// test_uri. `train` and `test` are relative to it; empty = the folder itself, or no test_uri.
struct DatasetLocation {
  std::string folder_uri;
  std::string train;
  std::string test;
};
// kInvalidArgument when the two lie in different stores.
Result<DatasetLocation> LocateDataset(const DatasetConfig& config);

// The data set as this training reads it: cross entropy needs classes.
DatasetConfig DatasetOf(const TrainingConfig& training);

// The URI, or what is drawn: for messages.
std::string DescribeDataset(const DatasetConfig& config);

// Opens by format (which files: open_readers.h) and reads headers (CSV: one pass over the
// rows). `store` is opened at LocateDataset(config)->folder_uri. Bytes (IDX, CIFAR, uint8 NPY,
// images) are divided by 255 unless config.scale is set to something else than 1.
// With config.rendered_digits no store is used: `store` may be null.
Result<std::unique_ptr<Dataset>> OpenDataset(const DatasetConfig& config,
                                             const std::shared_ptr<ObjectStore>& store);

// The same, which opens the store itself, if one is needed.
using OpenStoreAt = std::function<Result<std::unique_ptr<ObjectStore>>(const std::string& uri)>;
Result<std::unique_ptr<Dataset>> OpenDatasetAt(const DatasetConfig& config,
                                               const OpenStoreAt& open_store);

}  // namespace lambdadnn
