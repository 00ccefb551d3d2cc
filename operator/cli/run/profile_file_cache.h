// SPDX-License-Identifier: Apache-2.0
// Profiles of earlier runs, one JSON file each, under ${XDG_CACHE_HOME:-~/.cache}/lambdadnn.
#pragma once

#include <string>

#include "operator/controller/dependencies.h"

namespace lambdadnn {

class ProfileFileCache final : public ProfileCache {
 public:
  // An empty directory keeps nothing. With `read` false, profiles are measured again and kept.
  ProfileFileCache(std::string directory, bool read)
      : directory_(std::move(directory)), read_(read) {}
  std::optional<WorkloadProfile> Find(const std::string& signature) override;
  void Keep(const std::string& signature, const WorkloadProfile& profile) override;

  // From the environment; empty when there is no home.
  static std::string DefaultDirectory();

 private:
  std::string PathOf(const std::string& signature) const;
  const std::string directory_;
  const bool read_;
};

}  // namespace lambdadnn
