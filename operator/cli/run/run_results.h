// SPDX-License-Identifier: Apache-2.0
// Writes a finished run's folder: the results from the store and the rendered report.
#pragma once

#include <string>
#include <vector>

#include "common/objectstore/object_store.h"
#include "operator/api/job.h"

namespace lambdadnn {

struct RunResults {
  Json report;                     // null when there is none
  std::vector<std::string> files;  // names in the folder
  std::vector<std::string> problems;
};

// Copies every object under the job's results into `directory`, and writes report.html.
RunResults CollectResults(ObjectStore& store, const Job& job, const std::string& directory);
// Lines for people: the predicted/actual table, and where report and model are.
std::vector<std::string> DescribeResults(const RunResults& results, const std::string& directory);

// What `lambdadnn profile` prints: YAML to be put into a job, or JSON.
std::string FormatProfile(const Json& profile, const std::string& format);

}  // namespace lambdadnn
