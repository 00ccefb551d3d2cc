// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/parquet/parquet_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace lambdadnn {

std::string ParquetLibrary::Path() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto path =
      program.parent_path().parent_path() / LAMBDADNN_MODULE_FOLDER / "liblambdadnn_parquet.so";
  return path.string();
}

Result<ParquetLibrary> ParquetLibrary::Load(const std::string& path) {
  const std::string refused = "spec.dataset.format: Parquet cannot be read by these programs: ";
  if (std::error_code unknown; !std::filesystem::exists(path, unknown)) {
    return InvalidArgumentError(refused + "they were built without Apache Arrow (" + path +
                                " is not there); run scripts/arrow.sh fetch and build them again, "
                                "or use another format");
  }
  // RTLD_LOCAL: no other library of the process takes Arrow's symbols for its own.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library == nullptr ? nullptr : dlsym(library, kOpenParquetSymbol);
  if (symbol == nullptr) {
    const char* const why = dlerror();
    return InvalidArgumentError(refused + (why == nullptr ? path : std::string(why)) +
                                "; install them again, or use another format");
  }
  return ParquetLibrary(reinterpret_cast<OpenParquetFunction>(symbol));
}

Result<std::unique_ptr<ParquetFile>> ParquetLibrary::Open(const ParquetSource& source) const {
  Result<std::unique_ptr<ParquetFile>> file = InternalError("nothing was opened");
  open_(source, &file);
  return file;
}

}  // namespace lambdadnn
