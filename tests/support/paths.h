// SPDX-License-Identifier: Apache-2.0
// Where tests find the repository, the built programs and a folder of their own. A test whose
// passing is remembered (scripts/test.sh) may read only what its CMakeLists.txt names after READS:
// the two functions that find files end the program otherwise.
#pragma once

#include <string>

namespace lambdadnn {

// A file or folder of the repository.
std::string SourcePath(const std::string& name);
// build/<preset>/bin/NAME
std::string ProgramPath(const std::string& name);
// A fresh empty folder, removed when the process ends.
std::string MakeTempDir();

}  // namespace lambdadnn
