// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/run_options.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "operator/api/backend_kind.h"

namespace lambdadnn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunsFolder = "runs";
constexpr const char* kStateFile = "state.json";

}  // namespace

Status CheckOptions(const RunOptions& options) {
  if (options.resume.empty()) return OkStatus();
  if (!options.store.empty()) {
    return InvalidArgumentError(
        "--store cannot be given with --resume: the run resumes in the store that its checkpoints "
        "are in; leave --store away");
  }
  if (!options.directory.empty()) {
    return InvalidArgumentError(
        "--out cannot be given with --resume: the run resumes in its own "
        "folder; leave --out away");
  }
  return OkStatus();
}

std::string DefaultDirectory(const std::string& name, WallTime wall) {
  std::string stamp;
  for (const char c : FormatRfc3339(wall)) {
    if (c >= '0' && c <= '9') stamp += c;
    if (c == 'T') stamp += '-';
  }
  const std::string folder = std::string(kRunsFolder) + "/" + name + "-" + stamp;
  // Another run of this second has it.
  std::string free = folder;
  std::error_code ignored;
  for (int i = 2; std::filesystem::exists(free, ignored); ++i) {
    free = folder + "-" + std::to_string(i);
  }
  return free;
}

Result<std::string> ResumeDirectory(const std::string& resume) {
  std::error_code error;
  if (resume != "latest") {
    if (fs::exists(fs::path(resume) / kStateFile, error)) return resume;
    return InvalidArgumentError("--resume " + resume +
                                ": there is no run in this folder (no state.json); name the "
                                "folder that the run printed");
  }
  std::string newest;
  fs::file_time_type newest_time{};
  for (const auto& entry : fs::directory_iterator(kRunsFolder, error)) {
    const fs::path state = entry.path() / kStateFile;
    const fs::file_time_type time = fs::last_write_time(state, error);
    if (error) continue;
    if (newest.empty() || time > newest_time) {
      newest = entry.path().string();
      newest_time = time;
    }
  }
  if (newest.empty()) {
    return InvalidArgumentError("--resume latest: there is no run under runs/; name its folder");
  }
  return newest;
}

std::optional<WallTime> LastWritten(const std::string& directory) {
  struct stat info{};
  if (::stat((fs::path(directory) / kStateFile).c_str(), &info) != 0) return std::nullopt;
  return WallTime(std::chrono::seconds(info.st_mtim.tv_sec) +
                  std::chrono::nanoseconds(info.st_mtim.tv_nsec));
}

void PrepareJob(const RunOptions& options, const std::string& directory, Json* job) {
  Json& spec = (*job)["spec"];
  spec["backend"] = BackendName(BackendKind::kLocal);
  Json& store = spec["objectStore"];
  if (!options.store.empty()) {
    if (!store.is_object()) store = Json::object();
    store["uri"] = options.store;
    store.erase("bucket");
    store.erase("endpoint");
  } else if (!store.is_object() || (!store.contains("uri") && !store.contains("bucket"))) {
    store["uri"] = "file://" + fs::absolute(directory).lexically_normal().string() + "/store";
  }
  // `run` manages the job itself, whatever other controller it names.
  spec.erase("managedBy");
  Json& metadata = (*job)["metadata"];
  if (!metadata.contains("namespace")) metadata["namespace"] = "default";
  metadata.erase("resourceVersion");
  metadata.erase("uid");
  job->erase("status");
}

}  // namespace lambdadnn
