// SPDX-License-Identifier: Apache-2.0
// Opens the files of a data set, found in a folder or named one by one. The files of each format
// are:
//
//   IDX      train-images-idx3-ubyte, train-labels-idx1-ubyte and t10k-…, also .gz; or the images
//            file, whose labels file has "labels" and "idx1" in its name instead
//   CIFAR10  data_batch_1.bin to data_batch_5.bin and test_batch.bin; or one .bin file
//   CIFAR100 train.bin and test.bin; or one .bin file
//   CSV      train.csv and test.csv, also .gz; or one .csv file
//   NPY      data.npz or a .npz file with x_train, y_train, x_test, y_test (or x, y); the same
//            names as .npy files in a folder, or shards of these (x_train_000.npy, …_001.npy); or
//            the features' .npy file, with x for y in its name
//   WebDataset  the .tar files of a folder, of which those are for testing whose names begin with
//            test or val; or one .tar file
//   Parquet  the .parquet files of a folder, told apart in the same way; or one .parquet file
//   Text     train.txt and test.txt, also .gz; or one .txt file; their vocabulary beside them
//   ImageFolder  CLASS/NAME.jpg, .jpeg, .png; or these below train, and below test or val
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/protocol/training_config.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/data/image_source.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

struct SampleReaders {
  std::unique_ptr<SampleReader> train;
  std::unique_ptr<SampleReader> test;  // null = there are no test samples
};

// Whether the last segment of a URI names a data file, not a folder.
bool IsDataFileName(std::string_view name);

// kNotFound lists the names that were looked for.
Result<SampleReaders> OpenReaders(const DatasetConfig& config, const DatasetLocation& location,
                                  const std::shared_ptr<ObjectStore>& store);

// Before anything is decoded.
struct ImageSources {
  std::unique_ptr<ImageSource> train;
  std::unique_ptr<ImageSource> test;  // null = there are no test samples
};
// The images of the folder itself, or those of its folder train, beside which test or val may be.
Result<ImageSources> OpenImageFolders(const DatasetConfig& config, const DatasetLocation& location,
                                      const std::shared_ptr<ObjectStore>& store);
// Of Parquet files; without a training set where they have no column of images.
Result<ImageSources> FindParquetImages(const DatasetConfig& config, const DatasetLocation& location,
                                       const std::shared_ptr<ObjectStore>& store);

}  // namespace lambdadnn
