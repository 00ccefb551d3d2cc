// SPDX-License-Identifier: Apache-2.0
// Walks through listings: of stores that keep to their promises, and of those that do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

// Lists what it is told, whatever was asked for.
class LyingStore final : public ObjectStore {
 public:
  using Answer = std::function<ObjectList(std::string_view start_after)>;
  explicit LyingStore(Answer answer) : answer_(std::move(answer)) {}
  Status Put(std::string_view, std::span<const ByteView>, const PutOptions&) override {
    return OkStatus();
  }
  Result<Bytes> Get(std::string_view, std::optional<ByteRange>) override { return Bytes(); }
  Result<ObjectInfo> Head(std::string_view) override { return ObjectInfo(); }
  Status Delete(std::string_view) override { return OkStatus(); }
  Result<ObjectList> List(std::string_view, std::string_view start_after, int) override {
    ++lists;
    return answer_(start_after);
  }
  bool SupportsPutIfAbsent() const override { return false; }
  std::string Describe() const override { return "lying:"; }
  int lists = 0;

 private:
  const Answer answer_;
};

ObjectList PageOf(const std::vector<std::string>& keys, const std::string& next = "") {
  ObjectList page;
  for (const std::string& key : keys) page.objects.push_back({key, 1});
  page.next_start_after = next;
  return page;
}

// A thousand new keys behind the last one, for ever.
ObjectList EndlessPage(std::string_view start_after) {
  const int first = start_after.empty() ? 0 : std::stoi(std::string(start_after.substr(2))) + 1;
  std::vector<std::string> keys;
  for (int i = first; i < first + kMaxListLimit; ++i) {
    const std::string number = std::to_string(i);
    keys.push_back("p/" + std::string(9 - number.size(), '0') + number);
  }
  return PageOf(keys, keys.back());
}

TEST(ObjectList, AWalkShowsEachObjectOnce) {
  MemoryObjectStore store;
  for (int i = 0; i < 2500; ++i) ASSERT_TRUE(store.Put("p/" + std::to_string(i), Bytes(1)).ok());
  ASSERT_TRUE(store.Put("q", Bytes(1)).ok());
  std::set<std::string> seen;
  const auto visit = [&](const ObjectInfo& object) {
    EXPECT_TRUE(seen.insert(object.key).second) << object.key;
    return OkStatus();
  };
  ASSERT_TRUE(ForEachObject(store, "p/", visit).ok());
  EXPECT_EQ(seen.size(), 2500U);
  seen.clear();
  EXPECT_EQ(ForEachObject(store, "p/", visit, 2499).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ListAll(store, "p/", 2500)->size(), 2500U);
  EXPECT_EQ(ListAll(store, "p/", 2499).status().code(), StatusCode::kResourceExhausted);
}

TEST(ObjectList, AVisitorEndsTheWalk) {
  LyingStore store(EndlessPage);
  int visits = 0;
  const Status status = ForEachObject(store, "p/", [&](const ObjectInfo&) {
    return ++visits < 1500 ? OkStatus() : CancelledError("enough");
  });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(visits, 1500);
  EXPECT_EQ(store.lists, 2);
}

TEST(ObjectList, EndlessListingsEnd) {
  LyingStore store(EndlessPage);
  const Status walked =
      ForEachObject(store, "p/", [](const ObjectInfo&) { return OkStatus(); }, 5000);
  EXPECT_EQ(walked.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(walked.message(), HasSubstr("lying: lists more than 5000 objects under 'p/'"));
  EXPECT_EQ(store.lists, 6);
  store.lists = 0;
  const Status deleted = DeletePrefix(store, "p/").status();
  EXPECT_EQ(deleted.code(), StatusCode::kUnavailable) << "the next call goes on";
  EXPECT_EQ(store.lists, kMaxWalkedObjects / kMaxListLimit);
}

TEST(ObjectList, PagesWithoutProgressAreRefused) {
  const std::vector<ObjectList> pages = {
      PageOf({"p/b", "p/a"}),         // descending
      PageOf({"p/a", "p/a"}),         // twice
      PageOf({"q/a"}),                // of another folder
      PageOf({"p/a", "p/b"}, "p/a"),  // goes on before its end
      PageOf({"p/a"}, "p/a"),         // the same page again and again
  };
  for (const ObjectList& page : pages) {
    LyingStore store([&](std::string_view) { return page; });
    const Status walked = ForEachObject(store, "p/", [](const ObjectInfo&) { return OkStatus(); });
    EXPECT_EQ(walked.code(), StatusCode::kUnavailable);
    EXPECT_THAT(walked.message(), HasSubstr("lying:"));
    EXPECT_LE(store.lists, 2);
    EXPECT_EQ(DeletePrefix(store, "p/").status().code(), StatusCode::kUnavailable);
  }
  LyingStore empty([](std::string_view) { return PageOf({}, "p/z"); });
  EXPECT_EQ(ListAll(empty, "p/").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(empty.lists, 2);
}

TEST(ObjectList, DeletingKeepsWhatItIsTold) {
  MemoryObjectStore store;
  for (const char* key : {"p/a", "p/b", "p/c", "q"}) ASSERT_TRUE(store.Put(key, Bytes(1)).ok());
  const auto keep = [](const ObjectInfo& object) { return object.key == "p/b"; };
  EXPECT_EQ(DeletePrefix(store, "p/", keep).value(), 2);
  const auto left = ListAll(store, "").value();
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].key, "p/b");
}

TEST(ObjectList, BoundedGetsTakeAllOrNothing) {
  MemoryObjectStore store;
  ASSERT_TRUE(store.Put("k", AsBytes("12345")).ok());
  EXPECT_EQ(AsText(GetBounded(store, "k", 5, "a test").value()), "12345");
  const Status longer = GetBounded(store, "k", 4, "a test").status();
  EXPECT_EQ(longer.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(longer.message(), HasSubstr("object 'k' of memory: is longer than the 4 bytes that "
                                          "a test may have"));
  EXPECT_EQ(GetBounded(store, "none", 4, "a test").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace lambdadnn
