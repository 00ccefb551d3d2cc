// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace lambdadnn {
namespace {

struct TempDirs {
  std::vector<std::string> paths;
  ~TempDirs() {
    for (const std::string& path : paths) {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  }
};

}  // namespace

std::string SourceDir() { return LAMBDADNN_SOURCE_DIR; }
std::string BinDir() { return LAMBDADNN_BINARY_DIR "/bin"; }

std::string MakeTempDir() {
  static TempDirs created;
  std::string path = (std::filesystem::temp_directory_path() / "lambdadnn-test-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) std::abort();
  created.paths.push_back(path);
  return path;
}

}  // namespace lambdadnn
