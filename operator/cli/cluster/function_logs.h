// SPDX-License-Identifier: Apache-2.0
// Logs of a job's functions from the function host that runs them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/job.h"
#include "operator/backends/local/host_client.h"

namespace lambdadnn {

// What `now` has beyond `before`, both the last lines of the same growing text.
std::string NewText(const std::string& before, const std::string& now);

class FunctionLogs {
 public:
  // `host` outlives it. With `rank` only that worker's, whichever instance runs it.
  FunctionLogs(const HostClient& host, std::string job_uid, std::optional<int> rank, int lines);

  // Prints what each function wrote since the last call, each line after "[worker-0] " unless there
  // is one rank alone. Functions that have ended keep their logs for as long as the host lives.
  Status Read(const Job& job, const std::function<void(const std::string& text)>& print);

 private:
  // Name by uid, those that the job says to run first.
  Result<std::vector<std::pair<std::string, std::string>>> Functions(const Job& job) const;

  const HostClient& host_;
  const std::string job_uid_;
  const std::optional<int> rank_;
  const int lines_;
  std::map<std::string, std::string> seen_;   // the last lines read, by uid
  std::map<std::string, std::string> names_;  // as first seen: a group's name is all that an idle
                                              // one has
};

}  // namespace lambdadnn
