// SPDX-License-Identifier: Apache-2.0
// Whole jobs, and the traces that a collector gets of them. The golden one is written by
//   LAMBDADNN_WRITE_TRACE=tests/data/traces/job.json build/release/bin/job_trace_test
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "common/tracing/otlp_json.h"
#include "tests/support/paths.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kGolden = "tests/data/traces/job.json";

class JobTraceTest : public JobLifeTest {
 protected:
  // Measured, since it brings no profile.
  static Json JobToProfile() {
    Json job = JobWorld::MinimalJob();
    job["spec"].erase("profile");
    return job;
  }
  std::vector<Span> Named(const std::string& name) const {
    std::vector<Span> found;
    for (const Span& span : world_.spans) {
      if (span.name == name) found.push_back(span);
    }
    return found;
  }
  static std::string Text(const Span& span, const std::string& key) {
    for (const SpanAttribute& attribute : span.attributes) {
      if (attribute.key == key) return std::get<std::string>(attribute.value);
    }
    return "";
  }
  static std::optional<int64_t> Number(const Span& span, const std::string& key) {
    for (const SpanAttribute& attribute : span.attributes) {
      if (attribute.key == key) return std::get<int64_t>(attribute.value);
    }
    return std::nullopt;
  }
  std::string Encoded() const {
    return DumpJson(EncodeSpans({{"service.name", "lambdadnn-operator"}},
                                {"lambdadnn-operator", "0"}, world_.spans),
                    1) +
           "\n";
  }
  // One tree of spans that lie in their order, and none that is sent twice is another one.
  void ExpectOneTrace() {
    std::map<std::string, Span> by_id;
    for (const Span& span : world_.spans) {
      const auto [found, is_new] = by_id.try_emplace(span.span_id, span);
      EXPECT_EQ(found->second.name, span.name);
      EXPECT_EQ(found->second.parent_span_id, span.parent_span_id);
      EXPECT_EQ(found->second.start, span.start) << span.name;
      EXPECT_EQ(found->second.end, span.end) << span.name;
    }
    int roots = 0;
    for (const auto& [id, span] : by_id) {
      EXPECT_EQ(span.trace_id, world_.spans.front().trace_id);
      EXPECT_LE(span.start, span.end) << span.name;
      roots += span.parent_span_id.empty();
      if (!span.parent_span_id.empty()) {
        EXPECT_TRUE(by_id.contains(span.parent_span_id)) << span.name;
      }
    }
    EXPECT_EQ(roots, 1);
  }
};

TEST_F(JobTraceTest, TheTraceOfAJobThatLostAFunctionIsTheGoldenOne) {
  world_.Create(JobToProfile());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  ExpectOneTrace();
  std::set<std::string> ids;
  for (const Span& span : world_.spans) {
    EXPECT_TRUE(ids.insert(span.span_id).second) << span.name << " was sent twice";
  }
  if (const auto file = GetEnvironment("LAMBDADNN_WRITE_TRACE")) {
    ASSERT_TRUE(WriteFileAtomically(*file, Encoded()).ok());
  }
  const auto golden = ReadFile(SourcePath(kGolden));
  ASSERT_TRUE(golden.ok()) << golden.status().ToString();
  EXPECT_EQ(Encoded(), *golden);
}

TEST_F(JobTraceTest, EveryPartOfALifeHasItsSpan) {
  world_.Create(JobToProfile());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  const Job job = world_.Read();
  for (const char* name :
       {"job", "queued", "profile", "plan", "start functions", "recovery", "cleanup"}) {
    EXPECT_THAT(Named(name), SizeIs(1)) << name;
  }
  EXPECT_THAT(Named("round"), SizeIs(2));
  EXPECT_THAT(Named("cold start"), SizeIs(static_cast<size_t>(job.status.usage.cold_starts)));
  const Span root = Named("job").front();
  EXPECT_EQ(Text(root, "lambdadnn.job.outcome"), "Complete");
  EXPECT_EQ(Text(root, "lambdadnn.job.name"), "digits");
  EXPECT_EQ(Text(root, "k8s.namespace.name"), "default");
  EXPECT_EQ(Number(root, "lambdadnn.job.iterations"), job.status.progress.iteration);
  EXPECT_EQ(Number(root, "lambdadnn.job.restarts"), 1);
  EXPECT_FALSE(root.failed);
  WallTime created;
  WallTime completed;
  ASSERT_TRUE(ParseRfc3339(job.metadata.creation_timestamp, &created));
  ASSERT_TRUE(ParseRfc3339(job.status.completion_time, &completed));
  EXPECT_EQ(root.start, created);
  EXPECT_EQ(root.end, completed);
  std::vector<std::string> failed;
  for (const Span& slice : Named("slice")) {
    EXPECT_GE(slice.start, root.start);
    if (slice.failed) failed.push_back(Text(slice, "lambdadnn.role") + Text(slice, "error.type"));
    EXPECT_FALSE(Text(slice, "faas.instance").empty());
  }
  // Others were ended because of it, and the profile's second function with the measurement.
  EXPECT_THAT(failed, testing::ElementsAre("server-0Killed"));
  const Span recovery = Named("recovery").front();
  EXPECT_EQ(Number(recovery, "lambdadnn.incarnation"), 1);
  EXPECT_GT(recovery.end, recovery.start);
}

