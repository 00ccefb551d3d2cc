// SPDX-License-Identifier: Apache-2.0
#include "common/base/enum_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {

enum class Fruit { kApple, kPear };
template <>
inline constexpr auto kEnumNames<Fruit> = EnumNameTable("Apple", "Pear");

namespace {

enum class Nameless { kOne };

static_assert(NamedEnum<Fruit>);
static_assert(!NamedEnum<Nameless>);
static_assert(!NamedEnum<int>);

TEST(EnumNames, EachValueHasItsNameAndIsFoundByIt) {
  EXPECT_EQ(EnumName(Fruit::kApple), "Apple");
  EXPECT_EQ(EnumName(Fruit::kPear), "Pear");
  EXPECT_EQ(FindEnum<Fruit>("Pear"), Fruit::kPear);
  EXPECT_THAT(EnumNameList<Fruit>(), ::testing::ElementsAre("Apple", "Pear"));
}

TEST(EnumNames, AnyOtherTextIsNoValue) {
  for (const char* text : {"", "apple", "Apple ", "Plum"}) {
    EXPECT_EQ(FindEnum<Fruit>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace lambdadnn
