// SPDX-License-Identifier: Apache-2.0
#include "operator/api/price_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/files.h"
#include "common/json/yaml_file.h"
#include "operator/api/platform_file.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

WallTime At(const std::string& text) {
  WallTime time;
  EXPECT_TRUE(ParseRfc3339(text, &time)) << text;
  return time;
}

Json FullBook() {
  return Json::parse(R"({"currency": "EUR", "validFrom": "2026-01-01T00:00:00Z",
    "validUntil": "2027-01-01T00:00:00Z", "putRequest": "0.000005", "getRequest": 4e-7,
    "invocation": "0.0000002", "nodeHour": {"price": "0.32", "cores": 16, "memory": "60Gi"}})");
}

TEST(PriceBook, ReadsEveryField) {
  const Platform::Prices prices = PriceBookFromJson(FullBook()).value();
  EXPECT_EQ(prices.currency, "EUR");
  EXPECT_EQ(prices.valid_from, At("2026-01-01T00:00:00Z"));
  EXPECT_EQ(prices.valid_until, At("2027-01-01T00:00:00Z"));
  EXPECT_EQ(prices.put_request, 5e-6);
  EXPECT_EQ(prices.get_request, 4e-7);
  EXPECT_EQ(prices.invocation, 2e-7);
  EXPECT_EQ(prices.node_hour, (Platform::Prices::NodeHour{0.32, 16000, 61440}));
  const Json by_size = {{"currency", "USD"}, {"gibSecond", "0.5"}, {"vcpuSecond", 0.25}};
  EXPECT_EQ(PriceBookFromJson(by_size)->gib_second, 0.5);
  EXPECT_EQ(PriceBookFromJson(by_size)->vcpu_second, 0.25);
}

TEST(PriceBook, WritesWhatItReads) {
  const Platform::Prices prices = PriceBookFromJson(FullBook()).value();
  EXPECT_EQ(PriceBookFromJson(PriceBookToJson(prices)).value(), prices);
  Platform::Prices zero;
  zero.currency = "CHF";
  EXPECT_EQ(PriceBookFromJson(PriceBookToJson(zero)).value(), zero);
}

struct BadBook {
  const char* book;
  const char* sentence;
};

TEST(PriceBook, EachMistakeHasItsSentence) {
  constexpr BadBook kBooks[] = {
      {R"({})", "currency: is required; add the one of these prices, such as EUR"},
      {R"({"gibSecond": 1})", "currency: is required"},
      {R"({"currency": "euro"})", "currency: must be three capital letters, such as EUR"},
      {R"({"currency": 7})", "currency: must be text"},
      {R"({"currency": "EUR", "gibSeconds": 1})", "gibSeconds: is not a field here; did you mean"},
      {R"({"currency": "EUR", "tibSecond": 1})", "tibSecond: is not a field here"},
      {R"({"currency": "EUR", "vcpuSecond": -1})", "vcpuSecond: must not be negative"},
      {R"({"currency": "EUR", "request": "nan"})", "request: must be a decimal number"},
      {R"({"currency": "EUR", "invocation": "inf"})", "invocation: must be a decimal number"},
      {R"({"currency": "EUR", "validUntil": "tomorrow"})", "validUntil: must be a time in UTC"},
      {R"({"currency": "EUR", "validFrom": "2026-01-01T00:00:00Z",
           "validUntil": "2026-01-01T00:00:00Z"})",
       "validUntil: must be later than validFrom"},
      {R"({"currency": "EUR", "nodeHour": {"price": 1, "cores": 4}})",
       "nodeHour.memory: must be above 0: what functions can have of the node"},
      {R"({"currency": "EUR", "nodeHour": {"price": 1, "memory": "4Gi"}})",
       "nodeHour.cores: must be above 0"},
      {R"({"currency": "EUR", "nodeHour": {"price": 1, "cores": 4, "memory": "4Gi", "gpus": 1}})",
       "nodeHour.gpus: is not a field here"},
      {R"({"currency": "EUR", "nodeHour": 3})", "nodeHour: must be a map of fields"},
      {R"({"currency": "EUR", "gibSecond": 1,
           "nodeHour": {"price": 1, "cores": 4, "memory": "4Gi"}})",
       "nodeHour: prices functions, and so do gibSecond and vcpuSecond; remove one of the two"},
      {R"([])", "must be a map of fields"},
  };
  for (const BadBook& bad : kBooks) {
    const Result<Platform::Prices> prices = PriceBookFromJson(Json::parse(bad.book));
    ASSERT_FALSE(prices.ok()) << bad.book;
    EXPECT_EQ(prices.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(prices.status().message()), HasSubstr(bad.sentence)) << bad.book;
  }
}

