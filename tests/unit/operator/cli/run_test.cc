// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/objectstore/memory_object_store.h"
#include "operator/api/job_validation.h"
#include "operator/backends/local/local_platform.h"
#include "operator/cli/run/measurement_files.h"
#include "operator/cli/run/run_options.h"
#include "operator/cli/run/run_output.h"
#include "operator/cli/run/run_results.h"
#include "operator/cli/run/run_view.h"
#include "tests/support/manual_runtime.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

RunView RunningView(int functions) {
  RunView view;
  view.name = "digits";
  view.status.phase = "Running";
  view.status.plan.emplace();
  view.status.plan->iterations = 200;
  view.status.plan->iterations_per_epoch = 100;
  view.status.progress.iteration = 50;
  view.status.progress.iterations = 200;
  view.status.progress.progress_percentage = 25;
  view.status.progress.loss = 0.5;
  view.status.progress.samples_per_second = 640;
  view.status.progress.estimated_remaining_seconds = 80;
  for (int i = 0; i < functions; ++i) {
    const std::string uid = "f" + std::to_string(i);
    ApplyEvent({{"type", "function"}, {"uid", uid}, {"group", "workers"}, {"state", "Ready"}},
               &view);
    ApplyEvent({{"type", "slice"},
                {"uid", uid},
                {"role", "worker-" + std::to_string(i)},
                {"outcome", "Started"}},
               &view);
  }
  return view;
}

TEST(RunView, ShowsProgressAndEveryFunction) {
  const auto lines = RenderLive(RunningView(2), 100, 24);
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines[0], AllOf(HasSubstr("digits"), HasSubstr("25 %"), HasSubstr("epoch 0/2"),
                              HasSubstr("iteration 50/200")));
  EXPECT_THAT(lines[1],
              AllOf(HasSubstr("loss 0.5000"), HasSubstr("640 samples/s"), HasSubstr("ETA 1m20s")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("worker-0"), HasSubstr("Running")));
}

TEST(RunView, ShowsTheCostSoFarOnceThereIsOne) {
  RunView view = RunningView(1);
  EXPECT_THAT(RenderLive(view, 100, 24)[1], testing::Not(HasSubstr("$")));
  view.status.usage.cost = 0.001234567;
  EXPECT_THAT(RenderLive(view, 100, 24)[1], HasSubstr("$0.001235"));
}

TEST(RunView, AProgressLineHoldsWhatTheLiveDisplayShows) {
  RunView view = RunningView(1);
  view.seconds = 12.34;
  view.status.usage.cost = 0.001234567;
  view.status.progress.test.accuracy = 0.9712;
  EXPECT_EQ(RenderProgressLine(view),
            "   12.3 s  epoch 0/2  iteration 50/200  loss 0.5000  test 97.12 %  640 samples/s  "
            "ETA 1m20s  $0.001235");
}