TEST_F(JobTraceTest, AnotherControllerContinuesTheSameTrace) {
  world_.Create(JobToProfile());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.RestartController();
  ASSERT_TRUE(RunUntilIteration(60));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation == 1; }, 60));
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.spans.front().trace_id, TraceIdOf(world_.Read().metadata.uid));
  EXPECT_THAT(Named("recovery"), Not(IsEmpty()));
  std::map<std::string, std::string> parents;
  for (const Span& span : world_.spans) {
    EXPECT_EQ(span.trace_id, world_.spans.front().trace_id);
    const auto [found, is_new] = parents.try_emplace(span.span_id, span.parent_span_id);
    EXPECT_EQ(found->second, span.parent_span_id);
  }
  EXPECT_THAT(Named("job"), SizeIs(1));
}

TEST_F(JobTraceTest, AFailureNamesItsKindAndNotItsWords) {
  Json job = JobToProfile();
  job["spec"]["dataset"]["uri"] = "file:///private-folder";
  job["spec"]["podTemplate"]["spec"]["containers"] = {
      {{"name", "worker"}, {"env", {{{"name", "TOKEN"}, {"value", "private-token"}}}}}};
  world_.functions.FailNext("worker-1", InvalidArgumentError("private-words in row 7"), true);
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(200));
  ExpectOneTrace();
  const Span root = Named("job").front();
  EXPECT_TRUE(root.failed);
  EXPECT_EQ(Text(root, "lambdadnn.job.outcome"), "Failed");
  EXPECT_EQ(Text(root, "error.type"), FindCondition(world_.Read(), "Failed")->reason);
  std::set<std::string> errors;
  for (const Span& slice : Named("slice")) errors.insert(Text(slice, "error.type"));
  EXPECT_THAT(errors, testing::Contains("INVALID_ARGUMENT"));
  EXPECT_THAT(Encoded(), Not(HasSubstr("private")));
}

TEST_F(JobTraceTest, WhileAJobIsSuspendedItIsQueued) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.phase == "Suspended"; }, 60));
  const WallTime suspended = world_.time.clock.Wall();
  world_.RunUntil([] { return false; }, 500);
  world_.Patch({{"spec", {{"suspend", false}}}});
  const WallTime resumed = world_.time.clock.Wall();
  ASSERT_TRUE(world_.RunUntilFinished(200));
  ExpectOneTrace();
  const std::vector<Span> queued = Named("queued");
  ASSERT_THAT(queued, SizeIs(2));
  EXPECT_LE(queued[1].start, suspended + std::chrono::seconds(2));
  EXPECT_GE(queued[1].end, resumed - std::chrono::seconds(2));
  EXPECT_LE(queued[1].end, resumed + std::chrono::seconds(2));
  for (const Span& slice : Named("slice")) {
    EXPECT_TRUE(slice.end <= queued[1].start + std::chrono::seconds(2) ||
                slice.start >= queued[1].end - std::chrono::seconds(2))
        << Text(slice, "faas.invocation_id");
  }
}

TEST_F(JobTraceTest, AnotherPlanIsASpan) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["aggregation"] = JobWorld::DedicatedServers();
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"objective", {{"fixed", {{"functions", 4}, {"memory", "512Mi"}}}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  ASSERT_EQ(world_.Read().status.plan->revision, 2);
  ExpectOneTrace();
  ASSERT_THAT(Named("replan"), SizeIs(1));
  EXPECT_EQ(Number(Named("replan").front(), "lambdadnn.plan.revision"), 2);
  EXPECT_EQ(Number(Named("replan").front(), "lambdadnn.plan.functions"), 4);
  EXPECT_THAT(Named("plan"), SizeIs(1));
  EXPECT_THAT(Named("recovery"), IsEmpty());
}

TEST_F(JobTraceTest, ADeletedJobEndsWithItsDeletion) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  world_.RunUntil([] { return false; }, 5);
  ExpectOneTrace();
  ASSERT_THAT(Named("job"), SizeIs(1));
  EXPECT_EQ(Text(Named("job").front(), "lambdadnn.job.outcome"), "Deleted");
  EXPECT_FALSE(Named("job").front().failed);
}

TEST_F(JobTraceTest, AJobThatEndedBeforeAControllerCameIsSentOnlyWhenThatWasJustNow) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(200));
  const std::string root = Named("job").front().span_id;
  world_.spans.clear();
  world_.RestartController();
  world_.RunUntil([] { return false; }, 5);
  ASSERT_THAT(world_.spans, SizeIs(1));
  EXPECT_EQ(world_.spans.front().span_id, root);
  world_.spans.clear();
  world_.RunUntil([] { return false; }, 600);
  EXPECT_THAT(world_.spans, IsEmpty());
  world_.RestartController();
  world_.RunUntil([] { return false; }, 5);
  EXPECT_THAT(world_.spans, IsEmpty());
}

}  // namespace
}  // namespace lambdadnn
