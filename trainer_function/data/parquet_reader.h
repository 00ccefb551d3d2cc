// SPDX-License-Identifier: Apache-2.0
// Samples of Parquet files: one a row, of one column's images or of all columns' numbers
// (parquet/parquet_columns.h). Lists of whole numbers of 8 bits without a sign are bytes, as arrays
// of uint8 are; all other numbers are float32.
#pragma once

#include <memory>
#include <vector>

#include "common/protocol/training_config.h"
#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/image_source.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

// `files`, at least one, count as one. Where labels imply the classes, or are to be checked, those
// that the footers have no bounds of are read.
Result<std::unique_ptr<SampleReader>> OpenParquet(std::vector<DataFile> files,
                                                  const DatasetConfig& config,
                                                  const LabelClasses& classes);

// Before anything is decoded; null where the files have no column of images.
Result<std::unique_ptr<ImageSource>> OpenParquetImages(std::vector<DataFile> files,
                                                       const DatasetConfig& config,
                                                       const LabelClasses& classes);

}  // namespace lambdadnn
