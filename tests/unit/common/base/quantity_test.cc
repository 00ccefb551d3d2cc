// SPDX-License-Identifier: Apache-2.0
#include "common/base/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

TEST(Quantity, ReadsEveryUnitThatIsAWholeNumberOfMib) {
  EXPECT_EQ(*ParseMemoryMib("1728Mi"), 1728);
  EXPECT_EQ(*ParseMemoryMib("2Gi"), 2048);
  EXPECT_EQ(*ParseMemoryMib("1.5Gi"), 1536);
  EXPECT_EQ(*ParseMemoryMib("2048Ki"), 2);
  EXPECT_EQ(*ParseMemoryMib("1Ti"), 1 << 20);
  EXPECT_EQ(*ParseMemoryMib("1048576"), 1);
  EXPECT_EQ(*ParseMemoryMib("1048576k"), 1000);
}

TEST(Quantity, WhatLiesBetweenTwoMibIsRefusedWithTheNextOne) {
  const auto between = ParseMemoryMib("2000M");
  ASSERT_FALSE(between.ok());
  EXPECT_THAT(between.status().message(), HasSubstr("write \"1908Mi\""));
  EXPECT_THAT(ParseMemoryMib("128").status().message(), HasSubstr("write \"1Mi\""));
  EXPECT_THAT(ParseMemoryMib("0Mi").status().message(), HasSubstr("not a whole number"));
}

TEST(Quantity, NonsenseIsRefused) {
  for (const char* text : {"", "Mi", "-1Mi", "1 Gi", "1GB", "1e3Mi", "infMi", "nan", "0x10Mi",
                           "1.2.3Mi", "99999999999999999999Ti"}) {
    EXPECT_EQ(ParseMemoryMib(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(Quantity, FormatsSoThatItReadsBack) {
  EXPECT_EQ(FormatMemoryMib(1728), "1728Mi");
  EXPECT_EQ(*ParseMemoryMib(FormatMemoryMib(1)), 1);
}

TEST(Quantity, AnyIsReadInItsBaseUnit) {
  const std::map<std::string, double> good = {{"0", 0},         {"2", 2},
                                              {"1500m", 1.5},   {"0.5", 0.5},
                                              {"1e3", 1000},    {"1E3", 1000},
                                              {"1E", 1e18},     {"2Gi", 2147483648.0},
                                              {"1Pi", 0x1p50},  {"128974848000m", 128974848},
                                              {"250u", 250e-6}, {"3n", 3e-9}};
  for (const auto& [text, value] : good) {
    const Result<double> read = ParseQuantity(text);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_DOUBLE_EQ(*read, value) << text;
  }
  for (const char* bad :
       {"", "m", "Gi", "-1", "1 Gi", "1gi", "1GiB", "nan", "inf", "1e999", "0x10"}) {
    EXPECT_EQ(ParseQuantity(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Quantity, AnyAmountOfMemoryIsReadAndWrittenInWholeKib) {
  EXPECT_EQ(*ParseMebibytes("1536Ki"), 1.5);
  EXPECT_EQ(FormatMebibytes(1.5), "1536Ki");
  EXPECT_EQ(FormatMebibytes(2), "2Mi");
  EXPECT_EQ(FormatMebibytes(222.5701), "227912Ki") << "rounded up";
  EXPECT_EQ(FormatMebibytes(-1), "0Mi");
  EXPECT_EQ(ParseMebibytes("much").status().code(), StatusCode::kInvalidArgument);
  for (const double mib : {0.0, 0.1, 1.0, 180.37, 4000.0, 1e9 / 3}) {
    const double written = *ParseMebibytes(FormatMebibytes(mib));
    EXPECT_GE(written, mib);
    EXPECT_EQ(written, RoundedUpToKib(mib));
    EXPECT_EQ(*ParseMebibytes(FormatMebibytes(written)), written) << mib;
  }
}

}  // namespace
}  // namespace lambdadnn
