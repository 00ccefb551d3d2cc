// SPDX-License-Identifier: Apache-2.0
// Logs of a job's functions: of running ones from their platform (a function host, or pods through
// the API server), of ended ones from the job's results in the store.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/objectstore/object_store.h"
#include "operator/api/job.h"
#include "operator/backends/local/host_client.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// What `now` has beyond `before`, both the last lines of the same growing text.
std::string NewText(const std::string& before, const std::string& now);

// Source of running functions and their logs.
class FunctionLogSource {
 public:
  virtual ~FunctionLogSource() = default;
  // Uid and group of each.
  virtual Result<std::vector<std::pair<std::string, std::string>>> Functions(const Job& job) = 0;
  // kNotFound: it has written nothing yet, or is gone.
  virtual Result<std::string> Tail(const std::string& uid, int lines) = 0;
};

// `host` outlives it.
std::unique_ptr<FunctionLogSource> LogsOfHost(const HostClient& host);
// Pods of the job in `place`, or without one in its namespace; `kube` outlives it. The user needs
// to list pods and get pods/log there.
std::unique_ptr<FunctionLogSource> LogsOfPods(KubeClient& kube, const std::string& place = "");

class FunctionLogs {
 public:
  // `source` outlives it. With `rank` only that worker's, whichever instance runs it.
  FunctionLogs(FunctionLogSource& source, std::optional<int> rank, int lines);

  // Prints what each function wrote since the last call, each line after "[worker-0] " unless there
  // is one rank alone. False = there was no function.
  Result<bool> Read(const Job& job, const std::function<void(const std::string& text)>& print);

 private:
  // Name by uid, those that the job says to run first.
  Result<std::vector<std::pair<std::string, std::string>>> Functions(const Job& job) const;

  FunctionLogSource& source_;
  const std::optional<int> rank_;
  const int lines_;
  std::map<std::string, std::string> seen_;   // the last lines read, by uid
  std::map<std::string, std::string> names_;  // as first seen: a group's name is all that an idle
                                              // one has
};

// Prints what the controller kept of a job that has ended: the last lines of each rank. kNotFound:
// it kept none.
Status PrintKeptLogs(ObjectStore& store, const Job& job, std::optional<int> rank, int lines,
                     const std::function<void(const std::string& text)>& print);

}  // namespace lambdadnn