// What a RunOutput prints, by a clock that is set by hand.
class RunOutputTest : public testing::Test {
 protected:
  ~RunOutputTest() override {
    std::fclose(out_);
    std::free(text_);
  }
  std::vector<std::string> Lines() {
    std::fflush(out_);
    std::vector<std::string> lines = Split(text_, '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }
  static Job RunningJob(int64_t iteration) {
    Job job;
    job.metadata.name = "digits";
    job.status = RunningView(0).status;
    job.status.progress.iteration = iteration;
    return job;
  }

  ManualRuntime runtime_;
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* const out_ = open_memstream(&text_, &size_);
};

TEST_F(RunOutputTest, PlainProgressLinesComeEveryFewSecondsAndOnlyWithNews) {
  RunOutput output(runtime_.runtime, RunOutputMode::kLines, "", out_);
  runtime_.clock.SleepFor(FromSeconds(10));
  output.Update(RunningJob(1));
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_THAT(Lines()[0], AllOf(HasSubstr("iteration 1/200"), HasSubstr("loss 0.5000")));
  runtime_.clock.SleepFor(FromSeconds(1));
  output.Update(RunningJob(2));
  EXPECT_THAT(Lines(), SizeIs(1)) << "too soon";
  runtime_.clock.SleepFor(FromSeconds(5));
  output.Update(RunningJob(1));
  EXPECT_THAT(Lines(), SizeIs(1)) << "no news";
  output.Update(RunningJob(3));
  ASSERT_THAT(Lines(), SizeIs(2));
  EXPECT_THAT(Lines()[1], HasSubstr("iteration 3/200"));
}

TEST_F(RunOutputTest, WithoutATerminalNothingIsErased) {
  RunOutput output(runtime_.runtime, RunOutputMode::kLines, "", out_);
  output.Say("isolation: pacing");
  output.OnEvent({{"type", "evaluation"}, {"epoch", 0}, {"accuracy", 0.5}, {"loss", 1.0}});
  runtime_.clock.SleepFor(FromSeconds(10));
  output.Update(RunningJob(1));
  output.Finish();
  EXPECT_THAT(Lines(), SizeIs(3));
  for (const std::string& line : Lines()) EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
}

TEST_F(RunOutputTest, JsonIsOneObjectALineAndNothingElse) {
  RunOutput output(runtime_.runtime, RunOutputMode::kJson, "", out_);
  output.Say("of two\nlines, with \"quotes\"");
  output.OnEvent({{"type", "event"}, {"message", std::string("not UTF-8: \xff")}});
  output.OnEvent({{"type", "iteration"}, {"iteration", 1}});
  runtime_.clock.SleepFor(FromSeconds(10));
  output.Update(RunningJob(1));
  output.Finish();
  std::vector<std::string> types;
  for (const std::string& line : Lines()) {
    const Json object = Json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    types.push_back(object["type"]);
  }
  EXPECT_THAT(types, testing::ElementsAre("note", "event", "iteration", "status"));
}

TEST(RunView, NeverWiderOrHigherThanTheTerminal) {
  const RunView view = RunningView(30);
  for (const int columns : {1, 2, 10, 40, 79, 200}) {
    for (const int rows : {1, 2, 5, 23, 60}) {
      const auto lines = RenderLive(view, columns, rows);
      EXPECT_LE(std::ssize(lines), rows);
      for (const std::string& line : lines) {
        EXPECT_LE(DisplayWidth(line), static_cast<size_t>(columns));
      }
    }
  }
}

TEST(RunView, SaysThatMoreFunctionsAreThereThanFit) {
  const auto lines = RenderLive(RunningView(30), 80, 10);
  EXPECT_THAT(lines, testing::Contains(HasSubstr("30 functions in all")));
}

TEST(RunView, AFunctionsEndIsShownWithItsReason) {
  RunView view = RunningView(1);
  ApplyEvent({{"type", "function"},
              {"uid", "f0"},
              {"group", "workers"},
              {"state", "Gone"},
              {"reason", "Killed"}},
             &view);
  EXPECT_THAT(RenderLive(view, 80, 24).back(), AllOf(HasSubstr("Gone"), HasSubstr("Killed")));
}

TEST(RunView, EventsWithoutATerminal) {
  EXPECT_THAT(RenderEventLine({{"type", "iteration"}, {"iteration", 3}, {"time", 1.0}}), IsEmpty());
  EXPECT_THAT(RenderEventLine({{"type", "evaluation"},
                               {"epoch", 0},
                               {"accuracy", 0.9712},
                               {"loss", 0.1},
                               {"time", 1.0}}),
              AllOf(HasSubstr("epoch 1 done"), HasSubstr("97.12 %")));
  EXPECT_THAT(RenderEventLine({{"type", "evaluation"},
                               {"epoch", 1},
                               {"meanAbsoluteError", 0.25},
                               {"loss", 0.1},
                               {"time", 1.0}}),
              HasSubstr("epoch 2 done: mean absolute error 0.25, test loss 0.1000"));
  EXPECT_THAT(RenderEventLine({{"type", "event"},
                               {"condition", "Degraded"},
                               {"status", "True"},
                               {"reason", "FunctionLost"},
                               {"message", "gone"},
                               {"time", 1.0}}),
              HasSubstr("FunctionLost: gone"));
  // Of a failure, once.
  const auto failed = [](const std::string& condition) {
    return RenderEventLine({{"type", "event"},
                            {"condition", condition},
                            {"status", "True"},
                            {"reason", "InvalidSpec"},
                            {"message", "bad"},
                            {"time", 1.0}});
  };
  EXPECT_THAT(failed("FailureTarget"), IsEmpty());
  EXPECT_THAT(failed("Failed"), HasSubstr("InvalidSpec: bad"));
  EXPECT_THAT(failed("Stalled"), IsEmpty());
}

TEST(RunOptions, TheStoreIsAFolderOfTheRunUnlessSaidOtherwise) {
  Json job = {{"metadata", {{"name", "a"}}}, {"spec", Json::object()}};
  PrepareJob(RunOptions{}, "/runs/a", &job);
  EXPECT_EQ(job["spec"]["objectStore"]["uri"], "file:///runs/a/store");
  EXPECT_EQ(job["spec"]["backend"], "Local");
  Json other = {{"metadata", {{"name", "a"}}}, {"spec", {{"objectStore", {{"bucket", "b"}}}}}};
  PrepareJob(RunOptions{}, "/runs/a", &other);
  EXPECT_FALSE(other["spec"]["objectStore"].contains("uri"));
  RunOptions options;
  options.store = "s3://mine";
  PrepareJob(options, "/runs/a", &other);
  EXPECT_EQ(other["spec"]["objectStore"]["uri"], "s3://mine");
}

TEST(RunOptions, TheStoreOfTheCommandTakesThePlaceOfABucketAndItsEndpoint) {
  Json job = {{"metadata", {{"name", "a"}}},
              {"spec",
               {{"objectStore",
                 {{"bucket", "b"}, {"endpoint", "https://s3.example.com"}, {"prefix", "p"}}}}}};
  RunOptions options;
  options.store = "file:///tmp/st";
  PrepareJob(options, "/runs/a", &job);
  EXPECT_EQ(job["spec"]["objectStore"], (Json{{"uri", "file:///tmp/st"}, {"prefix", "p"}}));
  for (const FieldError& error : ValidateJob(job)) {
    EXPECT_THAT(error.path, testing::Not(testing::StartsWith("spec.objectStore"))) << error.message;
  }
}

TEST(RunOptions, WhatIsResumedHasItsFolderAndItsStore) {
  RunOptions options;
  options.store = "file:///tmp/st";
  options.directory = "/runs/a";
  EXPECT_TRUE(CheckOptions(options).ok());
  options.resume = "latest";
  EXPECT_THAT(CheckOptions(options).message(), HasSubstr("leave --store away"));
  options.store.clear();
  EXPECT_EQ(CheckOptions(options).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(CheckOptions(options).message(), HasSubstr("leave --out away"));
  options.directory.clear();
  EXPECT_TRUE(CheckOptions(options).ok());
}

TEST(RunOptions, FoldersAreNamedAfterJobAndTime) {
  EXPECT_EQ(DefaultDirectory("digits", WallTime(std::chrono::seconds(0))),
            "runs/digits-19700101-000000");
}

TEST(RunOptions, ResumingWhatIsNoRunIsAnError) {
  const auto result = ResumeDirectory(MakeTempDir());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(result.status().message(), HasSubstr("no run in this folder"));
}

TEST(LocalPlatform, FunctionsTogetherHaveTheMachineAndNoMore) {
  const Platform platform = LocalPlatform({2, 8192});
  EXPECT_EQ(platform.total_milli_cpu, 2000);
  EXPECT_LT(platform.total_memory_mib, 8192);
  EXPECT_LE(platform.memory.max_mib * platform.milli_cpu_per_gib / 1024, 1000);
}

TEST(LocalPlatform, AContainerOfHalfACpuIsAMachineOfThatSize) {
  const Machine machine{0.5, 2048};
  EXPECT_EQ(LocalPlatform(machine).total_milli_cpu, 500);
  EXPECT_THAT(DescribePlatform(machine, Platform{}), HasSubstr("0.5 cores, 2 GiB of memory"));
}

TEST(LocalPlatform, TheMachineLimitsWhatAPlatformFileLeavesOut) {
  Platform platform;
  LimitToMachine({2, 8192}, &platform);
  EXPECT_EQ(platform.total_milli_cpu, 2000);
  EXPECT_EQ(platform.total_memory_mib, LocalPlatform({2, 8192}).total_memory_mib);
  platform.total_milli_cpu = 700;
  platform.total_memory_mib = {};
  LimitToMachine({4, 4096}, &platform);
  EXPECT_EQ(platform.total_milli_cpu, 700) << "what it states stays";
  EXPECT_EQ(platform.total_memory_mib, LocalPlatform({4, 4096}).total_memory_mib);
}

TEST(LocalPlatform, FunctionsHaveTheGpusOfTheMachineWhateverAFileSays) {
  const Machine with{2, 8192, {"0", "1"}};
  EXPECT_EQ(LocalPlatform(with).total_gpus, 2);
  EXPECT_GE(LocalPlatform(with).memory.max_mib, 2048) << "CUDA takes one GiB";
  EXPECT_THAT(DescribePlatform(with, Platform{}), HasSubstr("8 GiB of memory, 2 GPUs"));
  const Platform without = LocalPlatform({2, 8192});
  EXPECT_TRUE(without.total_gpus.known());
  EXPECT_EQ(without.total_gpus, 0);
  struct Row {
    OptionalQuantity stated;
    double limited;
  };
  for (const Row& row : {Row{{}, 2}, Row{1, 1}, Row{2, 2}, Row{8, 2}, Row{0, 0}}) {
    Platform platform;
    platform.total_gpus = row.stated;
    LimitToMachine(with, &platform);
    EXPECT_EQ(platform.total_gpus, row.limited);
  }
}

TEST(LocalPlatform, MeasuringTheStoreLeavesNothing) {
  SystemClock clock;
  ThreadExecutor executor;
  SeededRandom random(1);
  Runtime runtime{clock, executor, random};
  MemoryObjectStore store;
  Platform platform;
  ASSERT_TRUE(MeasureStore(runtime, store, &platform).ok());
  EXPECT_GT(platform.store_bytes_per_second, 0);
  EXPECT_GT(platform.store_request_seconds, 0);
  EXPECT_THAT(*ListAll(store, ""), IsEmpty());
}

TEST(MeasurementFiles, GiveBackWhatTheyKept) {
  const std::string directory = MakeTempDir();
  MeasurementFiles files(directory, true);
  const std::string name = KeptProfileName("abc");
  EXPECT_EQ(files.Read(name, 10).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(files.Write(name, "0123456789").ok());
  EXPECT_EQ(files.Read(name, 10).value(), "0123456789");
  EXPECT_EQ(files.Read(name, 9).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(*ReadFile(directory + "/profiles/abc.json"), "0123456789");
  EXPECT_EQ(files.Describe(name), directory + "/profiles/abc.json");
  EXPECT_EQ(MeasurementFiles(directory, false).Read(name, 10).status().code(),
            StatusCode::kNotFound)
      << "what is measured again is not read";
  EXPECT_TRUE(files.Delete(name).ok());
  EXPECT_TRUE(files.Delete(name).ok()) << "there is none any more";
  EXPECT_EQ(files.Read(name, 10).status().code(), StatusCode::kNotFound);
}

TEST(MeasurementFiles, WithoutAHomeKeepNothing) {
  MeasurementFiles files("", true);
  EXPECT_TRUE(files.Write(kStartRecordName, "text").ok());
  EXPECT_EQ(files.Read(kStartRecordName, 10).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(files.Delete(kStartRecordName).ok());
}

TEST(RunResults, ProfileIsYamlForAJob) {
  const std::string text = FormatProfile(
      Json::parse(R"({"profile": {"trainingSamples": 5, "trainingRate": {"slope": "0.5"}}})"),
      "text");
  EXPECT_EQ(text,
            "spec:\n  profile:\n    trainingRate:\n      slope: \"0.5\"\n    trainingSamples: 5\n");
}

}  // namespace
}  // namespace lambdadnn
