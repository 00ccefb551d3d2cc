// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/object_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const ObjectName kName{"default", "a"};

Json Object(const std::string& name, const std::string& uid, int version,
            const std::string& namespace_name = "default") {
  return {{"metadata",
           {{"name", name},
            {"namespace", namespace_name},
            {"uid", uid},
            {"resourceVersion", std::to_string(version)}}}};
}

int64_t VersionIn(const ObjectCache& cache, const ObjectName& name = kName) {
  const auto object = cache.Get(name);
  return object == nullptr
             ? -1
             : std::stoll((*object)["metadata"]["resourceVersion"].get<std::string>());
}

TEST(ObjectCache, AnOlderVersionDoesNotReplaceANewerOne) {
  ObjectCache cache;
  EXPECT_TRUE(cache.Put(Object("a", "u1", 9)));
  EXPECT_FALSE(cache.Put(Object("a", "u1", 8)));
  EXPECT_FALSE(cache.Put(Object("a", "u1", 9))) << "the same version is no news";
  EXPECT_EQ(VersionIn(cache), 9);
  EXPECT_TRUE(cache.Put(Object("a", "u1", 10))) << "not an order of letters";
  EXPECT_EQ(VersionIn(cache), 10);
}

TEST(ObjectCache, WhoWroteWhichFieldIsNotKept) {
  ObjectCache cache;
  Json object = Object("a", "u1", 1);
  object["metadata"]["managedFields"] = Json::array({{{"manager", "kubectl"}}});
  EXPECT_TRUE(cache.Put(object));
  EXPECT_FALSE((*cache.Get(kName))["metadata"].contains("managedFields"));
  object["metadata"]["resourceVersion"] = "2";
  cache.PutListed(object);
  EXPECT_EQ(VersionIn(cache), 2);
  EXPECT_FALSE((*cache.Get(kName))["metadata"].contains("managedFields"));
}

TEST(ObjectCache, AnotherObjectOfTheNameReplacesTheOldOne) {
  ObjectCache cache;
  cache.Put(Object("a", "u1", 9));
  EXPECT_TRUE(cache.Put(Object("a", "u2", 12)));
  EXPECT_FALSE(cache.Remove(Object("a", "u1", 10))) << "the deletion of the old one comes late";
  EXPECT_EQ(VersionIn(cache), 12);
  cache.Remove(kName, "u1");
  EXPECT_EQ(VersionIn(cache), 12);
  cache.Remove(kName, "u2");
  EXPECT_EQ(VersionIn(cache), -1);
}

TEST(ObjectCache, ALateAnswerDoesNotBringADeletedObjectBack) {
  ObjectCache cache;
  cache.Put(Object("a", "u1", 9));
  EXPECT_TRUE(cache.Remove(Object("a", "u1", 11)));
  EXPECT_FALSE(cache.Put(Object("a", "u1", 10)));
  EXPECT_EQ(cache.size(), 0u);
  for (size_t i = 0; i < ObjectCache::kRememberedDeletions; ++i) {
    cache.Remove(Object("b", "other-" + std::to_string(i), 1));
  }
  EXPECT_TRUE(cache.Put(Object("a", "u1", 10))) << "what is remembered is bounded";
}

// A list of everything, as of `version`.
std::vector<ObjectName> PutList(ObjectCache& cache, const std::string& namespace_name,
                                const std::string& version, const std::vector<Json>& objects) {
  std::set<ObjectName> listed;
  std::vector<ObjectName> changed;
  for (const Json& object : objects) {
    const ObjectName name = NameOf(object);
    listed.insert(name);
    if (cache.PutListed(object)) changed.push_back(name);
  }
  for (const ObjectName& gone : cache.RemoveUnlisted(namespace_name, version, listed)) {
    changed.push_back(gone);
  }
  return changed;
}

TEST(ObjectCache, AListTellsWhatIsNewChangedAndGone) {
  ObjectCache cache;
  cache.Put(Object("same", "u1", 1));
  cache.Put(Object("changed", "u2", 2));
  cache.Put(Object("gone", "u3", 3));
  cache.Put(Object("written-since", "u4", 21));
  const auto changed =
      PutList(cache, "", "20",
              {Object("same", "u1", 1), Object("changed", "u2", 12), Object("new", "u5", 15)});
  EXPECT_THAT(changed,
              UnorderedElementsAre(ObjectName{"default", "changed"}, ObjectName{"default", "gone"},
                                   ObjectName{"default", "new"}));
  EXPECT_EQ(VersionIn(cache, {"default", "written-since"}), 21);
  EXPECT_FALSE(cache.Put(Object("gone", "u3", 4))) << "an answer from before its end";
}

