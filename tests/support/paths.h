// SPDX-License-Identifier: Apache-2.0
// Where tests find the repository, the built programs and a folder of their own.
#pragma once

#include <string>

namespace lambdadnn {

std::string SourceDir();
// build/<preset>/bin
std::string BinDir();
// A fresh empty folder, removed when the process ends.
std::string MakeTempDir();

}  // namespace lambdadnn
