// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint_index/checkpoint_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/objectstore/memory_object_store.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

CheckpointManifest Example(int64_t iteration = 40, int revision = 1, int64_t incarnation = 2) {
  CheckpointManifest manifest;
  manifest.job = 0x1122334455667788;
  manifest.iteration = iteration;
  manifest.plan_revision = revision;
  manifest.incarnation = incarnation;
  manifest.parameters = 20000;
  manifest.optimizer_vectors = 2;
  manifest.parts = {{0, {0, 16384}, 10, 0xabc}, {1, {16384, 20000}, 20, 0xdef}};
  manifest.stop_at = 42;
  manifest.epoch_loss_sum = 1.0 / 3;
  manifest.epoch_samples = 96;
  return manifest;
}

class CheckpointIndex : public testing::Test {
 protected:
  CheckpointReference Write(int64_t iteration, int revision, int64_t incarnation) {
    const CheckpointReference reference = {"p", iteration, revision, incarnation};
    const CheckpointManifest manifest = Example(iteration, revision, incarnation);
    for (const CheckpointPart& part : manifest.parts) {
      EXPECT_TRUE(
          store_
              .Put(CheckpointPartKey(ScopeOf(reference), iteration, part.shard), Bytes(part.bytes))
              .ok());
    }
    EXPECT_TRUE(store_.Put(ManifestKey(reference), AsBytes(EncodeManifest(manifest))).ok());
    return reference;
  }
  static std::string ManifestKey(const CheckpointReference& reference) {
    return CheckpointManifestKey(ScopeOf(reference), reference.iteration);
  }

  MemoryObjectStore store_;
};

TEST_F(CheckpointIndex, ManifestIsTheGoldenFileAndRoundTrips) {
  const std::string text = EncodeManifest(Example());
  EXPECT_EQ(text, ReadFile(SourceDir() + "/tests/data/formats/checkpoint_manifest.json").value());
  EXPECT_EQ(DecodeManifest(text).value(), Example());
}

TEST_F(CheckpointIndex, EveryCutAndEveryFlippedBitIsDetected) {
  const std::string text = EncodeManifest(Example());
  for (size_t size = 0; size + 1 < text.size(); ++size)  // the last byte is a newline
    EXPECT_FALSE(DecodeManifest(std::string_view(text).substr(0, size)).ok()) << size;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' || text[i] == '\n') continue;
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_EQ(DecodeManifest(flipped).status().code(), StatusCode::kDataLoss) << i;
  }
}

TEST_F(CheckpointIndex, PartsMustCoverAllParametersWithoutGaps) {
  CheckpointManifest gap = Example();
  gap.parts[1].elements.begin += 1;
  EXPECT_FALSE(DecodeManifest(EncodeManifest(gap)).ok());
  CheckpointManifest shorter = Example();
  shorter.parts.pop_back();
  EXPECT_FALSE(DecodeManifest(EncodeManifest(shorter)).ok());
}

TEST_F(CheckpointIndex, NoneIsNoneAndTheNewestIsFound) {
  EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), std::nullopt);
  Write(9, 1, 0);
  const CheckpointReference newest = Write(10, 1, 0);  // "10" < "9" as text
  Write(8, 1, 3);
  EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), newest);
  EXPECT_EQ(ListCheckpoints(store_, "p").value().size(), 3u);
  EXPECT_EQ(FindNewestCheckpoint(store_, "other").value(), std::nullopt);
}

TEST_F(CheckpointIndex, OfOneIterationTheLatestIncarnationWins) {
  Write(10, 1, 9);
  const CheckpointReference newest = Write(10, 1, 10);
  EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), newest);
}

TEST_F(CheckpointIndex, TheNewestValidOneWinsOverATornNewerOne) {
  const CheckpointReference valid = Write(10, 1, 0);
  const CheckpointReference torn = Write(20, 1, 0);
  const Bytes text = store_.Get(ManifestKey(torn)).value();
  ASSERT_TRUE(store_.Put(ManifestKey(torn), ByteView(text).first(text.size() / 2)).ok());
  EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), valid);
}

TEST_F(CheckpointIndex, AMissingOrShortPartMakesACheckpointTorn) {
  const CheckpointReference valid = Write(10, 1, 0);
  const CheckpointReference torn = Write(20, 1, 0);
  const std::string part = CheckpointPartKey(ScopeOf(torn), 20, 1);
  ASSERT_TRUE(store_.Put(part, Bytes(19)).ok());
  EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), valid);
  ASSERT_TRUE(store_.Delete(part).ok());
  EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), valid);
  EXPECT_EQ(ReadManifest(store_, torn).status().code(), StatusCode::kDataLoss);
}

TEST_F(CheckpointIndex, PartsWithoutAManifestAreNoCheckpoint) {
  const CheckpointReference reference = Write(10, 1, 0);
  ASSERT_TRUE(store_.Delete(ManifestKey(reference)).ok());
  EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), std::nullopt);
}

TEST_F(CheckpointIndex, TheFilterDecides) {
  const CheckpointReference old = Write(10, 1, 0);
  Write(20, 2, 0);
  const auto found = FindNewestCheckpoint(store_, "p", [](const CheckpointReference& reference) {
    return reference.plan_revision < 2;
  });
  EXPECT_EQ(found.value(), old);
}

TEST_F(CheckpointIndex, AManifestUnderAnotherKeyIsRefused) {
  const CheckpointReference reference = Write(10, 1, 0);
  CheckpointReference other = reference;
  other.iteration = 11;
  const Bytes text = store_.Get(ManifestKey(reference)).value();
  ASSERT_TRUE(store_.Put(ManifestKey(other), text).ok());
  EXPECT_EQ(ReadManifest(store_, other).status().code(), StatusCode::kDataLoss);
}

TEST_F(CheckpointIndex, StrayKeysAreIgnored) {
  for (const char* key :
       {"p/checkpoints/x/r1.i0/manifest.json", "p/checkpoints/10/manifest.json",
        "p/checkpoints/010/r1.i0/manifest.json", "p/checkpoints/10/r1/manifest.json"}) {
    ASSERT_TRUE(store_.Put(key, AsBytes("{}")).ok());
  }
  EXPECT_TRUE(ListCheckpoints(store_, "p").value().empty());
}

RC_GTEST_PROP(CheckpointManifestDecoder, AnyTextIsSafe, (const std::string& text)) {
  RC_ASSERT(!DecodeManifest(text).ok());
}

}  // namespace
}  // namespace lambdadnn
