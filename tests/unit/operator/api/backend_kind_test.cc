// SPDX-License-Identifier: Apache-2.0
#include "operator/api/backend_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/job.h"
#include "operator/api/job_schema.h"

namespace lambdadnn {
namespace {

TEST(BackendKind, NamesAreThoseOfTheCrd) {
  const StructuralSchema& spec = JobSchema().properties.at("spec");
  std::vector<std::string> names;
  for (const BackendKind kind : BackendKinds()) names.push_back(BackendName(kind));
  EXPECT_THAT(names,
              ::testing::UnorderedElementsAreArray(spec.properties.at("backend").enumeration));
}

TEST(BackendKind, ANameLeadsBackToItsKind) {
  for (const BackendKind kind : BackendKinds()) {
    EXPECT_EQ(FindBackend(BackendName(kind)), kind) << BackendName(kind);
  }
  for (const char* other : {"", "local", "Knative ", "OpenFaas"}) {
    EXPECT_EQ(FindBackend(other), std::nullopt) << other;
  }
  EXPECT_EQ(JobSpec().backend, std::nullopt);
}

TEST(BackendKind, TellsWhatItsPlatformCan) {
  const BackendCapabilities& local = CapabilitiesOf(BackendKind::kLocal);
  EXPECT_TRUE(local.changes_cpu);
  EXPECT_FALSE(local.pods);
  EXPECT_FALSE(local.quotas);
  EXPECT_FALSE(local.cluster_limits);
  const BackendCapabilities& knative = CapabilitiesOf(BackendKind::kKnative);
  EXPECT_FALSE(knative.changes_cpu);
  EXPECT_TRUE(knative.pods);
  EXPECT_TRUE(knative.quotas);
  EXPECT_TRUE(knative.cluster_limits);
  EXPECT_TRUE(knative.isolates_jobs);
  EXPECT_FALSE(knative.buffers_answers);
  const BackendCapabilities& openfaas = CapabilitiesOf(BackendKind::kOpenFaas);
  EXPECT_TRUE(openfaas.pods);
  EXPECT_TRUE(openfaas.buffers_answers);
  EXPECT_TRUE(openfaas.cluster_limits);
  EXPECT_FALSE(openfaas.changes_cpu);
  EXPECT_FALSE(openfaas.isolates_jobs);
  EXPECT_FALSE(openfaas.tls);
}

}  // namespace
}  // namespace lambdadnn