TEST(ObjectCache, AnObjectThatAListReplacesByAnotherDoesNotComeBack) {
  ObjectCache cache;
  cache.Put(Object("a", "u1", 9));
  EXPECT_TRUE(cache.PutListed(Object("a", "u2", 12)));
  EXPECT_FALSE(cache.Put(Object("a", "u1", 10))) << "an answer from before its end";
  EXPECT_EQ(VersionIn(cache), 12);
}

TEST(ObjectCache, AListOfOneNamespaceLeavesTheOthersAlone) {
  ObjectCache cache;
  cache.Put(Object("a", "u1", 1, "one"));
  cache.Put(Object("a", "u2", 2, "two"));
  EXPECT_THAT(PutList(cache, "one", "5", {}), ElementsAre(ObjectName{"one", "a"}));
  EXPECT_THAT(cache.Names(), ElementsAre(ObjectName{"two", "a"}));
  EXPECT_THAT(PutList(cache, "two", "5", {Object("a", "u2", 2, "two")}), IsEmpty());
}

TEST(ObjectCache, TextIsTheSameObject) {
  ObjectCache trees;
  ObjectCache texts(ObjectCache::Storage::kText);
  Json object = Object("a", "u1", 1);
  object["status"] = {{"loss", 0.1}, {"note", "\u00e9\n\"x\""}, {"count", int64_t{1} << 60}};
  for (ObjectCache* cache : {&trees, &texts}) {
    cache->Put(object);
    EXPECT_EQ(*cache->Get(kName), object);
    EXPECT_EQ(cache->VersionOf(kName), (ObjectVersion{"u1", "1"}));
    EXPECT_TRUE(cache->Contains(kName));
    EXPECT_EQ(*cache->All().front(), object);
    EXPECT_EQ(cache->Get({"default", "b"}), nullptr);
    EXPECT_EQ(cache->VersionOf({"default", "b"}), std::nullopt);
    EXPECT_FALSE(cache->Contains({"default", "b"}));
  }
}

TEST(ObjectCache, TellsWhatHasChangedSinceItWasLastAsked) {
  ObjectCache cache;
  cache.Put(Object("a", "u1", 1));
  uint64_t cursor = 0;
  EXPECT_EQ(cache.ChangesSince(&cursor), std::nullopt) << "whoever begins looks at all";
  using Names = std::vector<ObjectName>;
  EXPECT_EQ(cache.ChangesSince(&cursor), Names());
  cache.Put(Object("a", "u1", 1));  // no news
  EXPECT_EQ(cache.ChangesSince(&cursor), Names());

  const ObjectName a{"default", "a"};
  const ObjectName b{"default", "b"};
  uint64_t other = cursor;
  cache.Put(Object("a", "u1", 2));
  cache.Put(Object("b", "u2", 3));
  EXPECT_EQ(cache.ChangesSince(&cursor), (Names{a, b}));
  cache.Remove(a, "u1");
  cache.Remove(Object("b", "u2", 4));
  EXPECT_EQ(cache.ChangesSince(&cursor), (Names{a, b}));
  PutList(cache, "", "9", {Object("a", "u3", 9)});
  EXPECT_EQ(cache.ChangesSince(&cursor), Names{a});
  EXPECT_EQ(cache.ChangesSince(&other), (Names{a, b, a, b, a})) << "each who asks by itself";

  for (int i = 0; i < static_cast<int>(ObjectCache::kRememberedChanges); ++i) {
    cache.Put(Object("a", "u3", 10 + i));
  }
  EXPECT_EQ(cache.ChangesSince(&cursor)->size(), ObjectCache::kRememberedChanges);
  EXPECT_EQ(cache.ChangesSince(&other)->size(), ObjectCache::kRememberedChanges);
  for (int i = 0; i <= static_cast<int>(ObjectCache::kRememberedChanges); ++i) {
    cache.Put(Object("a", "u3", 10'000 + i));
  }
  EXPECT_EQ(cache.ChangesSince(&cursor), std::nullopt) << "what is remembered is bounded";
  EXPECT_EQ(cache.ChangesSince(&cursor), Names());
}

}  // namespace
}  // namespace lambdadnn
