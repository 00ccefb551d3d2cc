// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/owned_object.h"

#include <gtest/gtest.h>

#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

class OwnedObject : public AtStandIn {
 protected:
  // A Secret owned by the job with this uid; "" = without an owner.
  void Make(const std::string& job_uid) {
    Do([&] {
      Json secret = {{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", {{"name", "s"}, {"namespace", "team"}}}};
      if (!job_uid.empty()) {
        secret["metadata"]["ownerReferences"] = OwnerReferences("digits", job_uid);
      }
      ASSERT_TRUE(server_.Create(SecretType(), secret).ok());
    });
  }
  void DeleteOf(const std::string& job_uid) {
    Do([&] { EXPECT_TRUE(DeleteOwned(server_, SecretType(), {"team", "s"}, job_uid).ok()); });
  }
  size_t Left() { return stand_in_.All(SecretType()).size(); }
  std::string JobUid() {
    std::string uid;
    Do([&] {
      const Json job = {{"apiVersion", "lambdadnn.io/v1alpha1"},
                        {"kind", "ServerlessTrainingJob"},
                        {"metadata", {{"name", "digits"}, {"namespace", "team"}}}};
      uid = UidOf(server_.Create(ServerlessTrainingJobType(), job).value());
    });
    return uid;
  }
};

TEST_F(OwnedObject, GoesWithItsJobAlone) {
  const std::string job = JobUid();
  DeleteOf(job);  // none is there
  Make(job);
  DeleteOf("another");
  EXPECT_EQ(Left(), 1u);
  DeleteOf(job);
  EXPECT_EQ(Left(), 0u);
}

TEST_F(OwnedObject, OfAUserStays) {
  const std::string job = JobUid();
  Make("");
  DeleteOf(job);
  EXPECT_EQ(Left(), 1u);
}

}  // namespace
}  // namespace lambdadnn
