// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
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

[[noreturn]] void Stop(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::abort();
}

// build/<preset>: this program lies in its bin.
const std::filesystem::path& BuildDir() {
  static const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  return folder;
}

// Not compiled in: every checkout builds the same programs.
std::string FindSourceDir() {
  const std::filesystem::path cache = BuildDir() / "CMakeCache.txt";
  constexpr std::string_view kKey = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  std::ifstream file(cache);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  }
  Stop(cache.string() + " does not name the repository; run the tests where they were built");
}

// `name` is one of those after READS, or below one. ctest sets the variable; without it all may be
// read.
void CheckIsNamed(const std::string& name) {
  const char* const variable = std::getenv("LAMBDADNN_TEST_READS");
  if (variable == nullptr) return;
  const std::string_view named = variable;
  for (size_t begin = 0; begin < named.size();) {
    const size_t end = std::min(named.find(':', begin), named.size());
    const std::string_view one = named.substr(begin, end - begin);
    if (name == one || (name.starts_with(one) && name[one.size()] == '/')) return;
    begin = end + 1;
  }
  Stop("this test reads " + name + ", which READS of its CMakeLists.txt does not name");
}

}  // namespace

std::string SourcePath(const std::string& name) {
  static const std::string folder = FindSourceDir();
  CheckIsNamed(name);
  return folder + "/" + name;
}

std::string ProgramPath(const std::string& name) {
  CheckIsNamed("bin/" + name);
  return (BuildDir() / "bin" / name).string();
}

std::string MakeTempDir() {
  static TempDirs created;
  std::string path = (std::filesystem::temp_directory_path() / "lambdadnn-test-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) std::abort();
  created.paths.push_back(path);
  return path;
}

}  // namespace lambdadnn
