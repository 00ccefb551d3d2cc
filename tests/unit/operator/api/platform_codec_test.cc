// SPDX-License-Identifier: Apache-2.0
#include "operator/api/platform_codec.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

Json FullPlatform() {
  return Json::parse(R"({
    "memory": {"min": "256Mi", "max": "10Gi", "step": "1Mi"},
    "milliCpuPerGiB": 565, "quotaWhileStarting": true, "totalMilliCpu": 2000, "totalMemory": "4Gi", "sidecarMemory": "30Mi",
    "maxFunctions": 100, "functionTimeoutSeconds": 600,
    "function": {"networkBytesPerSecond": 84000000,
                 "storeBytesPerSecond": {"slope": "1000", "intercept": -5}},
    "parameterServer": {"networkBytesPerSecond": 1.2e9, "pricePerSecond": "0.000026"},
    "store": {"bytesPerSecond": 115e6, "requestSeconds": "0.01"},
    "prices": {"currency": "USD", "gibSecond": "0.0000166667", "vcpuSecond": 0.5, "putRequest": "0.000005",
               "getRequest": "0.0000004", "invocation": "0.0000002"}})");
}

TEST(PlatformCodec, ReadsEveryField) {
  const Platform platform = PlatformFromJson(FullPlatform()).value();
  EXPECT_EQ(platform.memory, (Platform::Memory{256, 10240, 1}));
  EXPECT_EQ(platform.milli_cpu_per_gib, 565);
  EXPECT_TRUE(platform.quota_while_starting);
  EXPECT_EQ(platform.total_milli_cpu, 2000);
  EXPECT_EQ(platform.total_memory_mib, 4096);
  EXPECT_EQ(platform.sidecar_memory_mib, 30);
  EXPECT_EQ(platform.max_functions, 100);
  EXPECT_EQ(platform.function_timeout_seconds, 600);
  EXPECT_EQ(platform.function_network_bytes_per_second, 84e6);
  EXPECT_EQ(platform.function_store_slope, 1000);
  EXPECT_EQ(platform.function_store_intercept, -5);
  EXPECT_EQ(platform.parameter_server_network_bytes_per_second, 1.2e9);
  EXPECT_EQ(platform.parameter_server_price_per_second, 2.6e-5);
  EXPECT_EQ(platform.store_bytes_per_second, 115e6);
  EXPECT_EQ(platform.store_request_seconds, 0.01);
  EXPECT_EQ(platform.prices, (Platform::Prices{.gib_second = 1.66667e-5,
                                               .vcpu_second = 0.5,
                                               .put_request = 5e-6,
                                               .get_request = 4e-7,
                                               .invocation = 2e-7,
                                               .currency = "USD"}));
}

TEST(PlatformCodec, WritesWhatItReads) {
  const Platform platform = PlatformFromJson(FullPlatform()).value();
  EXPECT_EQ(PlatformFromJson(PlatformToJson(platform)).value(), platform);
  EXPECT_EQ(PlatformFromJson(PlatformToJson(Platform{})).value(), Platform{});
}

TEST(PlatformCodec, WhatWasMeasuredIsNotTakenForGiven) {
  Platform platform;
  platform.store_bytes_per_second = {4e8, Origin::kMeasured};
  platform.store_request_seconds = 0.001;
  Json json = PlatformToJson(platform);
  EXPECT_EQ(json["measured"], Json::array({"store.bytesPerSecond"}));
  const Platform read = PlatformFromJson(json).value();
  EXPECT_EQ(read.store_bytes_per_second.origin(), Origin::kMeasured);
  EXPECT_EQ(read.store_request_seconds.origin(), Origin::kGiven);
  EXPECT_FALSE(read.total_milli_cpu.known());
  json["measured"] = Json::array({"store.colour"});
  EXPECT_NE(PlatformFromJson(json).status().message().find(
                "measured: names store.colour, which is no number of a platform; remove it"),
            std::string::npos);
}

TEST(PlatformCodec, ZeroOfWhatNothingRealHasIsNotStated) {
  const Platform platform = PlatformFromJson(Json::parse(R"({"totalMilliCpu": 0,
      "totalMemory": "0Mi", "functionTimeoutSeconds": 0, "prices": {"currency": "EUR"},
      "store": {"bytesPerSecond": 0, "requestSeconds": 0}})"))
                                .value();
  EXPECT_FALSE(platform.total_milli_cpu.known());
  EXPECT_FALSE(platform.total_memory_mib.known());
  EXPECT_FALSE(platform.store_bytes_per_second.known());
  EXPECT_FALSE(platform.store_request_seconds.known());
  EXPECT_EQ(platform.function_timeout_seconds.origin(), Origin::kGiven) << "there is no limit";
  EXPECT_EQ(platform.function_timeout_seconds, 0);
  EXPECT_EQ(PlatformFromJson(Json::object())->function_timeout_seconds.origin(), Origin::kDefault);
}

