// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/support_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

struct SupportRow {
  std::optional<BackendKind> wanted;
  int gpu;
  BackendKind backend;
  OptionalQuantity gpus;
  const char* says;  // nullptr = the job can run
};

const SupportRow kSupportRows[] = {
    {{}, 0, BackendKind::kOpenFaas, {}, nullptr},
    {BackendKind::kKnative, 0, BackendKind::kKnative, 0, nullptr},
    {BackendKind::kKnative, 0, BackendKind::kLocal, {}, "use Local, or leave it away"},
    {{}, 1, BackendKind::kKnative, {}, nullptr},
    {{}, 1, BackendKind::kLocal, 1, nullptr},
    {{}, 1, BackendKind::kLocal, 0, "there is no GPU for functions here"},
    {{}, 1, BackendKind::kKnative, 0, "there is no GPU for functions here"},
    {{}, 1, BackendKind::kOpenFaas, 4, "backend OpenFaaS has no way to ask for a GPU"},
};

TEST(FindUnsupported, NamesTheFieldAndWhatToWriteInstead) {
  for (const SupportRow& row : kSupportRows) {
    JobSpec spec;
    spec.backend = row.wanted;
    spec.functions.gpu = row.gpu;
    Platform platform;
    platform.total_gpus = row.gpus;
    const auto unsupported = FindUnsupported(spec, row.backend, platform);
    SCOPED_TRACE(BackendName(row.backend) + " " + std::to_string(row.gpu));
    ASSERT_EQ(unsupported.has_value(), row.says != nullptr);
    if (row.says == nullptr) continue;
    EXPECT_THAT(unsupported->message, testing::HasSubstr(row.says));
  }
}

}  // namespace
}  // namespace lambdadnn
