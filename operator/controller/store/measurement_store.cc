// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store/measurement_store.h"

#include "common/base/bytes.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// "<root>/<namespace>/measurements/", beside "<root>/<namespace>/<job id>".
std::string MeasurementsPrefix(const Job& job) {
  const std::string own = JobPrefix(job);
  return own.substr(0, own.rfind('/') + 1) + "measurements/";
}

}  // namespace

std::string KeptProfileName(const std::string& signature) {
  return "profiles/" + signature + ".json";
}

StoredMeasurements::StoredMeasurements(ObjectStore& store, const Job& job)
    : store_(store), prefix_(MeasurementsPrefix(job)) {}

Result<std::string> StoredMeasurements::Read(const std::string& name, uint64_t limit) {
  LDNN_ASSIGN_OR_RETURN(const Bytes bytes,
                        GetBounded(store_, prefix_ + name, limit, "a measurement"));
  return std::string(AsText(bytes));
}

Status StoredMeasurements::Write(const std::string& name, const std::string& text) {
  return store_.Put(prefix_ + name, AsBytes(text));
}

Status StoredMeasurements::Delete(const std::string& name) { return store_.Delete(prefix_ + name); }

std::string StoredMeasurements::Describe(const std::string& name) const {
  return store_.Describe() + "/" + prefix_ + name;
}

}  // namespace lambdadnn