TEST(PlatformCodec, AcceptsHelmValues) {
  const Json values = {{"platform", {{"maxFunctions", 7}}}};
  EXPECT_EQ(PlatformFromJson(values)->max_functions, 7);
}

TEST(PlatformCodec, StoreBandwidthMayBeConstant) {
  const Json json = {{"function", {{"storeBytesPerSecond", 5}}}};
  const Platform platform = PlatformFromJson(json).value();
  EXPECT_EQ(platform.function_store_slope, 0);
  EXPECT_EQ(platform.function_store_intercept, 5);
}

TEST(PlatformCodec, OneRequestPriceCountsForBothVerbs) {
  const Json json = {{"prices", {{"currency", "EUR"}, {"request", "0.5"}, {"getRequest", "0.25"}}}};
  const Platform platform = PlatformFromJson(json).value();
  EXPECT_EQ(platform.prices.put_request, 0.5);
  EXPECT_EQ(platform.prices.get_request, 0.25);
}

TEST(PlatformCodec, NamesEveryBadField) {
  const Json json = Json::parse(R"({"memory": {"min": "512Mi", "max": "256Mi", "step": "0Mi"},
    "maxFunction": 3, "milliCpuPerGiB": -1, "prices": {"gibSecond": "cheap"}, "store": 7})");
  const std::string message(PlatformFromJson(json).status().message());
  for (const char* field : {"memory.max", "memory.step", "maxFunction", "milliCpuPerGiB",
                            "prices.gibSecond", "store"}) {
    EXPECT_NE(message.find(field), std::string::npos) << field << " in: " << message;
  }
  EXPECT_NE(message.find("did you mean maxFunctions?"), std::string::npos) << message;
}

TEST(PlatformCodec, OldNamesAreRefusedWithTheNewOnes) {
  const Json old = {{"memory", {{"minMiB", 128}, {"maxMiB", 256}, {"stepMiB", 64}}},
                    {"totalMemoryMiB", 1024},
                    {"sidecarMemoryMiB", 64}};
  for (const Json& file : {old, Json{{"platform", old}}}) {
    const std::string message(PlatformFromJson(file).status().message());
    for (const char* told : {"memory.minMiB: is not a field here; write min, an amount",
                             "memory.maxMiB: is not a field here; write max, an amount",
                             "memory.stepMiB: is not a field here; write step, an amount",
                             "totalMemoryMiB: is not a field here; write totalMemory, an amount",
                             "sidecarMemoryMiB: is not a field here; write sidecarMemory, an"}) {
      EXPECT_NE(message.find(told), std::string::npos) << told << " in: " << message;
    }
  }
}

struct BadNumberRow {
  Json platform;
  const char* message;
};

TEST(PlatformCodec, NumbersThatCannotBeAreRefusedWithFieldValueAndNextStep) {
  const BadNumberRow rows[] = {
      {{{"functionTimeoutSeconds", -1}},
       "functionTimeoutSeconds: is -1, and must be seconds from 0 to 1e+09; correct it or leave "
       "it out"},
      {{{"store", {{"requestSeconds", "-0.5"}}}}, "store.requestSeconds: is -0.5, and must be"},
      {{{"store", {{"bytesPerSecond", "nan"}}}}, "store.bytesPerSecond: must be a decimal number"},
      {{{"prices", {{"currency", "USD"}, {"gibSecond", -2}}}},
       "prices.gibSecond: must not be negative"},
      {{{"function", {{"storeBytesPerSecond", -3}}}},
       "function.storeBytesPerSecond: is -3, and must be bytes a second"},
      {{{"function", {{"storeBytesPerSecond", {{"slope", 1}, {"intercept", -5000}}}}}},
       "function.storeBytesPerSecond: is -1992 bytes a second at best, for functions of "
       "128 to 3008 MiB, and must be above 0; correct slope or intercept"},
  };
  for (const BadNumberRow& row : rows) {
    EXPECT_NE(PlatformFromJson(row.platform).status().message().find(row.message),
              std::string::npos)
        << row.message << " in: " << PlatformFromJson(row.platform).status().message();
  }
}

TEST(PlatformCodec, RefusesWhatIsNotAMap) {
  EXPECT_FALSE(PlatformFromJson(Json::array()).ok());
  EXPECT_FALSE(PlatformFromJson(Json("text")).ok());
  EXPECT_FALSE(PlatformFromJson(Json({{"platform", 3}})).ok());
}

}  // namespace
}  // namespace lambdadnn
