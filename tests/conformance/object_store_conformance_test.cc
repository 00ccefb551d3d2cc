// SPDX-License-Identifier: Apache-2.0
// What common/objectstore/object_store.h promises, asked of each store in turn.
#include "tests/conformance/object_store_conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <numeric>

#include "common/base/executor.h"
#include "common/base/random.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

Bytes RandomBytes(size_t size, uint64_t seed) {
  SeededRandom random(seed);
  Bytes bytes(size);
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, size - i));
  }
  return bytes;
}

std::vector<std::string> Keys(const std::vector<ObjectInfo>& objects) {
  std::vector<std::string> keys;
  for (const ObjectInfo& object : objects) keys.push_back(object.key);
  return keys;
}

void PutText(ObjectStore& store, const std::string& key, std::string_view text = "x") {
  const Status status = store.Put(key, AsBytes(text));
  ASSERT_TRUE(status.ok()) << key << ": " << status.ToString();
}

std::string GetText(ObjectStore& store, const std::string& key) {
  const Result<Bytes> bytes = store.Get(key);
  return bytes.ok() ? std::string(AsText(*bytes)) : bytes.status().ToString();
}

Status PutIfAbsent(ObjectStore& store, const std::string& key, std::string_view text) {
  const ByteView part = AsBytes(text);
  return store.Put(key, std::span(&part, 1), {.if_absent = true});
}

TEST_P(ObjectStoreConformance, GivesBackWhatWasPut) {
  const auto store = GetParam().open();
  const std::vector<size_t> sizes = {0, 1, 2, 4095, 65536, 1000003};
  for (const size_t size : sizes) {
    const Bytes bytes = RandomBytes(size, size);
    const std::string key = "objects/" + std::to_string(size);
    ASSERT_TRUE(store->Put(key, bytes).ok());
    const Result<Bytes> got = store->Get(key);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE(*got == bytes) << size;
    const Result<ObjectInfo> info = store->Head(key);
    ASSERT_TRUE(info.ok()) << info.status().ToString();
    EXPECT_EQ(info->size, size);
    EXPECT_EQ(info->key, key);
  }
}

TEST_P(ObjectStoreConformance, JoinsTheParts) {
  const auto store = GetParam().open();
  const std::vector<ByteView> parts = {AsBytes("head "), ByteView(), AsBytes("and"),
                                       AsBytes(" body")};
  ASSERT_TRUE(store->Put("joined", parts, {}).ok());
  EXPECT_EQ(GetText(*store, "joined"), "head and body");
  ASSERT_TRUE(store->Put("nothing", std::span<const ByteView>(), {}).ok());
  EXPECT_EQ(GetText(*store, "nothing"), "");
}

TEST_P(ObjectStoreConformance, LargeObjectsAroundThePartSize) {
  const auto store = GetParam().open();
  std::vector<uint64_t> sizes = {12 << 20};
  if (const uint64_t part = GetParam().part_bytes; part > 0) {
    for (const uint64_t size : {part - 1, part, part + 1, 2 * part, 2 * part + 1}) {
      sizes.push_back(size);
    }
  }
  for (const uint64_t size : sizes) {
    const Bytes bytes = RandomBytes(size, size);
    const ByteView view(bytes);
    // Cut where no part of an upload ends.
    const std::vector<ByteView> parts = {view.first(size / 3), view.subspan(size / 3)};
    const Status put = store->Put("large", parts, {});
    ASSERT_TRUE(put.ok()) << size << ": " << put.ToString();
    const Result<Bytes> got = store->Get("large");
    ASSERT_TRUE(got.ok()) << size << ": " << got.status().ToString();
    EXPECT_TRUE(*got == bytes) << size;
  }
}

