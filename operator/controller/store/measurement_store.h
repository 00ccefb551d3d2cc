// SPDX-License-Identifier: Apache-2.0
// Where measurements lie that outlive a job, for later jobs of its namespace: small texts by name
// (docs/formats.md, "Measurements of a namespace"). Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/objectstore/object_store.h"
#include "operator/api/job.h"

namespace lambdadnn {

class MeasurementStore {
 public:
  virtual ~MeasurementStore() = default;
  // kNotFound = there is none; kResourceExhausted = it has more than `limit` bytes.
  virtual Result<std::string> Read(const std::string& name, uint64_t limit) = 0;
  // Whole or not at all; of two at once the last one holds.
  virtual Status Write(const std::string& name, const std::string& text) = 0;
  // OK as well where there is none.
  virtual Status Delete(const std::string& name) = 0;
  // Where it is, for people.
  virtual std::string Describe(const std::string& name) const = 0;
};

std::string KeptProfileName(const std::string& signature);  // "profiles/SIGNATURE.json"
inline constexpr const char* kStartRecordName = "starts.json";

// In the store of a job, beside the places of all jobs of its namespace: what may reach these may
// reach this. No job's id is "measurements" (job_id.h).
class StoredMeasurements final : public MeasurementStore {
 public:
  // `store` outlives this.
  StoredMeasurements(ObjectStore& store, const Job& job);
  Result<std::string> Read(const std::string& name, uint64_t limit) override;
  Status Write(const std::string& name, const std::string& text) override;
  Status Delete(const std::string& name) override;
  std::string Describe(const std::string& name) const override;

 private:
  ObjectStore& store_;
  const std::string prefix_;
};

}  // namespace lambdadnn
