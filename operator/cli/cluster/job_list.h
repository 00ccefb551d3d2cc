// SPDX-License-Identifier: Apache-2.0
// All jobs of a namespace (or of the cluster), once or as they change.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/cli/cluster/job_table.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// Every page; an empty namespace = all.
Result<KubeList> ListJobs(KubeClient& kube, const std::string& namespace_name);

// A table that grows a line whenever something in one but its age changes.
class JobTableWatch {
 public:
  // Both outlive it.
  JobTableWatch(KubeClient& kube, Runtime& runtime, std::string namespace_name,
                JobTableOptions options);

  // Until an interrupt (OK), or until the API server refuses or is silent for two minutes.
  Status Run(const std::function<void(const std::string& text)>& print);

 private:
  Status Once(const std::function<bool()>& interrupted);
  void ShowDeletedMeanwhile(const std::vector<Json>& listed);
  void Show(const Json& object, bool deleted);

  KubeClient& kube_;
  Runtime& runtime_;
  const std::string namespace_name_;
  const JobTableOptions options_;
  std::function<void(const std::string& text)> print_;
  std::vector<size_t> widths_;
  bool header_shown_ = false;
  bool answered_ = false;
  struct Shown {
    Json object;
    TableRow without_age;
  };
  std::map<std::string, Shown> shown_;  // by uid
};

}  // namespace lambdadnn
