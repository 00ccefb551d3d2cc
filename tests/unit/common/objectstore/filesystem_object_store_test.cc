// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/filesystem_object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <utime.h>

#include <csignal>
#include <filesystem>

#include "common/base/files.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(FilesystemObjectStore, FilesThatPeopleHaveAreObjects) {
  const std::string root = MakeTempDir();
  ASSERT_TRUE(WriteFileAtomically(root + "/mnist/train-images", "pixels").ok());
  FilesystemObjectStore store(root);
  EXPECT_EQ(AsText(store.Get("mnist/train-images").value()), "pixels");
  ASSERT_TRUE(store.Put("results/model.pt", AsBytes("weights")).ok());
  EXPECT_EQ(ReadFile(root + "/results/model.pt").value(), "weights");
}

TEST(FilesystemObjectStore, LeavesNoTemporaryFilesAndNoEmptyFolders) {
  const std::string root = MakeTempDir();
  FilesystemObjectStore store(root);
  ASSERT_TRUE(store.Put("a/b/c", AsBytes("x")).ok());
  const ByteView part = AsBytes("y");
  ASSERT_EQ(store.Put("a/b/c", std::span(&part, 1), {.if_absent = true}).code(),
            StatusCode::kAlreadyExists);
  EXPECT_TRUE(fs::is_empty(root + "/%tmp"));
  ASSERT_TRUE(store.Delete("a/b/c").ok());
  EXPECT_FALSE(fs::exists(root + "/a"));
  EXPECT_TRUE(fs::exists(root));
}

TEST(FilesystemObjectStore, RemovesWhatKilledWritersLeftLongAgo) {
  const std::string root = MakeTempDir();
  ASSERT_TRUE(WriteFileAtomically(root + "/%tmp/old", "half").ok());
  ASSERT_TRUE(WriteFileAtomically(root + "/%tmp/recent", "half").ok());
  const utimbuf long_ago{.actime = 1000, .modtime = 1000};
  ASSERT_EQ(utime((root + "/%tmp/old").c_str(), &long_ago), 0);
  FilesystemObjectStore store(root);
  ASSERT_TRUE(store.Put("key", AsBytes("x")).ok());
  EXPECT_FALSE(fs::exists(root + "/%tmp/old"));
  EXPECT_TRUE(fs::exists(root + "/%tmp/recent"));
  EXPECT_EQ(ListAll(store, "")->size(), 1U);
}

TEST(FilesystemObjectStore, AWatchSaysWhenAnotherProcessStoresItsKey) {
  const std::string root = MakeTempDir();
  FilesystemObjectStore writer(root);
  FilesystemObjectStore reader(root);  // as in another process: nothing is shared but the folder
  const ByteView value = AsBytes("x");
  const auto put = [&](const char* key, bool ephemeral) {
    return writer.Put(key, std::span(&value, 1), {.ephemeral = ephemeral});
  };
  EXPECT_EQ(reader.Watch("a"), nullptr) << "no folder to meet in yet";
  ASSERT_TRUE(put("first", true).ok());
  const auto watch = reader.Watch("a");
  ASSERT_NE(watch, nullptr);
  EXPECT_FALSE(watch->Wait(std::chrono::milliseconds(1)));
  ASSERT_TRUE(put("b", true).ok());
  EXPECT_FALSE(watch->Wait(std::chrono::milliseconds(1)));
  ASSERT_TRUE(put("a", true).ok());
  EXPECT_TRUE(watch->Wait(std::chrono::seconds(100)));
  EXPECT_FALSE(watch->Wait(std::chrono::milliseconds(1))) << "said once";
  EXPECT_TRUE(reader.Get("a").ok());
  EXPECT_EQ(ListAll(reader, "")->size(), 3U);
}

TEST(FilesystemObjectStore, ThePlaceToMeetOutlivesTheRemovalOfOldTemporaries) {
  const std::string root = MakeTempDir();
  const ByteView value = AsBytes("x");
  FilesystemObjectStore reader(root);
  ASSERT_TRUE(FilesystemObjectStore(root).Put("a", std::span(&value, 1), {.ephemeral = true}).ok());
  const auto watch = reader.Watch("a");
  const utimbuf long_ago{.actime = 1000, .modtime = 1000};
  ASSERT_EQ(utime((root + "/%tmp/wakeups").c_str(), &long_ago), 0);
  ASSERT_TRUE(FilesystemObjectStore(root).Put("a", std::span(&value, 1), {.ephemeral = true}).ok());
  EXPECT_TRUE(watch->Wait(std::chrono::seconds(100)));
}

TEST(FilesystemObjectStore, IgnoresWhatItNeverWrote) {
  const std::string root = MakeTempDir();
  ASSERT_TRUE(WriteFileAtomically(root + "/a%2Fb", "stranger").ok());
  ASSERT_EQ(symlink("nowhere", (root + "/dangling").c_str()), 0);
  ASSERT_EQ(mkfifo((root + "/pipe").c_str(), 0600), 0);
  fs::create_directories(root + "/empty/folder");
  FilesystemObjectStore store(root);
  EXPECT_TRUE(ListAll(store, "")->empty());
  EXPECT_EQ(store.Get("empty").status().code(), StatusCode::kNotFound);
}

TEST(FilesystemObjectStore, KeysWithLongSegmentsAreListedInOrder) {
  FilesystemObjectStore store(MakeTempDir());
  const std::string p(120, 'p');
  std::vector<std::string> keys = {p,        p + "!",      p + "/1",        p + "0",
                                   p + "zz", p + p + "/q", p + p + p + "a", "q"};
  for (const std::string& key : keys) ASSERT_TRUE(store.Put(key, AsBytes("x")).ok());
  std::sort(keys.begin(), keys.end());
  for (int limit : {1, 3, 100}) {
    std::vector<std::string> listed;
    std::string start_after;
    do {
      const ObjectList page = store.List("", start_after, limit).value();
      for (const ObjectInfo& object : page.objects) listed.push_back(object.key);
      start_after = page.next_start_after;
    } while (!start_after.empty());
    EXPECT_EQ(listed, keys);
  }
}

TEST(FilesystemObjectStore, MissingRootIsEmptyAndSaidSo) {
  FilesystemObjectStore store(MakeTempDir() + "/gone");
  EXPECT_TRUE(ListAll(store, "")->empty());
  const Status status = store.Get("key").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("does not exist"));
}

TEST(FilesystemObjectStore, RootThatIsAFileIsRefused) {
  const std::string root = MakeTempDir() + "/file";
  ASSERT_TRUE(WriteFileAtomically(root, "x").ok());
  FilesystemObjectStore store(root);
  const Status status = store.Put("key", AsBytes("x"));
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.code(), StatusCode::kUnavailable) << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr(root));
  EXPECT_EQ(ReadFile(root).value(), "x");
}

// A full disk ends a write() early as a file size limit does, which a test may set.
TEST(FilesystemObjectStore, WriteThatStopsHalfwayLeavesTheOldObject) {
  const std::string root = MakeTempDir();
  FilesystemObjectStore store(root);
  ASSERT_TRUE(store.Put("key", AsBytes("old")).ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = store.Put("key", Bytes(10000));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("writing " + root + "/key"));
  EXPECT_EQ(AsText(store.Get("key").value()), "old");
  EXPECT_TRUE(fs::is_empty(root + "/%tmp"));
}

}  // namespace
}  // namespace lambdadnn
