// SPDX-License-Identifier: Apache-2.0
// Profiles of earlier runs, one JSON file each, under ${XDG_CACHE_HOME:-~/.cache}/lambdadnn:
// {"form": kProfileForm, "profile": {…}}. A file that is torn, of another form or says what no
// profile can is as good as none: `tell` gets a sentence about it, and the job is profiled anew.
#pragma once

#include <functional>
#include <string>

#include "operator/controller/dependencies.h"

namespace lambdadnn {

class ProfileFileCache final : public ProfileCache {
 public:
  // An empty directory keeps nothing. With `read` false, profiles are measured again and kept.
  // `tell` is called from the controller's threads.
  ProfileFileCache(std::string directory, bool read, std::function<void(const std::string&)> tell)
      : directory_(std::move(directory)), read_(read), tell_(std::move(tell)) {}
  std::optional<WorkloadProfile> Find(const std::string& signature) override;
  void Keep(const std::string& signature, const WorkloadProfile& profile) override;

  // From the environment; empty when there is no home.
  static std::string DefaultDirectory();

 private:
  std::string PathOf(const std::string& signature) const;
  const std::string directory_;
  const bool read_;
  const std::function<void(const std::string&)> tell_;
};

}  // namespace lambdadnn
