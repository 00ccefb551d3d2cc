// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/measurement_files.h"

#include <filesystem>
#include <system_error>

#include "common/base/files.h"

namespace lambdadnn {

std::string MeasurementFiles::DefaultDirectory() {
  const std::string cache = GetEnvironment("XDG_CACHE_HOME").value_or("");
  if (!cache.empty()) return cache + "/lambdadnn";
  const std::string home = GetEnvironment("HOME").value_or("");
  return home.empty() ? "" : home + "/.cache/lambdadnn";
}

std::string MeasurementFiles::Describe(const std::string& name) const {
  return directory_ + "/" + name;
}

Result<std::string> MeasurementFiles::Read(const std::string& name, uint64_t limit) {
  if (!read_ || directory_.empty()) return NotFoundError("no measurements are read");
  const std::string path = Describe(name);
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > limit) {
    return ResourceExhaustedError("it has " + std::to_string(size) + " bytes, more than the " +
                                  std::to_string(limit) + " that it may have");
  }
  return ReadFile(path);
}

Status MeasurementFiles::Write(const std::string& name, const std::string& text) {
  return directory_.empty() ? OkStatus() : WriteFileAtomically(Describe(name), text);
}

Status MeasurementFiles::Delete(const std::string& name) {
  if (directory_.empty()) return OkStatus();
  std::error_code error;
  std::filesystem::remove(Describe(name), error);
  if (!error) return OkStatus();
  return PermissionDeniedError("cannot delete " + Describe(name) + ": " + error.message());
}

}  // namespace lambdadnn
