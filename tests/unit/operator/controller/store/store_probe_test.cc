// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store/store_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/files.h"
#include "common/objectstore/filesystem_object_store.h"
#include "common/objectstore/memory_object_store.h"
#include "tests/support/job_world.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

// A server that answers a condition in its own way.
class OtherStore final : public ObjectStore {
 public:
  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override {
    if (options.if_absent && !answer.ok() && puts >= answer_after) return answer;
    ++puts;
    return kept.Put(key, parts, {.if_absent = obeys && options.if_absent});
  }
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    return kept.Get(key, range);
  }
  Result<ObjectInfo> Head(std::string_view key) override { return kept.Head(key); }
  Status Delete(std::string_view key) override { return kept.Delete(key); }
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override {
    return kept.List(prefix, start_after, limit);
  }
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return "other:"; }

  MemoryObjectStore kept;
  bool obeys = true;
  Status answer;
  int answer_after = 0;  // so many puts
  int puts = 0;
};

TEST(StoreProbe, FindsAConditionThatIsObeyedAndLeavesNothing) {
  OtherStore store;
  EXPECT_THAT(ProbeStore(store, "a/probe").value(), ElementsAre(kConditionalPut));
  EXPECT_EQ(store.puts, 2);
  EXPECT_THAT(ListAll(store, "").value(), IsEmpty());
}

TEST(StoreProbe, AnObjectOfAnEarlierProbeIsTheAnswerAndGoes) {
  OtherStore store;
  ASSERT_TRUE(store.kept.ObjectStore::Put("a/probe", AsBytes("1")).ok());
  EXPECT_THAT(ProbeStore(store, "a/probe").value(), ElementsAre(kConditionalPut));
  EXPECT_THAT(ListAll(store, "").value(), IsEmpty());
}

TEST(StoreProbe, AConditionThatIsIgnoredOrUnknownIsNoCapability) {
  OtherStore store;
  store.obeys = false;
  EXPECT_THAT(ProbeStore(store, "a/probe").value(), IsEmpty());
  EXPECT_THAT(ListAll(store, "").value(), IsEmpty());
  store.answer = UnimplementedError("501");
  EXPECT_THAT(ProbeStore(store, "a/probe").value(), IsEmpty());
}

TEST(StoreProbe, AStoreThatCannotBeWrittenSaysSo) {
  OtherStore store;
  store.answer = PermissionDeniedError("read only");
  EXPECT_EQ(ProbeStore(store, "a/probe").status(), store.answer);
}

TEST(StoreProbe, OfAStoreThatFillsUpMeanwhileNothingIsLeft) {
  OtherStore store;
  store.answer_after = 1;
  store.answer = ResourceExhaustedError("full");
  EXPECT_EQ(ProbeStore(store, "a/probe").status(), store.answer);
  EXPECT_EQ(store.puts, 1);
  EXPECT_THAT(ListAll(store, "").value(), IsEmpty());
}

TEST(StoreProbe, AStoreOfFilesTellsWhatArrives) {
  FilesystemObjectStore store(MakeTempDir());
  EXPECT_THAT(ProbeStore(store, "a/probe").value(), ElementsAre(kConditionalPut, kArrivalHints));
  EXPECT_THAT(ListAll(store, "").value(), IsEmpty());
}

TEST(StoreProbe, JobsSayWhatItFoundAndKeepNothingOfIt) {
  JobWorld world;
  Json job = JobWorld::MinimalJob();
  world.Create(job);
  ASSERT_TRUE(world.RunUntil([&] { return world.Read().status.plan.has_value(); }, 30));
  EXPECT_THAT(world.Read().status.store_capabilities, Optional(ElementsAre(kConditionalPut)));
  for (const std::string& key : world.Keys()) EXPECT_EQ(key.find("probe"), std::string::npos);
  job["metadata"]["name"] = "second";
  world.Create(job);
  ASSERT_TRUE(world.RunUntil(
      [&] { return world.Read("second").status.store_capabilities.has_value(); }, 60));
  ASSERT_TRUE(world.RunUntilFinished(200));
  EXPECT_THAT(world.Read().status.store_capabilities, Optional(ElementsAre(kConditionalPut)));
}

}  // namespace
}  // namespace lambdadnn
