// SPDX-License-Identifier: Apache-2.0
// Numbers in text: one sample a line, separated by commas (or semicolons or tabs, whichever the
// first line has), one column the label or target, the others features. Fields may stand in double
// quotes. Empty lines are skipped.
//
// Opening scans the file (line_index.h). Where labels imply the classes, or are to be checked, this
// pass looks at all of them.
#pragma once

#include <memory>
#include <string>

#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

struct CsvOptions {
  std::string label_column;  // name (with a header) or index from 0; empty = the last
  bool header = true;
  LabelClasses classes = {};
};

Result<std::unique_ptr<SampleReader>> OpenCsv(DataFile file, const CsvOptions& options);

}  // namespace lambdadnn
