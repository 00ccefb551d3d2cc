// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint_index/checkpoint_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <span>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/objectstore/memory_object_store.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/paths.h"
#include "tests/support/virtual_runtime.h"

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
  EXPECT_EQ(text, ReadFile(SourcePath("tests/data/formats/checkpoint_manifest.json")).value());
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

TEST_F(CheckpointIndex, AManifestThatIsTooDeepOrTooLongIsTorn) {
  constexpr size_t kMillion = 1'000'000;
  const CheckpointReference good = Write(1, 1, 1);
  const CheckpointReference bad = Write(2, 1, 1);
  const std::string begin = R"({"checksum":"x","a":)";
  const std::string deep = begin + std::string(kMillion, '[') + std::string(kMillion, ']') + "}";
  EXPECT_EQ(DecodeManifest(deep).status().message(),
            "checkpoint manifest: nested more than 128 levels deep at line 1, column 148");
  const std::string whole = EncodeManifest(Example(2, 1, 1));
  for (const std::string& text : {begin + std::string(kMillion, '['), deep,
                                  whole + std::string((size_t{1} << 20) + 1 - whole.size(), ' ')}) {
    ASSERT_TRUE(store_.Put(ManifestKey(bad), AsBytes(text)).ok());
    EXPECT_EQ(ReadManifest(store_, bad).status().code(), StatusCode::kDataLoss);
    EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), good);
  }
  ASSERT_TRUE(store_
                  .Put(ManifestKey(bad),
                       AsBytes(whole + std::string((size_t{1} << 20) - whole.size(), ' ')))
                  .ok());
  EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), bad);
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

// Checkpoints whose parts are whole objects: two shards of one weight vector and one state vector.
class IntactCheckpoint : public CheckpointIndex {
 protected:
  CheckpointReference WriteWhole(int64_t iteration) {
    const CheckpointReference reference = {"p", iteration, 1, 0};
    CheckpointManifest manifest = Example(iteration, 1, 0);
    manifest.optimizer_vectors = 1;
    for (CheckpointPart& part : manifest.parts) {
      const auto size = static_cast<size_t>(part.elements.size());
      const std::vector<float> values(2 * size, static_cast<float>(iteration));
      ObjectHeader header;
      header.job = manifest.job;
      header.plan_revision = 1;
      header.iteration = iteration;
      header.kind = ObjectKind::kOptimizer;
      header.shard = part.shard;
      header.elements = part.elements;
      header.payload_bytes = 2 * size * sizeof(float);
      header.payload_xxh3 = part.payload_xxh3 = Xxh3(AsBytes(std::span(values)));
      header.weights_xxh3 = Xxh3(AsBytes(std::span(values).first(size)));
      Bytes object(kObjectHeaderBytes);
      EncodeHeader(header, object);
      const ByteView payload = AsBytes(std::span(values));
      object.insert(object.end(), payload.begin(), payload.end());
      part.bytes = object.size();
      EXPECT_TRUE(store_.Put(PartKey(reference, part.shard), object).ok());
    }
    EXPECT_TRUE(store_.Put(ManifestKey(reference), AsBytes(EncodeManifest(manifest))).ok());
    return reference;
  }
  static std::string PartKey(const CheckpointReference& reference, int shard) {
    return CheckpointPartKey(ScopeOf(reference), reference.iteration, shard);
  }
  void Flip(const std::string& key, size_t at) {
    Bytes bytes = store_.Get(key).value();
    bytes.at(at) ^= std::byte{4};
    ASSERT_TRUE(store_.Put(key, bytes).ok());
  }
  Status Verify(const CheckpointReference& reference) {
    const auto manifest = ReadManifest(store_, reference);
    return manifest.ok() ? VerifyParts(store_, reference, *manifest) : manifest.status();
  }
};

