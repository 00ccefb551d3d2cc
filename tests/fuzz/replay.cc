// SPDX-License-Identifier: Apache-2.0
// fuzz_replay TARGET FOLDER...: gives a fuzz target every file of its corpora, without fuzzing:
// those of the repository, which the command names, and what scripts/test.sh --all found on this
// machine. What a target finds wrong ends the program; the last file that it names is the one.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// One function a target: each is LLVMFuzzerTestOneInput of its source.
#define FUZZ_TARGET(name) extern "C" int Fuzz_##name(const uint8_t* data, size_t size);
#include "fuzz_targets.h"
#undef FUZZ_TARGET

namespace lambdadnn {
namespace {

using FuzzTarget = int (*)(const uint8_t*, size_t);

FuzzTarget FindTarget(const std::string& wanted) {
#define FUZZ_TARGET(name) \
  if (wanted == #name) return Fuzz_##name;
#include "fuzz_targets.h"
#undef FUZZ_TARGET
  return nullptr;
}

// ${XDG_CACHE_HOME:-~/.cache}/lambdadnn/fuzz/TARGET, as in scripts/test.sh.
std::string KeptCorpus(const std::string& target) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string folder = cache != nullptr && *cache != '\0'
                                 ? std::string(cache)
                                 : std::string(home != nullptr ? home : "") + "/.cache";
  return folder + "/lambdadnn/fuzz/" + target;
}

// Files of the folder in one order; none when there is no such folder.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code no_folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder, no_folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void Replay(FuzzTarget target, const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  // Before it runs: a crash leaves no time to say which one it was.
  std::printf("%s\n", file.c_str());
  std::fflush(stdout);
  target(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

int Main(const std::vector<std::string>& arguments) {
  const FuzzTarget target = arguments.empty() ? nullptr : FindTarget(arguments[0]);
  if (target == nullptr || arguments.size() < 2) {
    std::fprintf(stderr, "error: usage: fuzz_replay TARGET FOLDER..., TARGET of tests/fuzz\n");
    return 2;
  }
  std::vector<std::string> folders(arguments.begin() + 1, arguments.end());
  folders.push_back(KeptCorpus(arguments[0]));
  size_t count = 0;
  for (const std::string& folder : folders) {
    for (const std::string& file : FilesIn(folder)) {
      Replay(target, file);
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  if (count > 0) return 0;
  std::fprintf(stderr, "error: %s has no file\n", folders.front().c_str());
  return 1;
}

}  // namespace
}  // namespace lambdadnn

int main(int argc, char** argv) {
  return lambdadnn::Main(std::vector<std::string>(argv + 1, argv + argc));
}