TEST_P(ObjectStoreConformance, StoresWhatComesInPieces) {
  const auto store = GetParam().open();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{kPieceBytes}, 2 * kPieceBytes + 3}) {
    const Bytes bytes = RandomBytes(size, size);
    const std::string key = "pieces/" + std::to_string(size);
    uint64_t next = 0;
    uint64_t longest = 0;
    const auto read = [&](ByteRange range) -> Result<Bytes> {
      EXPECT_EQ(range.offset, next);
      next += range.length;
      longest = std::max(longest, range.length);
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(range.offset);
      return Bytes(begin, begin + static_cast<std::ptrdiff_t>(range.length));
    };
    const Status put = store->PutPieces(key, size, read);
    ASSERT_TRUE(put.ok()) << put.ToString();
    EXPECT_EQ(next, size);
    EXPECT_LE(longest, kPieceBytes);
    const Result<Bytes> got = store->Get(key);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE(*got == bytes) << size;
  }
}

TEST_P(ObjectStoreConformance, NothingIsStoredOfPiecesThatCannotBeRead) {
  const auto store = GetParam().open();
  PutText(*store, "k", "old");
  for (const bool is_short : {false, true}) {
    const auto read = [&](ByteRange range) -> Result<Bytes> {
      if (range.offset == 0) return Bytes(range.length);
      if (is_short) return Bytes(range.length - 1);
      return PermissionDeniedError("not this one");
    };
    const Status put = store->PutPieces("k", 2 * kPieceBytes, read);
    EXPECT_EQ(put.code(), is_short ? StatusCode::kDataLoss : StatusCode::kPermissionDenied);
    EXPECT_EQ(GetText(*store, "k"), "old");
  }
  EXPECT_EQ(store->PutPieces("../k", 1, [](ByteRange) { return Bytes(1); }).code(),
            StatusCode::kInvalidArgument);
}

TEST_P(ObjectStoreConformance, ReadsRanges) {
  const auto store = GetParam().open();
  PutText(*store, "digits", "0123456789");
  const auto range = [&](uint64_t offset, uint64_t length) -> std::string {
    const Result<Bytes> got = store->Get("digits", ByteRange{offset, length});
    return got.ok() ? std::string(AsText(*got)) : std::string(StatusCodeName(got.status().code()));
  };
  EXPECT_EQ(range(0, 10), "0123456789");
  EXPECT_EQ(range(0, 1), "0");
  EXPECT_EQ(range(9, 1), "9");
  EXPECT_EQ(range(3, 4), "3456");
  EXPECT_EQ(range(8, 100), "89");
  EXPECT_EQ(range(2, UINT64_MAX), "23456789");
  EXPECT_EQ(range(3, 0), "");
  EXPECT_EQ(range(10, 1), "");
  EXPECT_EQ(range(10, 0), "");
  EXPECT_EQ(range(11, 1), "OUT_OF_RANGE");
  EXPECT_EQ(range(11, 0), "OUT_OF_RANGE");
  EXPECT_EQ(range(UINT64_MAX, UINT64_MAX), "OUT_OF_RANGE");
  PutText(*store, "digits", "");
  EXPECT_EQ(range(0, 5), "");
  EXPECT_EQ(range(1, 5), "OUT_OF_RANGE");
  const Result<Bytes> absent = store->Get("absent", ByteRange{0, 1});
  EXPECT_EQ(absent.status().code(), StatusCode::kNotFound);
}

