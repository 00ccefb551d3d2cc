// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/blas.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

struct LoadedBlas {
  std::string path;     // of the library with sgemm; empty = LibTorch's own
  std::string version;  // OpenBLAS only
};

LoadedBlas FindBlas() {
  LoadedBlas blas;
  void* const sgemm = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (sgemm == nullptr || dladdr(sgemm, &info) == 0 || info.dli_fname == nullptr) return blas;
  std::error_code ignored;
  blas.path = std::filesystem::canonical(info.dli_fname, ignored).string();
  if (blas.path.empty()) blas.path = info.dli_fname;
  if (std::filesystem::path(blas.path).filename().string().starts_with("libtorch")) return {};
  using GetConfig = char* (*)();
  const auto get_config = reinterpret_cast<GetConfig>(dlsym(RTLD_DEFAULT, "openblas_get_config"));
  if (get_config != nullptr) blas.version = get_config();
  return blas;
}

bool IsReference(const LoadedBlas& blas) {
  if (blas.path.empty() || !blas.version.empty()) return false;
  for (const std::string_view fast : {"openblas", "mkl", "blis", "atlas", "flexiblas", "nvpl"}) {
    if (blas.path.find(fast) != std::string::npos) return false;
  }
  return true;
}

std::string NameOf(const LoadedBlas& blas) {
  if (blas.path.empty()) return "built in";
  if (!blas.version.empty()) return std::string(Trim(blas.version));
  if (IsReference(blas)) return "reference BLAS";
  return "BLAS " + std::filesystem::path(blas.path).filename().string();
}

// Those of the oldest processors, for which OpenBLAS takes one that is newer than itself.
constexpr std::string_view kOldestKernels = " Prescott ";

std::string_view FastestKernels() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return "";
}

}  // namespace

std::string BlasName() { return NameOf(FindBlas()); }

std::string BlasDescription() {
  const LoadedBlas blas = FindBlas();
  return NameOf(blas) + (blas.path.empty() ? "" : " (" + blas.path + ")");
}

std::optional<std::string> BlasWarning() {
  const LoadedBlas blas = FindBlas();
  if (!IsReference(blas)) return KernelsWarning(blas.version, FastestKernels());
  return "LibTorch uses the reference BLAS (" + blas.path +
         "), which makes linear layers about 13 times slower; install libopenblas0-pthread";
}

std::optional<std::string> KernelsWarning(std::string_view openblas, std::string_view fastest) {
  if (fastest.empty() || openblas.find(kOldestKernels) == std::string_view::npos) {
    return std::nullopt;
  }
  return "OpenBLAS does not know this processor and takes it for a" + std::string(kOldestKernels) +
         "of 2004, which makes linear layers two to three times slower; set OPENBLAS_CORETYPE=" +
         std::string(fastest) + ", or install a newer OpenBLAS";
}

}  // namespace lambdadnn
