// SPDX-License-Identifier: Apache-2.0
// Measurements of earlier runs, a JSON file each, under ${XDG_CACHE_HOME:-~/.cache}/lambdadnn.
// Thread-safe: files are replaced whole.
#pragma once

#include <string>

#include "operator/controller/store/measurement_store.h"

namespace lambdadnn {

class MeasurementFiles final : public MeasurementStore {
 public:
  // An empty directory keeps nothing. With `read` false, what is there is measured again and
  // replaced.
  MeasurementFiles(std::string directory, bool read)
      : directory_(std::move(directory)), read_(read) {}
  Result<std::string> Read(const std::string& name, uint64_t limit) override;
  Status Write(const std::string& name, const std::string& text) override;
  Status Delete(const std::string& name) override;
  std::string Describe(const std::string& name) const override;

  // From the environment; empty when there is no home.
  static std::string DefaultDirectory();

 private:
  const std::string directory_;
  const bool read_;
};

}  // namespace lambdadnn
