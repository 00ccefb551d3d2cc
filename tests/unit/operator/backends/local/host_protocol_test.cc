// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/host_protocol.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

HostedFunctionSpec SomeSpec() {
  HostedFunctionSpec spec;
  spec.uid = "workers-1";
  spec.group.job_uid = "job-1";
  spec.group.namespace_name = "default";
  spec.group.job_name = "demo";
  spec.group.name = "workers";
  spec.group.program = FunctionProgram::kWorker;
  spec.group.memory_mib = 512;
  spec.group.milli_cpu = 250;
  spec.group.timeout_seconds = 900;
  spec.group.environment = {{"A", "1"}, {"B", ""}};
  return spec;
}

TEST(HostProtocol, FunctionSpecSurvivesTheTrip) {
  const HostedFunctionSpec spec = SomeSpec();
  const auto decoded = DecodeFunctionSpec(EncodeFunctionSpec(spec));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->uid, spec.uid);
  EXPECT_EQ(decoded->group, spec.group);
}

TEST(HostProtocol, FunctionsSurviveTheTrip) {
  std::vector<FunctionInstance> functions(2);
  functions[0] = {"a",
                  "workers",
                  FunctionPhase::kReady,
                  {.host = "127.0.0.1", .port = 1},
                  "127.0.0.1:2",
                  0.5,
                  0,
                  "",
                  "",
                  "",
                  7.5};
  functions[1] = {
      "b", "workers", FunctionPhase::kGone,     {}, "", 0, 0, "OOMKilled", "", "last \"words\"",
      9,   2.25,      FunctionEnd::kOutOfMemory};
  const auto decoded = DecodeFunctions(EncodeFunctions(functions));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(*decoded, functions);
  EXPECT_TRUE(DecodeFunctions(EncodeFunctions({}))->empty());
}

TEST(HostProtocol, LogLinesMayHoldAnyBytes) {
  std::vector<FunctionInstance> functions(1);
  functions[0] = {"a",      "g", FunctionPhase::kGone, {}, "", 0, 0,
                  "Killed", "",  "\xff\xfe torn UTF-8"};
  EXPECT_TRUE(DecodeFunctions(EncodeFunctions(functions)).ok());
}

TEST(HostProtocol, NamesTheFieldThatIsWrong) {
  for (const auto& [text, field] : std::vector<std::pair<std::string, std::string>>{
           {R"({"jobUid":"j","group":"g","program":"worker"})", "function.uid"},
           {R"({"uid":1,"jobUid":"j","group":"g","program":"worker"})", "function.uid"},
           {R"({"uid":"u","jobUid":"j","group":"g","program":"worker","memory":1})",
            "function.memory"},
           {R"({"uid":"u","jobUid":"j","group":"g","program":"sh"})", "function.program"},
           {R"({"uid":"u","jobUid":"j","group":"g","program":"worker","environment":{"A=":"1"}})",
            "function.environment"},
           {R"({"uid":"u","jobUid":"j","group":"g","program":"worker","environment":{"A":1}})",
            "function.environment"}}) {
    const auto decoded = DecodeFunctionSpec(text);
    ASSERT_FALSE(decoded.ok()) << text;
    EXPECT_NE(decoded.status().message().find(field), std::string::npos)
        << decoded.status().message();
  }
  EXPECT_FALSE(DecodeFunctionSpec("nonsense").ok());
  EXPECT_FALSE(DecodeFunctions("{}").ok());
  EXPECT_FALSE(DecodeFunctions(R"({"functions":[{"uid":"u","group":"g","phase":"Odd"}]})").ok());
  EXPECT_NE(DecodeFunctions(R"({"functions":[{"uid":"u","group":"g","phase":"Ready",)"
                            R"("address":"127.0.0.1:0"}]})")
                .status()
                .message()
                .find("functions[0].address"),
            std::string::npos);
}

TEST(HostProtocol, HostInfoSurvivesTheTrip) {
  const auto info = DecodeHostInfo(EncodeHostInfo({12, "pacing", "not permitted", "/d", 0, 2}));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->pid, 12);
  EXPECT_EQ(info->isolation, "pacing");
  EXPECT_EQ(info->isolation_reason, "not permitted");
  EXPECT_EQ(info->directory, "/d");
  EXPECT_EQ(info->gpus, 2);
}

}  // namespace
}  // namespace lambdadnn
