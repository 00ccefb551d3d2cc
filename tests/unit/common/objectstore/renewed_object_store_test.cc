// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/renewed_object_store.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/objectstore/memory_object_store.h"

namespace lambdadnn {
namespace {

TEST(RenewedObjectStore, IsOpenedAnewWhereItsCredentialsHaveChangedAndOnlyThen) {
  StoreCredentials now = {"key-1", "secret", ""};
  std::vector<std::string> opened;
  const auto open =
      [&](const StoreCredentials& credentials) -> Result<std::unique_ptr<ObjectStore>> {
    opened.push_back(credentials.access_key);
    auto store = std::make_unique<MemoryObjectStore>();
    LDNN_RETURN_IF_ERROR(store->Put("of", AsBytes(credentials.access_key)));
    return std::unique_ptr<ObjectStore>(std::move(store));
  };
  const auto store = RenewedObjectStore::Make(open, [&] { return now; }).value();
  EXPECT_EQ(AsText(store->Get("of").value()), "key-1");
  EXPECT_TRUE(store->Head("of").ok());
  EXPECT_EQ(opened.size(), 1u);
  now = {"key-2", "secret", "token"};
  EXPECT_EQ(AsText(store->Get("of", ByteRange{4, 1}).value()), "2");
  EXPECT_EQ(store->List("", "", 10)->objects.size(), 1u);
  EXPECT_TRUE(store->Put("other", AsBytes("x")).ok());
  EXPECT_TRUE(store->Delete("other").ok());
  EXPECT_EQ(opened, (std::vector<std::string>{"key-1", "key-2"}));
}

TEST(RenewedObjectStore, AStoreThatCannotBeOpenedIsTold) {
  bool good = true;
  const auto open = [&](const StoreCredentials&) -> Result<std::unique_ptr<ObjectStore>> {
    if (!good) return InvalidArgumentError("no such endpoint");
    return std::unique_ptr<ObjectStore>(std::make_unique<MemoryObjectStore>());
  };
  StoreCredentials now;
  const auto store = RenewedObjectStore::Make(open, [&] { return now; }).value();
  EXPECT_EQ(store->Get("a").status().code(), StatusCode::kNotFound);
  good = false;
  now.access_key = "new";
  EXPECT_EQ(store->Get("a").status().message(), "no such endpoint");
  EXPECT_FALSE(RenewedObjectStore::Make(open, [&] { return now; }).ok());
}

}  // namespace
}  // namespace lambdadnn
