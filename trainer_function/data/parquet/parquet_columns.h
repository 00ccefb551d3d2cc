// SPDX-License-Identifier: Apache-2.0
// Which columns of a Parquet file are samples' features, and which one is their label. Pure.
//
// A field is what a table shows as one column: a number, a list of numbers, or an image (bytes,
// alone or as the field `bytes` of a struct, as Hugging Face's data sets have them). The label is
// the field that is named, else `label`, else the last one. Where a field has images they are the
// features, and other fields are passed over; else the numbers of all other fields are, in their
// order.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "trainer_function/data/parquet/parquet_file.h"

namespace lambdadnn {

struct ParquetField {
  enum class Kind { kNumber, kList, kImage, kOther };
  std::string name;
  Kind kind = Kind::kOther;
  int column = 0;  // of the file
  std::string type;
  bool byte = false;
};

struct ParquetSelection {
  ParquetField label;
  std::vector<ParquetField> features;
  bool images = false;  // then there is one feature
};

std::vector<ParquetField> FieldsOf(const std::vector<ParquetColumn>& columns);

// `label_column`: a name, or a number from 0 on, or empty. kInvalidArgument naming the field and
// its type of what cannot be learnt from.
Result<ParquetSelection> SelectColumns(const std::vector<ParquetColumn>& columns,
                                       const std::string& label_column, const std::string& file);

}  // namespace lambdadnn
