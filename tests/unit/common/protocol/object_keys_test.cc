// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/object_keys.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

const ExchangeScope kScope = {"root/team/uid-1", 2, 7};

TEST(ObjectKeys, LayoutIsTheDocumentedOne) {
  EXPECT_EQ(GradientKey(kScope, 12, 0, 3, 5), "root/team/uid-1/x/r2.i7/12/g0/s3/5");
  EXPECT_EQ(WeightsKey(kScope, 12, 3), "root/team/uid-1/x/r2.i7/12/w/s3");
  EXPECT_EQ(WeightsOfKey(kScope, WeightsKey(kScope, 12, 3)), (WeightsShard{12, 3}));
  EXPECT_EQ(WeightsOfKey(kScope, NormsKey(kScope, 12, 3)), std::nullopt);
  EXPECT_EQ(WeightsOfKey(kScope, GradientKey(kScope, 12, 0, 3, 1)), std::nullopt);
  EXPECT_EQ(WeightsOfKey({kScope.prefix, 2, 8}, WeightsKey(kScope, 12, 3)), std::nullopt);
  EXPECT_EQ(WeightsOfKey(kScope, ExchangeScopePrefix(kScope) + "x/w/s0"), std::nullopt);
  EXPECT_EQ(NormsKey(kScope, 12, 3), "root/team/uid-1/x/r2.i7/12/n/s3");
  EXPECT_EQ(CheckpointPartKey(kScope, 12, 3), "root/team/uid-1/checkpoints/12/r2.i7/s3");
  EXPECT_EQ(CheckpointManifestKey(kScope, 12),
            "root/team/uid-1/checkpoints/12/r2.i7/manifest.json");
  EXPECT_EQ(RecordKey("p", "u.r1.i2.worker-3.f120.a1"), "p/records/u.r1.i2.worker-3.f120.a1.json");
  EXPECT_EQ(ResultKey("p", "model.safetensors"), "p/results/model.safetensors");
}

TEST(ObjectKeys, PrefixesEndInASlashSoThatNeighboursStay) {
  EXPECT_EQ(ExchangePrefix("p"), "p/x/");
  EXPECT_EQ(ExchangeScopePrefix({"p", 1, 2}), "p/x/r1.i2/");  // not r1.i20
  EXPECT_EQ(CheckpointsPrefix("p"), "p/checkpoints/");
  EXPECT_EQ(RecordsPrefix("p"), "p/records/");
}

}  // namespace
}  // namespace lambdadnn