TEST_P(ObjectStoreConformance, ReadsWholeObjectsUpToALength) {
  const auto store = GetParam().open();
  PutText(*store, "digits", "0123456789");
  EXPECT_EQ(AsText(GetBounded(*store, "digits", 10, "a text").value()), "0123456789");
  const Status longer = GetBounded(*store, "digits", 9, "a text").status();
  EXPECT_EQ(longer.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(longer.message(), HasSubstr("is longer than the 9 bytes that a text may have"));
  PutText(*store, "empty", "");
  EXPECT_TRUE(GetBounded(*store, "empty", 9, "a text").value().empty());
  EXPECT_EQ(GetBounded(*store, "absent", 9, "a text").status().code(), StatusCode::kNotFound);
}

TEST_P(ObjectStoreConformance, AbsentObjectsAreNotFoundAndNamed) {
  const auto store = GetParam().open();
  PutText(*store, "folder/file");
  for (const std::string key : {"absent", "folder", "folder/file/below", "folder/fil"}) {
    const Result<Bytes> got = store->Get(key);
    EXPECT_EQ(got.status().code(), StatusCode::kNotFound) << key << got.status().ToString();
    EXPECT_THAT(got.status().message(), HasSubstr(key));
    EXPECT_EQ(store->Head(key).status().code(), StatusCode::kNotFound) << key;
  }
}

TEST_P(ObjectStoreConformance, MissingBucketIsNamedWithWhatToDo) {
  if (!GetParam().open_missing_bucket) GTEST_SKIP() << "this store has no buckets";
  const auto store = GetParam().open_missing_bucket();
  for (const Status& status : {store->Put("key", AsBytes("x")), store->Get("key").status(),
                               store->Head("key").status(), store->List("", "", 10).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kNotFound) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("bucket 'no-such-bucket'"));
    EXPECT_THAT(status.message(), HasSubstr("create it"));
  }
}

TEST_P(ObjectStoreConformance, UnusualKeysAreKeptApart) {
  const auto store = GetParam().open();
  std::vector<std::string> keys = {
      "with space",  "with+plus", "with%percent",  "with%20escape",  "equals=a&b=c", "tilde~(1)!",
      "a,b;c:d@e$f", "quote'd",   "Größe/测试/😀", "name.with.dots", "_-.=*",        "with%2Fslash",
      "<&>\"xml",    "#frag?q=1", "trailing.",     "x%tmp/%f/%+/%s"};
  for (const std::string& key : keys) PutText(*store, key, "content of " + key);
  for (const std::string& key : keys) EXPECT_EQ(GetText(*store, key), "content of " + key);
  std::sort(keys.begin(), keys.end());
  const auto all = ListAll(*store, "");
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  EXPECT_THAT(Keys(*all), ElementsAreArray(keys));
  ASSERT_TRUE(store->DeleteMany(keys).ok());
  EXPECT_THAT(Keys(ListAll(*store, "").value()), IsEmpty());
}

TEST_P(ObjectStoreConformance, LongestKey) {
  const auto store = GetParam().open();
  // Segments of at most 200 bytes: servers that keep objects as files allow no longer ones. The
  // store under test may prepend a short prefix of the suite's own.
  std::string key;
  while (key.size() < 990) key += std::string(98, static_cast<char>('a' + key.size() % 26)) + "/";
  key += std::string(kMaxKeyBytes - 16 - key.size(), 'z');
  PutText(*store, key, "deep");
  EXPECT_EQ(GetText(*store, key), "deep");
  EXPECT_THAT(Keys(ListAll(*store, "").value()), ElementsAre(key));
  EXPECT_TRUE(store->Delete(key).ok());
  EXPECT_EQ(store->Get(key).status().code(), StatusCode::kNotFound);
}

