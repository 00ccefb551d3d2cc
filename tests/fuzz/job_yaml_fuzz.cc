// SPDX-License-Identifier: Apache-2.0
// Any bytes as a job file: a job or a sentence, never a crash. What loads must round-trip.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = lambdadnn::ParseJobFile(text, "job.yaml", "/jobs");
  if (!file.ok()) {
    LDNN_CHECK(!file.status().message().empty(), "an error needs a message");
    return 0;
  }
  const auto again = lambdadnn::DecodeJob(lambdadnn::EncodeJob(file->job));
  LDNN_CHECK(again.ok(), again.status().ToString());
  LDNN_CHECK(*again == file->job, "a job must survive encoding");
  return 0;
}
