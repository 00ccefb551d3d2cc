// SPDX-License-Identifier: Apache-2.0
// Options of `lambdadnn run` and `lambdadnn profile`, and the folder and job that follow from them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/plan/workload.h"
#include "operator/api/job.h"

namespace lambdadnn {

struct RunOptions {
  std::string file;  // "-" = standard input; may be empty with `resume`
  std::string directory;
  std::string store;
  std::vector<std::string> overrides;
  std::string resume;  // a folder, or "latest"
  std::string output = "text";
  std::string platform_file;
  std::string prices_file;  // in place of the platform's prices
  bool profile_again = false;
  bool no_cgroups = false;
  bool profile_only = false;  // `lambdadnn profile`
};

// kInvalidArgument when options exclude each other: what --resume goes on with has its folder and
// its store.
Status CheckOptions(const RunOptions& options);

// runs/NAME-YYYYMMDD-HHMMSS.
std::string DefaultDirectory(const std::string& name, WallTime wall);
// The folder of --resume; "latest" = the newest under runs/ that holds a run. kInvalidArgument.
Result<std::string> ResumeDirectory(const std::string& resume);

// When the run in `directory` last wrote its state; while it runs that is every second or so.
std::optional<WallTime> LastWritten(const std::string& directory);

// Makes a job object runnable here: the Local backend, and the store of --store, of the job, or of
// the folder. --store takes the place of the job's URI, or of its bucket and that one's endpoint.
void PrepareJob(const RunOptions& options, const std::string& directory, Json* job);

}  // namespace lambdadnn