TEST(PriceBook, CountsFromItsBeginUntilItsEnd) {
  const Platform::Prices prices = PriceBookFromJson(FullBook()).value();
  EXPECT_FALSE(OutOfForce(prices, "", At("2026-01-01T00:00:00Z")));
  EXPECT_FALSE(OutOfForce(prices, "", At("2026-12-31T23:59:59Z")));
  const auto early = OutOfForce(prices, "", At("2025-12-31T23:59:59Z"));
  ASSERT_TRUE(early);
  EXPECT_EQ(early->path, "validFrom");
  EXPECT_THAT(early->message, HasSubstr("valid from 2026-01-01T00:00:00Z on; give the one that"));
  const auto late = OutOfForce(prices, "prices", At("2027-01-01T00:00:00Z"));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->path, "prices.validUntil");
  EXPECT_THAT(late->message, HasSubstr("was valid until 2027-01-01T00:00:00Z; give today's"));
  EXPECT_FALSE(OutOfForce({}, "", At("2027-01-01T00:00:00Z"))) << "no book has no end";
}

TEST(PriceBook, TheExamplesCanBeRead) {
  const WallTime now = At("2026-11-25T00:00:00Z");
  for (const char* name : {"aws-lambda", "on-prem-node", "spot-node"}) {
    const Result<Platform::Prices> prices =
        ReadPriceBook(SourcePath("examples/prices/") + name + ".yaml", now);
    EXPECT_TRUE(prices.ok()) << prices.status().message();
  }
  // The prices of Lambda are told twice.
  EXPECT_EQ(ReadPriceBook(SourcePath("examples/prices/aws-lambda.yaml"), now).value(),
            ReadPlatform(SourcePath("examples/platforms/lambda-s3.yaml"), now)->prices);
}

TEST(PlatformFile, APlatformIsRefusedWhereItsPricesDoNotCount) {
  const std::string file = MakeTempDir() + "/platform.yaml";
  ASSERT_TRUE(WriteFileAtomically(file, Json{{"prices", FullBook()}}.dump()).ok());
  EXPECT_TRUE(ReadPlatform(file, At("2026-06-01T00:00:00Z")).ok());
  const Status late = ReadPlatform(file, At("2028-01-01T00:00:00Z")).status();
  EXPECT_EQ(late.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(late.message()),
              HasSubstr(file + ": prices.validUntil: this price book"));
}

// A run goes on with the prices that it began with.
TEST(PlatformFile, ASavedPlatformCountsAsItIs) {
  const std::string file = MakeTempDir() + "/platform.json";
  Platform platform;
  platform.prices = PriceBookFromJson(FullBook()).value();
  platform.prices.valid_until = At("2026-01-02T00:00:00Z");
  ASSERT_TRUE(WritePlatform(file, platform).ok());
  EXPECT_EQ(ReadSavedPlatform(file).value(), platform);
  // As versions before price books wrote it.
  ASSERT_TRUE(
      WriteFileAtomically(file, R"({"prices": {"gibSecond": 1.6e-05, "vcpuSecond": 0.0}})").ok());
  const Platform::Prices prices = ReadSavedPlatform(file).value().prices;
  EXPECT_EQ(prices.gib_second, 1.6e-5);
  EXPECT_EQ(prices.currency, "USD");
}

}  // namespace
}  // namespace lambdadnn