TEST_F(IntactCheckpoint, IsTheNewestOfWhichEveryByteIsWhatWasWritten) {
  const CheckpointReference first = WriteWhole(10);
  const CheckpointReference second = WriteWhole(20);
  const CheckpointReference third = WriteWhole(30);
  std::vector<CheckpointReference> damaged;
  EXPECT_EQ(FindNewestIntactCheckpoint(store_, "p", nullptr, &damaged).value(), third);
  EXPECT_TRUE(damaged.empty());
  Flip(PartKey(third, 0), 200);
  EXPECT_EQ(FindNewestCheckpoint(store_, "p").value(), third) << "nobody has read it yet";
  EXPECT_EQ(FindNewestIntactCheckpoint(store_, "p", nullptr, &damaged).value(), second);
  EXPECT_EQ(damaged, std::vector<CheckpointReference>{third});
  Flip(PartKey(second, 1), kObjectHeaderBytes + 4 * (20000 - 16384) + 3);  // optimizer state
  EXPECT_EQ(FindNewestIntactCheckpoint(store_, "p").value(), first);
  Flip(PartKey(first, 1), 0);
  EXPECT_EQ(FindNewestIntactCheckpoint(store_, "p").value(), std::nullopt);
}

TEST_F(IntactCheckpoint, EveryKindOfDamageIsFoundAndNamesThePart) {
  const CheckpointReference reference = WriteWhole(10);
  const std::string key = PartKey(reference, 1);
  const Bytes whole = store_.Get(key).value();
  ASSERT_TRUE(Verify(reference).ok());
  for (size_t at = 0; at < kObjectHeaderBytes; ++at) {
    Flip(key, at);
    EXPECT_EQ(Verify(reference).code(), StatusCode::kDataLoss) << "header byte " << at;
    ASSERT_TRUE(store_.Put(key, whole).ok());
  }
  for (const size_t at : {kObjectHeaderBytes, whole.size() / 2, whole.size() - 1}) {
    Flip(key, at);
    EXPECT_EQ(Verify(reference).code(), StatusCode::kDataLoss) << at;
    EXPECT_THAT(Verify(reference).message(), testing::HasSubstr(key));
    ASSERT_TRUE(store_.Put(key, whole).ok());
  }
  // Another checkpoint's part under this key, whole in itself.
  const CheckpointReference other = WriteWhole(20);
  ASSERT_TRUE(store_.Put(key, store_.Get(PartKey(other, 1)).value()).ok());
  EXPECT_EQ(Verify(reference).code(), StatusCode::kDataLoss);
}

TEST_F(IntactCheckpoint, AReadThatArrivesTornOnceIsRepeated) {
  const CheckpointReference newest = WriteWhole(10);
  VirtualRuntime time;
  FaultyObjectStore torn(store_, time.runtime, StoreFaults{});
  std::set<std::string> read;
  torn.SetScript([&](StoreOperation operation, std::string_view key, bool) {
    const bool first = operation == StoreOperation::kGet && read.insert(std::string(key)).second;
    return first ? DataLossError("torn on the way") : OkStatus();
  });
  EXPECT_EQ(FindNewestIntactCheckpoint(torn, "p").value(), newest);
  EXPECT_EQ(read.size(), 3u) << "the manifest and both parts";
}

TEST_F(IntactCheckpoint, AStoreThatIsAwayJudgesNothing) {
  WriteWhole(10);
  VirtualRuntime time;
  FaultyObjectStore away(store_, time.runtime, StoreFaults{});
  away.SetScript([](StoreOperation operation, std::string_view key, bool) {
    const bool part = operation == StoreOperation::kGet && !key.ends_with(".json");
    return part ? UnavailableError("away") : OkStatus();
  });
  std::vector<CheckpointReference> damaged;
  EXPECT_EQ(FindNewestIntactCheckpoint(away, "p", nullptr, &damaged).status().code(),
            StatusCode::kUnavailable);
  EXPECT_TRUE(damaged.empty());
}

RC_GTEST_PROP(CheckpointManifestDecoder, AnyTextIsSafe, (const std::string& text)) {
  RC_ASSERT(!DecodeManifest(text).ok());
}

}  // namespace
}  // namespace lambdadnn
