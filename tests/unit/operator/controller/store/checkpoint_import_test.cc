// SPDX-License-Identifier: Apache-2.0
// Bringing another job's checkpoint, of a store that may be anybody's: in pieces, checked, bounded.
#include "operator/controller/store/checkpoint_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/bytes.h"
#include "common/objectstore/memory_object_store.h"
#include "common/protocol/object_keys.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

// What happened to a store that ImportCheckpoint opened, and what it is to do.
struct Watched {
  explicit Watched(ObjectStore& store) : inner(store) {}
  ObjectStore& inner;
  uint64_t longest = 0;  // range that was asked for; UINT64_MAX = a whole object
  int lists = 0;
  int damaged_reads = 0;  // of the last bytes of parts, from now on
  std::function<ObjectList(std::string_view start_after)> list;
};

class WatchedStore final : public ObjectStore {
 public:
  explicit WatchedStore(Watched& watched) : watched_(watched) {}
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override {
    return watched_.inner.Put(key, parts, options);
  }
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    watched_.longest = std::max(watched_.longest, range ? range->length : UINT64_MAX);
    Result<Bytes> bytes = watched_.inner.Get(key, range);
    const bool copied = range && range->length > (4 << 20) - 1;
    if (bytes.ok() && copied && watched_.damaged_reads > 0) {
      --watched_.damaged_reads;
      bytes->back() ^= std::byte{1};
    }
    return bytes;
  }
  Result<ObjectInfo> Head(std::string_view key) override { return watched_.inner.Head(key); }
  Status Delete(std::string_view key) override { return watched_.inner.Delete(key); }
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override {
    ++watched_.lists;
    if (watched_.list) return watched_.list(start_after);
    return watched_.inner.List(prefix, start_after, limit);
  }
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return "s3://theirs"; }

 private:
  Watched& watched_;
};

class CheckpointImportTest : public testing::Test {
 protected:
  static constexpr int64_t kElements = 5'000'000;  // 20 MB: three pieces

  Result<ImportedCheckpoint> Import() {
    const auto open = [this](const std::string&) -> Result<std::unique_ptr<ObjectStore>> {
      return std::unique_ptr<ObjectStore>(std::make_unique<WatchedStore>(watched_));
    };
    return ImportCheckpoint("s3://theirs/jobs", open, own_, "own");
  }
  CheckpointReference WriteCheckpoint() {
    const CheckpointReference reference = {"jobs/one", 10, 1, 0};
    std::vector<float> values(kElements);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const ByteView payload = AsBytes(std::span<const float>(values));
    ObjectHeader header;
    header.job = 7;
    header.plan_revision = 1;
    header.iteration = 10;
    header.kind = ObjectKind::kOptimizer;
    header.elements = {0, kElements};
    header.payload_bytes = payload.size();
    header.payload_xxh3 = header.weights_xxh3 = Xxh3(payload);
    Bytes head(kObjectHeaderBytes);
    EncodeHeader(header, head);
    const std::vector<ByteView> parts = {head, payload};
    EXPECT_TRUE(theirs_.Put(CheckpointPartKey(ScopeOf(reference), 10, 0), parts, {}).ok());
    CheckpointManifest manifest;
    manifest.job = 7;
    manifest.iteration = 10;
    manifest.parameters = kElements;
    manifest.parts = {{0, {0, kElements}, head.size() + payload.size(), header.payload_xxh3}};
    EXPECT_TRUE(
        theirs_
            .Put(CheckpointManifestKey(ScopeOf(reference), 10), AsBytes(EncodeManifest(manifest)))
            .ok());
    return reference;
  }

  MemoryObjectStore theirs_;
  MemoryObjectStore own_;
  Watched watched_{theirs_};
};

TEST_F(CheckpointImportTest, CopiesInPieces) {
  const CheckpointReference theirs = WriteCheckpoint();
  const Result<ImportedCheckpoint> imported = Import();
  ASSERT_TRUE(imported.ok()) << imported.status().ToString();
  EXPECT_LE(watched_.longest, kPieceBytes);
  const std::string key = CheckpointPartKey(ScopeOf(imported->reference), 10, 0);
  EXPECT_TRUE(own_.Get(key).value() ==
              theirs_.Get(CheckpointPartKey(ScopeOf(theirs), 10, 0)).value());
  EXPECT_TRUE(FindNewestIntactCheckpoint(own_, "own").value().has_value());
}

// What was intact when it was verified may arrive otherwise when it is copied.
TEST_F(CheckpointImportTest, WhatIsCopiedIsChecked) {
  WriteCheckpoint();
  constexpr int kVerifyingReads = 5;
  watched_.damaged_reads = kVerifyingReads + 2;
  ASSERT_TRUE(Import().ok()) << "it is read again";
  EXPECT_TRUE(FindNewestIntactCheckpoint(own_, "own").value().has_value());
}

TEST_F(CheckpointImportTest, LongManifestsAreNone) {
  WriteCheckpoint();
  ASSERT_TRUE(
      theirs_.Put(CheckpointManifestKey({"jobs/one", 1, 0}, 20), Bytes(kMaxManifestBytes + 1))
          .ok());
  const Result<ImportedCheckpoint> imported = Import();
  ASSERT_TRUE(imported.ok()) << imported.status().ToString();
  EXPECT_EQ(imported->reference.iteration, 10);
  EXPECT_LE(watched_.longest, kPieceBytes);
}

TEST_F(CheckpointImportTest, EndlessJobsAreNotAllRemembered) {
  watched_.list = [this](std::string_view) {
    ObjectList page;
    for (int i = 0; i < kMaxListLimit; ++i) {
      const std::string number = std::to_string(1'000'000 + watched_.lists * 1000 + i);
      page.objects.push_back({"jobs/" + number + "/checkpoints/1/r1.i0/manifest.json", 1});
    }
    page.next_start_after = page.objects.back().key;
    return page;
  };
  const Status status = Import().status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("holds more than 100 jobs; name one of them"));
  EXPECT_EQ(watched_.lists, 1);
}

TEST_F(CheckpointImportTest, EndlessObjectsOfOneJobEnd) {
  watched_.list = [this](std::string_view) {
    ObjectList page;
    for (int i = 0; i < kMaxListLimit; ++i) {
      const std::string number = std::to_string(10'000'000 + watched_.lists * 1000 + i);
      page.objects.push_back({"jobs/one/" + number, 1});
    }
    page.next_start_after = page.objects.back().key;
    return page;
  };
  const Status status = Import().status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("s3://theirs lists more than 1000000 objects"));
}

}  // namespace
}  // namespace lambdadnn