TEST_P(ObjectStoreConformance, BadKeysAreRefused) {
  const auto store = GetParam().open();
  const std::vector<std::string> bad = {"",
                                        "/a",
                                        "a/",
                                        "a//b",
                                        ".",
                                        "..",
                                        "a/.",
                                        "../../x",
                                        "a/../b",
                                        "a\nb",
                                        "a\x7f",
                                        "\xff",
                                        "\xc0\xaf",
                                        "\xed\xa0\x80",
                                        std::string("a\0b", 3),
                                        std::string(kMaxKeyBytes + 1, 'k')};
  for (const std::string& key : bad) {
    EXPECT_EQ(store->Put(key, AsBytes("x")).code(), StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(store->Get(key).status().code(), StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(store->Head(key).status().code(), StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(store->Delete(key).code(), StatusCode::kInvalidArgument) << key;
    const std::vector<std::string> keys = {"good", key};
    EXPECT_EQ(store->DeleteMany(keys).code(), StatusCode::kInvalidArgument) << key;
  }
  EXPECT_THAT(Keys(ListAll(*store, "").value()), IsEmpty());
}

TEST_P(ObjectStoreConformance, ListsInOrderByPage) {
  const auto store = GetParam().open();
  const std::vector<std::string> keys = {"a",  "a-b",   "a/1",   "a/10", "a/2",
                                         "a0", "b/c/d", "b/c/e", "b/d",  "c"};
  for (const std::string& key : keys) {
    if (key == "a" && !GetParam().key_below_key) continue;
    PutText(*store, key, key);
  }
  if (!GetParam().key_below_key) PutText(*store, "a!");  // in its place
  const auto all = ListAll(*store, "");
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  ASSERT_EQ(all->size(), keys.size());
  EXPECT_TRUE(std::is_sorted(all->begin(), all->end(),
                             [](const auto& x, const auto& y) { return x.key < y.key; }));
  for (int limit = 1; limit <= 11; ++limit) {
    std::vector<ObjectInfo> paged;
    std::string start_after;
    int pages = 0;
    do {
      const auto page = store->List("", start_after, limit);
      ASSERT_TRUE(page.ok()) << page.status().ToString();
      ASSERT_LE(page->objects.size(), static_cast<size_t>(limit));
      paged.insert(paged.end(), page->objects.begin(), page->objects.end());
      start_after = page->next_start_after;
      ASSERT_LE(++pages, 12);
    } while (!start_after.empty());
    EXPECT_EQ(Keys(paged), Keys(*all)) << limit;
  }
}

TEST_P(ObjectStoreConformance, ListsByPrefixAndStart) {
  const auto store = GetParam().open();
  for (const std::string key : {"x/1", "x/2", "x/3", "x2", "xy/1", "y"}) PutText(*store, key);
  const auto list = [&](std::string_view prefix, std::string_view start_after) {
    const auto page = store->List(prefix, start_after, 100);
    EXPECT_TRUE(page.ok()) << page.status().ToString();
    return page.ok() ? Keys(page->objects) : std::vector<std::string>{};
  };
  EXPECT_THAT(list("x/", ""), ElementsAre("x/1", "x/2", "x/3"));
  EXPECT_THAT(list("x", ""), ElementsAre("x/1", "x/2", "x/3", "x2", "xy/1"));
  EXPECT_THAT(list("x/2", ""), ElementsAre("x/2"));
  EXPECT_THAT(list("x/", "x/1"), ElementsAre("x/2", "x/3"));
  EXPECT_THAT(list("x/", "x/10"), ElementsAre("x/2", "x/3"));
  EXPECT_THAT(list("x/", "x/3"), IsEmpty());
  EXPECT_THAT(list("x/", "w"), ElementsAre("x/1", "x/2", "x/3"));
  EXPECT_THAT(list("x/", "y"), IsEmpty());
  EXPECT_THAT(list("", "x2"), ElementsAre("xy/1", "y"));
  EXPECT_THAT(list("absent/", ""), IsEmpty());
  EXPECT_THAT(list("y/", ""), IsEmpty());
  EXPECT_EQ(store->List("", "", 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(store->List("", "", 1001).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(ObjectStoreConformance, AKeyMayBeThePrefixOfAnother) {
  if (!GetParam().key_below_key) GTEST_SKIP() << "this server does not keep both";
  const auto store = GetParam().open();
  PutText(*store, "a", "one");
  PutText(*store, "a/b", "two");  // a file makes way for a folder
  PutText(*store, "a/b/c", "three");
  PutText(*store, "d/e", "four");
  PutText(*store, "d", "five");  // a folder is there first
  const auto all = [&] { return Keys(ListAll(*store, "").value()); };
  EXPECT_THAT(all(), ElementsAre("a", "a/b", "a/b/c", "d", "d/e"));
  EXPECT_EQ(GetText(*store, "a"), "one");
  EXPECT_EQ(GetText(*store, "a/b"), "two");
  EXPECT_EQ(GetText(*store, "d"), "five");
  EXPECT_EQ(PutIfAbsent(*store, "d", "again").code(), StatusCode::kAlreadyExists);
  PutText(*store, "d", "six");
  ASSERT_TRUE(store->Delete("d/e").ok());
  EXPECT_EQ(GetText(*store, "d"), "six");
  EXPECT_EQ(PutIfAbsent(*store, "d", "again").code(), StatusCode::kAlreadyExists);
  PutText(*store, "d", "seven");
  EXPECT_EQ(GetText(*store, "d"), "seven");
  ASSERT_TRUE(store->Delete("a").ok());
  ASSERT_TRUE(store->Delete("d").ok());
  EXPECT_THAT(all(), ElementsAre("a/b", "a/b/c"));
}

TEST_P(ObjectStoreConformance, DeletesAndDeletesAgain) {
  const auto store = GetParam().open();
  PutText(*store, "deep/er/file");
  PutText(*store, "deep/other");
  EXPECT_TRUE(store->Delete("deep/er/file").ok());
  EXPECT_EQ(store->Head("deep/er/file").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(store->Delete("deep/er/file").ok());
  EXPECT_TRUE(store->Delete("never/was").ok());
  EXPECT_TRUE(store->Delete("deep/other/below").ok());
  EXPECT_TRUE(store->Delete("deep").ok());
  EXPECT_THAT(Keys(ListAll(*store, "").value()), ElementsAre("deep/other"));
}

TEST_P(ObjectStoreConformance, DeletesNoneOneAndMany) {
  const auto store = GetParam().open();
  EXPECT_TRUE(store->DeleteMany({}).ok());
  PutText(*store, "keep");
  PutText(*store, "one & only");
  const std::vector<std::string> one = {"one & only"};
  EXPECT_TRUE(store->DeleteMany(one).ok());
  std::vector<std::string> many;
  for (int i = 0; i < 1001; ++i) many.push_back("many/" + std::to_string(i));
  // Some of them exist; absent ones are no failure.
  for (const size_t i : {0U, 1U, 500U, 999U, 1000U}) PutText(*store, many[i]);
  const Status deleted = store->DeleteMany(many);
  EXPECT_TRUE(deleted.ok()) << deleted.ToString();
  EXPECT_THAT(Keys(ListAll(*store, "").value()), ElementsAre("keep"));
}

TEST_P(ObjectStoreConformance, DeletesByPrefix) {
  const auto store = GetParam().open();
  for (int i = 0; i < 7; ++i) PutText(*store, "job/x/" + std::to_string(i));
  PutText(*store, "job2/x");
  EXPECT_EQ(DeletePrefix(*store, "job/").value(), 7);
  EXPECT_EQ(DeletePrefix(*store, "job/").value(), 0);
  EXPECT_THAT(Keys(ListAll(*store, "").value()), ElementsAre("job2/x"));
}

TEST_P(ObjectStoreConformance, CreateOnlyKeepsTheFirst) {
  const auto store = GetParam().open();
  ASSERT_TRUE(store->SupportsPutIfAbsent());
  EXPECT_TRUE(PutIfAbsent(*store, "lock", "first").ok());
  const Status second = PutIfAbsent(*store, "lock", "second");
  EXPECT_EQ(second.code(), StatusCode::kAlreadyExists) << second.ToString();
  EXPECT_EQ(GetText(*store, "lock"), "first");
  PutText(*store, "lock", "overwritten");
  ASSERT_TRUE(store->Delete("lock").ok());
  EXPECT_TRUE(PutIfAbsent(*store, "lock", "third").ok());
  EXPECT_EQ(GetText(*store, "lock"), "third");
}

TEST_P(ObjectStoreConformance, CreateOnlyHoldsForObjectsInParts) {
  const auto store = GetParam().open();
  if (GetParam().part_bytes == 0) GTEST_SKIP() << "this store uploads in one part";
  const std::string large(GetParam().part_bytes + 1, 'l');
  EXPECT_TRUE(PutIfAbsent(*store, "large", large).ok());
  EXPECT_EQ(PutIfAbsent(*store, "large", large + "2").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(store->Head("large")->size, large.size());
}

TEST_P(ObjectStoreConformance, OneOfEightCreatorsWins) {
  const auto store = GetParam().open();
  ThreadExecutor executor;
  for (int race = 0; race < 10; ++race) {
    const std::string key = "race/" + std::to_string(race);
    // All begin at once: one after the other, the last seven would find the object in any store.
    std::latch all_are_there(8);
    std::atomic<int> winners{0};
    std::atomic<int> winner{-1};
    std::vector<std::unique_ptr<Task>> writers;
    for (int i = 0; i < 8; ++i) {
      writers.push_back(executor.Spawn("writer", [&, i] {
        all_are_there.arrive_and_wait();
        Status status = PutIfAbsent(*store, key, std::to_string(i));
        // "Conflicting operation, try again" is an honest answer of S3.
        while (status.code() == StatusCode::kUnavailable) {
          status = PutIfAbsent(*store, key, std::to_string(i));
        }
        if (status.ok()) {
          ++winners;
          winner = i;
        } else {
          EXPECT_EQ(status.code(), StatusCode::kAlreadyExists) << status.ToString();
        }
      }));
    }
    writers.clear();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(GetText(*store, key), std::to_string(winner));
  }
}

TEST_P(ObjectStoreConformance, ReadersSeeWholeObjectsWhileTheyAreOverwritten) {
  const auto store = GetParam().open();
  constexpr size_t kSize = 300'000;
  const auto content = [](int round) {
    return std::string(kSize + static_cast<size_t>(round), static_cast<char>('a' + round % 26));
  };
  PutText(*store, "shared", content(0));
  ThreadExecutor executor;
  std::atomic<bool> done{false};
  std::vector<std::unique_ptr<Task>> readers;
  // Reads that found another content than the one before: while it was written over and over.
  std::atomic<int> changes{0};
  for (int i = 0; i < 2; ++i) {
    readers.push_back(executor.Spawn("reader", [&] {
      int last = 0;
      while (!done) {
        const Result<Bytes> got = store->Get("shared");
        ASSERT_TRUE(got.ok()) << got.status().ToString();
        const int round = static_cast<int>(got->size() - kSize);
        ASSERT_TRUE(AsText(*got) == content(round)) << "torn at size " << got->size();
        if (round != last) ++changes;
        last = round;
      }
    }));
  }
  constexpr int kChanges = 10;
  for (int round = 1; round <= 15 || (changes < kChanges && round <= 2000); ++round) {
    PutText(*store, "shared", content(round));
    EXPECT_TRUE(GetText(*store, "shared") == content(round)) << "a read after the write";
  }
  done = true;
  readers.clear();
  EXPECT_GE(changes, kChanges);
}

TEST_P(ObjectStoreConformance, ManyCallersAtOnce) {
  const auto store = GetParam().open();
  ThreadExecutor executor;
  std::vector<std::unique_ptr<Task>> callers;
  for (int caller = 0; caller < 6; ++caller) {
    callers.push_back(executor.Spawn("caller", [&, caller] {
      for (int i = 0; i < 10; ++i) {
        // They share prefixes, which come and go.
        const std::string key = "shared/" + std::to_string(i) + "/" + std::to_string(caller);
        const std::string text = key + "!";
        Status put = store->Put(key, AsBytes(text));
        for (int lost = 0;
             lost < GetParam().most_races_lost && put.code() == StatusCode::kUnavailable; ++lost) {
          put = store->Put(key, AsBytes(text));
        }
        ASSERT_TRUE(put.ok()) << put.ToString();
        ASSERT_EQ(GetText(*store, key), text);
        const Status deleted = store->Delete(key);
        ASSERT_TRUE(deleted.ok()) << deleted.ToString();
      }
    }));
  }
  callers.clear();
  EXPECT_THAT(Keys(ListAll(*store, "").value()), IsEmpty());
}

}  // namespace
}  // namespace lambdadnn
