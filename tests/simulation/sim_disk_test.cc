// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_disk.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include "common/objectstore/filesystem_object_store.h"

namespace lambdadnn::simulation {
namespace {

constexpr uint64_t kSeeds = 40;

std::string Write(SimDisk& disk, const std::string& folder, std::string_view text, bool sync) {
  const ByteView bytes = AsBytes(text);
  const Result<std::string> path = disk.WriteNew(folder, std::span(&bytes, 1), sync);
  EXPECT_TRUE(path.ok()) << path.status().ToString();
  return path.ok() ? *path : "";
}

// Its content, or why it cannot be read.
std::string Read(SimDisk& disk, const std::string& path) {
  Bytes bytes;
  FileInfo info;
  const int error = disk.Read(path, 0, 1000, &bytes, &info);
  return error == 0 ? std::string(AsText(bytes)) : "error " + std::to_string(error);
}

void LosePower(SimDisk& disk) {
  disk.CutPower();
  disk.Restart();
}

TEST(SimDisk, SyncedFilesInSyncedFoldersSurvivePowerCuts) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SeededRandom random(seed);
    SimDisk disk(random);
    ASSERT_EQ(disk.MakeFolder("/a"), 0);
    ASSERT_EQ(disk.SyncFolder("/"), 0);
    ASSERT_EQ(disk.Rename(Write(disk, "/", "text", true), "/a/file"), 0);
    ASSERT_EQ(disk.SyncFolder("/a"), 0);
    LosePower(disk);
    EXPECT_EQ(Read(disk, "/a/file"), "text");
  }
}

TEST(SimDisk, AFileThatWasNotSyncedMayBeSpoiled) {
  std::set<std::string> left;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SeededRandom random(seed);
    SimDisk disk(random);
    const std::string path = Write(disk, "/", "text", false);
    ASSERT_EQ(disk.SyncFolder("/"), 0);
    EXPECT_EQ(Read(disk, path), "text") << "before the power cut everything is there";
    LosePower(disk);
    left.insert(Read(disk, path));
  }
  EXPECT_TRUE(left.contains("text"));
  EXPECT_TRUE(left.contains(""));
  EXPECT_GE(left.size(), 4u) << "beginnings and zeros";
}

TEST(SimDisk, NamesThatWereNotSyncedMayBeLostAndDeletionsUndone) {
  std::set<std::pair<std::string, std::string>> left;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SeededRandom random(seed);
    SimDisk disk(random);
    const std::string kept = Write(disk, "/", "old", true);
    ASSERT_EQ(disk.SyncFolder("/"), 0);
    ASSERT_EQ(disk.Unlink(kept), 0);
    ASSERT_EQ(disk.Link(Write(disk, "/", "new", true), "/new"), 0);
    LosePower(disk);
    left.insert({Read(disk, kept), Read(disk, "/new")});
  }
  const std::string none = "error " + std::to_string(ENOENT);
  const std::set<std::pair<std::string, std::string>> all = {
      {"old", "new"}, {"old", none}, {none, "new"}, {none, none}};
  EXPECT_EQ(left, all);
}

TEST(SimDisk, RenamingWithinAFolderIsDoneOrNot) {
  std::set<std::pair<bool, bool>> left;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SeededRandom random(seed);
    SimDisk disk(random);
    const std::string path = Write(disk, "/", "text", true);
    ASSERT_EQ(disk.SyncFolder("/"), 0);
    ASSERT_EQ(disk.Rename(path, "/other"), 0);
    LosePower(disk);
    left.insert({Read(disk, path) == "text", Read(disk, "/other") == "text"});
  }
  const std::set<std::pair<bool, bool>> either = {{true, false}, {false, true}};
  EXPECT_EQ(left, either);
}

TEST(SimDisk, WithoutPowerNothingIsDone) {
  SeededRandom random(1);
  SimDisk disk(random);
  int cuts = 0;
  disk.CutPowerAt(2, [&cuts] { ++cuts; });
  EXPECT_EQ(disk.MakeFolder("/a"), 0);
  EXPECT_EQ(disk.MakeFolder("/b"), EIO);
  EXPECT_EQ(disk.MakeFolder("/c"), EIO);
  FileInfo info;
  EXPECT_EQ(disk.Look("/", &info), EIO);
  EXPECT_EQ(cuts, 1);
  disk.Restart();
  EXPECT_EQ(disk.Look("/b", &info), ENOENT);
  EXPECT_EQ(disk.MakeFolder("/b"), 0);
}

// A client of a store that loses power at some moment, and what may be there afterwards.
class Client {
 public:
  explicit Client(FilesystemObjectStore& store) : store_(store) {}

  void Put(const std::string& key, const std::string& text, const PutOptions& options = {}) {
    Contents& allowed = allowed_.try_emplace(key, Contents{std::nullopt}).first->second;
    const ByteView bytes = AsBytes(std::string_view(text));
    if (store_.Put(key, std::span(&bytes, 1), options).ok()) allowed.clear();
    allowed.insert(text);
  }
  // The power may undo it.
  void Delete(const std::string& key) {
    (void)store_.Delete(key);
    allowed_[key].insert(std::nullopt);
  }
  void Check(const std::string& when) {
    for (const auto& [key, contents] : allowed_) {
      const Result<Bytes> found = store_.Get(key);
      const bool gone = found.status().code() == StatusCode::kNotFound;
      ASSERT_TRUE(found.ok() || gone) << found.status().ToString();
      const Content is = gone ? Content() : Content(AsText(*found));
      EXPECT_TRUE(contents.contains(is))
          << key << " is " << (gone ? "gone" : "\"" + *is + "\"") << ", " << when;
    }
  }

 private:
  using Content = std::optional<std::string>;  // nullopt = no such object
  using Contents = std::set<Content>;
  FilesystemObjectStore& store_;
  std::map<std::string, Contents> allowed_;
};

TEST(FilesystemObjectStore, KeepsWhatItAcknowledgedThroughPowerCutsAtEveryChange) {
  bool cut = true;
  for (int64_t change = 1; cut; ++change) {
    cut = false;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SeededRandom random(seed);
      SimDisk disk(random);
      FilesystemObjectStore store("/disk/store", &disk);
      Client client(store);
      disk.CutPowerAt(change, [&cut] { cut = true; });
      client.Put("a/b/first", "one");
      client.Put("a/b/second", "two");
      client.Put("a/b/first", "three");
      client.Put("a/new", "four", {.if_absent = true});
      client.Put("name", "five");
      client.Put("name/below", "six");
      client.Put("name", "seven");
      client.Delete("a/b/second");
      client.Delete("a/b/first");
      client.Put("a/b/third", "eight");
      LosePower(disk);
      client.Check("power cut " + std::to_string(change) + ", seed " + std::to_string(seed));
    }
    ASSERT_LT(change, 1000);
  }
}

}  // namespace
}  // namespace lambdadnn::simulation
