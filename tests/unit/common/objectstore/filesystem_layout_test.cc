// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/filesystem_layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/base/text.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {
namespace {

// The key that a path stands for, by DecodeName alone.
std::string PathToKey(const std::string& path) {
  std::string key;
  bool continued = true;
  for (const std::string& name : Split(path, '/')) {
    const auto decoded = DecodeName(name);
    if (!decoded) return "(undecodable " + name + ")";
    if (!continued) key += '/';
    key += decoded->text;
    continued = decoded->continued;
  }
  return key;
}

TEST(FilesystemLayout, OrdinaryKeysAreTheirOwnPaths) {
  for (const std::string key :
       {"train-images-idx3-ubyte", "a/b c/d.csv", "50%.csv", "100%/x", "%", "a%b", "Größe"}) {
    EXPECT_EQ(KeyToPath(key), key);
    EXPECT_EQ(PathToKey(key), key);
  }
}

TEST(FilesystemLayout, EscapesWhatWouldBeMisread) {
  EXPECT_EQ(KeyToPath("%tmp/x"), "%25tmp/x");
  EXPECT_EQ(KeyToPath("a%f"), "a%25f");
  EXPECT_EQ(KeyToPath("%25"), "%2525");
  EXPECT_FALSE(DecodeName("%tmp").has_value());
  EXPECT_FALSE(DecodeName("a%2Fb").has_value());
  EXPECT_FALSE(DecodeName("a%25b").has_value());
  EXPECT_TRUE(DecodeName("a%f")->beside_folder);
}

TEST(FilesystemLayout, LongSegmentsFitTheFileSystem) {
  std::vector<std::string> keys = {std::string(120, 'x'), std::string(121, 'x'),
                                   std::string(1024, 'x'), std::string(120, 'x') + ".",
                                   std::string(240, 'x') + ".."};
  std::string escapes;
  while (escapes.size() < 1024) escapes += "%2";
  keys.push_back(escapes);
  for (const std::string& key : keys) {
    const std::string path = KeyToPath(key);
    for (const std::string& name : Split(path, '/')) {
      EXPECT_LE(name.size() + kBesideFolderSuffix.size(), 255U);
      EXPECT_TRUE(name != "." && name != "..");
    }
    EXPECT_EQ(PathToKey(path), key);
  }
}

RC_GTEST_PROP(FilesystemLayout, EveryKeyComesBackFromItsPath, ()) {
  const auto letters = rc::gen::element<std::string>("%", "2", "5", "f", "+", "s", "t", "/", ".",
                                                     "a", "tmp", std::string(119, 'x'));
  const auto pieces = *rc::gen::container<std::vector<std::string>>(letters);
  const std::string key = Join(pieces, "");
  RC_PRE(ValidateKey(key).ok());
  RC_ASSERT(PathToKey(KeyToPath(key)) == key);
}

}  // namespace
}  // namespace lambdadnn
