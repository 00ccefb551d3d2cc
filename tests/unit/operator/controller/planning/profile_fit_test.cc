// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/profile_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

Platform TwoCores() {
  Platform platform;
  platform.memory = {256, 1024, 64};
  platform.milli_cpu_per_gib = 1000;
  platform.total_milli_cpu = 2000;
  return platform;
}

ProfileSample Measured(int memory_mib, double iteration_seconds, int batch = 32) {
  (void)batch;
  ProfileSample sample;
  sample.memory_mib = memory_mib;
  sample.record.profile_iteration_seconds.assign(4, iteration_seconds);
  sample.record.metrics = {{"trainingSamples", 12000}, {"parameters", 1000}, {"testSamples", 10}};
  return sample;
}

TEST(ProfilePlan, MeasuresThreeSizesWithAsManyFunctionsAsFillTheMachine) {
  JobSpec spec;
  spec.training.local_batch_size = 32;
  const ProfilePlan plan = MakeProfilePlan(spec, TwoCores());
  EXPECT_THAT(plan.memory_mib, testing::ElementsAre(1024, 640, 256));
  EXPECT_EQ(plan.functions, 2);
  EXPECT_EQ(plan.batch_size, 32);
}

TEST(ProfilePlan, AFixedSizeIsMeasuredAlone) {
  JobSpec spec;
  spec.objective.fixed = Objective::Fixed{2, 512};
  EXPECT_THAT(MakeProfilePlan(spec, TwoCores()).memory_mib, testing::ElementsAre(512));
}

TEST(ProfilePlan, OfAFixedPlanTheBatchIsThatOfItsFunctions) {
  JobSpec spec;
  spec.training.global_batch_size = 60;
  EXPECT_EQ(MakeProfilePlan(spec, TwoCores()).batch_size, 30);
  for (const int functions : {1, 4}) {
    spec.objective.fixed = Objective::Fixed{functions, 256};
    EXPECT_EQ(MakeProfilePlan(spec, TwoCores()).batch_size, 60 / functions);
  }
}

TEST(ProfilePlan, NoFunctionGetsMoreThanTheMachine) {
  Platform platform = TwoCores();
  platform.memory.max_mib = 10240;
  EXPECT_EQ(MakeProfilePlan(JobSpec{}, platform).memory_mib.front(), 2048);
}

TEST(ProfilePlan, WhatTheMeasuringFunctionLeavesIsFilled) {
  JobSpec spec;
  ProfilePlan plan = MakeProfilePlan(spec, TwoCores());
  EXPECT_EQ(plan.filler_milli_cpu, 1000);
  spec.objective.fixed = Objective::Fixed{2, 256};
  plan = MakeProfilePlan(spec, TwoCores());
  EXPECT_EQ(plan.functions, 2);
  EXPECT_EQ(plan.filler_milli_cpu, 250) << "as the other worker of the plan will";
  spec.objective.fixed = Objective::Fixed{8, 256};
  plan = MakeProfilePlan(spec, TwoCores());
  EXPECT_EQ(plan.functions, 4);
  EXPECT_EQ(plan.filler_milli_cpu, 583) << "as seven others will, as far as there are cores";
  spec.objective.fixed = Objective::Fixed{1, 256};
  EXPECT_EQ(MakeProfilePlan(spec, TwoCores()).functions, 1) << "one function runs alone";
}

TEST(ProfilePlan, WhoFillsFindsRoomOnAMachine) {
  Platform platform = TwoCores();
  platform.nodes = {{4096, 1500, 10}, {4096, 1500, 10}};
  EXPECT_EQ(MakeProfilePlan(JobSpec{}, platform).functions, 2);
  platform.nodes.pop_back();
  EXPECT_EQ(MakeProfilePlan(JobSpec{}, platform).functions, 1);
}

TEST(ProfilePlan, StartsNoMoreFunctionsThanThereAreGpus) {
  struct Row {
    int gpu;
    OptionalQuantity gpus;
    int functions;
  };
  JobSpec spec;
  for (const Row& row : {Row{0, 0, 2}, Row{1, 1, 1}, Row{1, 2, 2}, Row{1, 0, 1}, Row{1, {}, 2}}) {
    spec.functions.gpu = row.gpu;
    Platform platform = TwoCores();
    platform.total_gpus = row.gpus;
    const ProfilePlan plan = MakeProfilePlan(spec, platform);
    EXPECT_EQ(plan.functions, row.functions) << row.gpu << " of " << row.gpus;
    EXPECT_EQ(plan.gpu, row.gpu);
  }
  Platform platform = TwoCores();
  platform.nodes = {{4096, 4000, 10, 1}, {4096, 4000, 10}};
  EXPECT_EQ(MakeProfilePlan(spec, platform).functions, 1);
}

TEST(FitRate, AMeasuredLineStaysALine) {
  const TrainingRate rate = FitRate({{256, 300}, {640, 700}, {1024, 1080}});
  EXPECT_FALSE(rate.max_samples_per_second.has_value());
  EXPECT_NEAR(rate.At(640), 693, 1);
}

TEST(FitRate, ACeilingIsSeen) {
  // One thread has nothing of a second core.
  const TrainingRate rate = FitRate({{512, 1000}, {1024, 2000}, {1536, 2010}, {2048, 1990}});
  ASSERT_TRUE(rate.max_samples_per_second.has_value());
  EXPECT_NEAR(rate.At(2048), 2000, 1e-6);
  EXPECT_NEAR(rate.At(512), 1000, 1e-6);
  EXPECT_NEAR(rate.At(256), 500, 1e-6);
}

TEST(FitProfile, WhatAStepCostsBesideItsSamplesIsNotInTheRate) {
  // 0.2 s a step of 32 at half a core: 0.1 s of CPU, 0.02 s of which are not for samples.
  ProfileSample sample = Measured(512, 0.2);
  sample.record.metrics["stepCpuSeconds"] = 0.1;
  sample.record.metrics["iterationCpuSeconds"] = 0.02;
  sample.record.metrics["pushCpuSeconds"] = 0.001;
  sample.record.metrics["updateCpuSecondsPerByte"] = 1e-9;
  sample.record.metrics["startCpuSeconds"] = 0.6;
  sample.record.metrics["loadCpuSecondsPerSample"] = 2e-5;
  sample.record.metrics["storeRequestSeconds"] = 0.003;
  sample.record.metrics["storeBytesPerSecond"] = 2e8;
  sample.record.metrics["storeDeviationSeconds"] = 0.002;
  sample.record.metrics["directPullCpuSecondsPerByte"] = 4e-10;
  sample.record.metrics["directSendCpuSeconds"] = 5e-5;
  sample.record.metrics["directSeconds"] = 2e-4;
  sample.record.metrics["directBytesPerSecond"] = 3e8;
  sample.record.metrics["directPairWaitSeconds"] = 6e-4;
  sample.record.metrics["aloneCpuSeconds"] = 5e-4;
  sample.record.metrics["directPairCpuSeconds"] = 1e-3;
  sample.record.metrics["directPairCpuSecondsPerByte"] = 4e-9;
  sample.record.metrics["directFourCpuSeconds"] = 2e-3;
  sample.record.metrics["directWorkerCpuSeconds"] = 7e-4;
  sample.record.metrics["directWorkerCpuSecondsPerByte"] = 2e-9;
  sample.record.metrics["directServerCpuSeconds"] = 8e-4;
  sample.record.metrics["directServerCpuSecondsPerByte"] = 3e-9;
  sample.record.metrics["directFourCpuSecondsPerByte"] = 5e-9;
  sample.record.metrics["directServerOfThreeCpuSeconds"] = 9e-4;
  sample.record.metrics["directServerOfThreeCpuSecondsPerByte"] = 8e-9;
  sample.record.metrics["storePairCpuSeconds"] = 3e-3;
  sample.record.metrics["storePairCpuSecondsPerByte"] = 6e-9;
  sample.record.metrics["storeWorkerCpuSeconds"] = 2e-4;
  sample.record.metrics["storeWorkerCpuSecondsPerByte"] = 7e-9;
  sample.record.metrics["storeServerCpuSeconds"] = 4e-4;
  sample.record.metrics["storeServerCpuSecondsPerByte"] = 9e-9;
  sample.record.metrics["storeServerOfThreeCpuSeconds"] = 6e-4;
  sample.record.metrics["storeServerOfThreeCpuSecondsPerByte"] = 1e-8;
  sample.record.metrics["doorbellSendCpuSeconds"] = 2e-5;
  sample.record.metrics["doorbellReceiveCpuSeconds"] = 4e-5;
  ProfileSample later = sample;
  later.record.metrics["startCpuSeconds"] = 1.9;
  const auto fit = FitProfile({sample, later}, 32, {});
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->profile.training_rate.At(512), 32 / 0.16, 1e-6);
  EXPECT_EQ(fit->profile.iteration_cpu_seconds, 0.02);
  EXPECT_EQ(fit->profile.update_cpu_seconds_per_byte, 1e-9);
  EXPECT_EQ(fit->profile.direct, (DirectTransfer{{0, 0, 0, 4e-10}, 5e-5, 0, 2e-4, 0, 3e8, 6e-4}));
  EXPECT_EQ(fit->profile.host,
            (HostCpu{5e-4, 1e-3, 4e-9, 2e-3, 7e-4, 2e-9, 8e-4, 3e-9, 5e-9, 9e-4, 8e-9}));
  EXPECT_EQ(fit->profile.store_host,
            (HostCpu{0, 3e-3, 6e-9, 0, 2e-4, 7e-9, 4e-4, 9e-9, 0, 6e-4, 1e-8}));
  EXPECT_EQ(fit->profile.doorbell, (DoorbellCpu{2e-5, 4e-5}));
  EXPECT_EQ(fit->profile.load_cpu_seconds_per_sample, 2e-5);
  EXPECT_EQ(fit->profile.transfer.push_seconds, 0.001);
  EXPECT_EQ(fit->profile.store_request_seconds, 0.003);
  EXPECT_EQ(fit->profile.store_bytes_per_second, 2e8);
  EXPECT_EQ(fit->profile.store_deviation_seconds, 0.002);
  EXPECT_EQ(fit->profile.start_cpu_seconds, 0.6) << "of the process' first slice";
}

TEST(FitProfile, TheStoreOfSeveralStreamsIsThatOfTheLeastThrottledFunction) {
  std::vector<ProfileSample> samples = {Measured(1024, 0.1), Measured(256, 0.4)};
  EXPECT_TRUE(FitProfile(samples, 32, {})->profile.store_streams.empty()) << "by older functions";
  const double of_each[2][3] = {{1e8, 1.9e8, 1.8e8}, {0.5e8, 0.5e8, 0.5e8}};
  for (size_t i = 0; i < samples.size(); ++i) {
    for (size_t k = 0; k < std::size(kProbedStreams); ++k) {
      samples[i].record.metrics[StoreStreamsMetric(kProbedStreams[k])] = of_each[i][k];
    }
  }
  using Point = WorkloadProfile::StorePoint;
  EXPECT_THAT(FitProfile(samples, 32, {})->profile.store_streams,
              testing::ElementsAre(Point{1, 1e8}, Point{2, 1.9e8}, Point{4, 1.9e8}))
      << "more streams are never slower together";
}

TEST(FitProfile, MemoryIsThatOfTheFirstSliceOfAProcess) {
  std::vector<ProfileSample> samples = {Measured(1024, 0.1), Measured(512, 0.2),
                                        Measured(256, 0.4)};
  const double base[] = {150, 100, 160};
  const double per_sample[] = {0, 5000, 10};
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].record.metrics["baseMemoryMib"] = base[i];
    samples[i].record.metrics["bytesPerSample"] = per_sample[i];
    samples[i].record.metrics["leastMemoryMib"] = base[i] + 20;
    samples[i].record.metrics["loadedBytesPerSample"] = 792;
    samples[i].record.metrics["streamRequestsPerSample"] = 2;
    samples[i].record.metrics["streamBytesPerSample"] = 785;
    samples[i].record.metrics["openRequests"] = 5;
    samples[i].record.metrics["openLists"] = 1;
    samples[i].record.metrics["loadRequestsPerSample"] = 0.01;
    samples[i].record.metrics["streamCpuSecondsPerSample"] = 1e-4 * static_cast<double>(i + 1);
    samples[i].record.metrics["streamSecondsPerSample"] = 1e-3 * static_cast<double>(i + 1);
  }
  const auto fit = FitProfile(samples, 32, {});
  ASSERT_TRUE(fit.ok());
  EXPECT_EQ(fit->profile.worker_base_memory_mib, 100);
  EXPECT_EQ(fit->profile.worker_bytes_per_sample, 5000);
  EXPECT_EQ(fit->profile.worker_least_memory_mib, 120);
  EXPECT_EQ(fit->profile.loaded_bytes_per_sample, 792);
  EXPECT_EQ(fit->profile.stream_requests_per_sample, 2);
  EXPECT_EQ(fit->profile.stream_bytes_per_sample, 785);
  EXPECT_EQ(fit->profile.open_requests, 5);
  EXPECT_EQ(fit->profile.open_lists, 1);
  EXPECT_EQ(fit->profile.load_requests_per_sample, 0.01);
  EXPECT_EQ(fit->profile.stream_cpu_seconds_per_sample, 2e-4);
  EXPECT_EQ(fit->profile.stream_seconds_per_sample, 1e-3) << "what a quota held up least";
}

TEST(AtSize, AStepTakesAsMuchLongerAsTheShareOfACoreIsSmaller) {
  Platform platform = TwoCores();
  ProfileSample whole = Measured(2048, 0.1);
  whole.record.metrics["stepCpuSeconds"] = 0.1;
  whole.record.profile_evaluation_samples_per_second = 800;
  const ProfileSample quarter = AtSize(whole, platform, 256);
  EXPECT_EQ(quarter.memory_mib, 256);
  EXPECT_THAT(quarter.record.profile_iteration_seconds, testing::Each(testing::DoubleEq(0.4)));
  EXPECT_EQ(quarter.record.profile_evaluation_samples_per_second, 200);
  EXPECT_THAT(AtSize(whole, platform, 1024).record.profile_iteration_seconds,
              testing::Each(testing::DoubleEq(0.1)))
      << "one thread has nothing of a second core";
  platform.milli_cpu_per_gib = 0;
  EXPECT_THAT(AtSize(whole, platform, 256).record.profile_iteration_seconds,
              testing::Each(testing::DoubleEq(0.1)));
}

TEST(AtSize, AStepOnAGpuTakesAsLongInFunctionsOfEachSize) {
  ProfileSample whole;
  whole.memory_mib = 1024;
  whole.record.profile_iteration_seconds = {0.01, 0.02};
  whole.record.profile_evaluation_samples_per_second = 500;
  const ProfileSample smaller = AtSize(whole, TwoCores(), 256, 1);
  EXPECT_EQ(smaller.memory_mib, 256);
  EXPECT_EQ(smaller.record.profile_iteration_seconds, whole.record.profile_iteration_seconds);
  EXPECT_EQ(smaller.record.profile_evaluation_samples_per_second, 500);
  EXPECT_NE(AtSize(whole, TwoCores(), 256).record.profile_iteration_seconds,
            whole.record.profile_iteration_seconds);
}

TEST(AtSize, StepsOfTwoThreadsTakeTwiceAsLongOnOneCore) {
  const Platform platform = TwoCores();
  ProfileSample whole = Measured(2048, 0.1);
  whole.record.metrics["stepCpuSeconds"] = 0.2;
  const auto seconds = [&](int memory_mib) {
    return AtSize(whole, platform, memory_mib).record.profile_iteration_seconds.front();
  };
  EXPECT_DOUBLE_EQ(seconds(2048), 0.1);
  EXPECT_DOUBLE_EQ(seconds(1536), 0.2) << "one thread, whatever is left of a second core";
  EXPECT_DOUBLE_EQ(seconds(1024), 0.2);
  EXPECT_DOUBLE_EQ(seconds(512), 0.4);
}

double WholeCore(double cold_start_seconds, const Platform& platform, int functions,
                 int memory_mib) {
  return WithAWholeCore(cold_start_seconds, 0.5, platform, functions, memory_mib);
}

TEST(WithAWholeCore, AColdStartLosesWhatItsQuotaCost) {
  Platform platform = TwoCores();
  EXPECT_EQ(WholeCore(3, platform, 1, 256), 3) << "no quota holds yet";
  platform.quota_while_starting = true;
  EXPECT_EQ(WholeCore(3, platform, 1, 256), 1.5);
  EXPECT_EQ(WholeCore(3, platform, 1, 2048), 3);
  EXPECT_EQ(WholeCore(1, platform, 1, 256), 0.5) << "no less than its CPU time";
}

// The planner adds for the functions of a plan what it takes off here for those that were measured.
TEST(WithAWholeCore, AColdStartLosesWhatOthersBesideItCost) {
  const Platform platform = TwoCores();
  EXPECT_EQ(WholeCore(1.4, platform, 2, 1024), 1.4);
  EXPECT_DOUBLE_EQ(WholeCore(1.4, platform, 4, 1024), 0.9);
  EXPECT_DOUBLE_EQ(0.9 + 0.5 * StartSlowdown(platform, 4, 1), 1.4);
}

TEST(WithAWholeCore, AColdStartOfPodsLosesWhatStartingThemAllCost) {
  Platform platform = TwoCores();
  EXPECT_EQ(PodStartSeconds(platform, 6), 0) << "processes";
  platform.pod_start_cpu_seconds = 0.4;
  EXPECT_EQ(PodStartSeconds(platform, 2), 0) << "a core each";
  EXPECT_EQ(WholeCore(3, platform, 2, 2048), 3);
  EXPECT_DOUBLE_EQ(WholeCore(4, platform, 6, 2048), 4 - 2 * 0.5 - 2 * 0.4);
}

TEST(AtSize, StepsThatNoQuotaHeldUpYetCountByTheirCpuTime) {
  ProfileSample half = Measured(512, 0.12);
  half.record.metrics["stepCpuSeconds"] = 0.1;
  EXPECT_THAT(AtSize(half, TwoCores(), 512).record.profile_iteration_seconds,
              testing::Each(testing::DoubleEq(0.2)));
}

TEST(FitProfile, FunctionsUnderAQuotaSayNothingOfHowLongTwoWaitForEachOther) {
  ProfileSample whole = Measured(1024, 0.01);
  whole.record.metrics["directPairWaitSeconds"] = 0.003;
  ProfileSample part = Measured(768, 0.01);
  part.record.metrics["directPairWaitSeconds"] = 0.009;
  part.core_share = 0.99;
  const auto wait = [](const std::vector<ProfileSample>& samples) {
    return FitProfile(samples, 32, {})->profile.direct.pair_wait_seconds;
  };
  EXPECT_EQ(wait({whole}), 0.003);
  EXPECT_EQ(wait({part}), 0);
  EXPECT_EQ(wait({part, whole}), 0.003);
  EXPECT_EQ(wait({whole, part}), 0.003);
}

TEST(FitProfile, ANoisyClockOfOneSizeMovesNoRate) {
  // Steps cost next to nothing but their fixed part: what is left for samples is all noise.
  std::vector<ProfileSample> samples = {Measured(1024, 0.1), Measured(512, 0.2),
                                        Measured(256, 0.4)};
  const double step[] = {0.05, 0.06, 0.12};
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].record.metrics["stepCpuSeconds"] = step[i];
    samples[i].record.metrics["iterationCpuSeconds"] = 0.045;
  }
  const auto fit = FitProfile(samples, 32, {});
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->profile.residual, 0, 1e-9);
  EXPECT_NEAR(fit->profile.training_rate.At(512), 32 / (0.2 * 0.25), 1e-6);
}

TEST(FitProfile, WhatAnExchangeCostsAStepIsOverheadNotRate) {
  ProfileSample sample = Measured(512, 0.2);
  sample.record.metrics["stepCpuSeconds"] = 0.1;
  sample.record.metrics["iterationCpuSeconds"] = 0.02;
  sample.record.metrics["disturbedCpuSeconds"] = 0.03;
  const auto fit = FitProfile({sample}, 32, {});
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->profile.training_rate.At(512), 32 / 0.16, 1e-6);
  EXPECT_EQ(fit->profile.iteration_cpu_seconds, 0.02);
  EXPECT_EQ(fit->profile.disturbed_cpu_seconds, 0.03);
}

TEST(FitProfile, AMeasurementThatChangesUnderWayIsNotTrusted) {
  ProfileSample sample = Measured(512, 0.1);
  sample.record.profile_iteration_seconds = {0.1, 0.1, 0.2, 0.2};
  const auto fit = FitProfile({sample}, 32, {});
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->profile.residual, 1.0 / 3, 1e-9);
  EXPECT_THAT(fit->worst, testing::HasSubstr("100 % longer"));
}

TEST(FitLine, ExactLineIsFoundAgain) {
  const TrainingRate rate = FitLine({{256, 2 * 256 + 5}, {512, 2 * 512 + 5}, {1024, 2 * 1024 + 5}});
  EXPECT_NEAR(rate.slope, 2, 1e-9);
  EXPECT_NEAR(rate.intercept, 5, 1e-6);
}

TEST(FitLine, OnePointGoesThroughTheOrigin) {
  const TrainingRate rate = FitLine({{512, 100}});
  EXPECT_DOUBLE_EQ(rate.At(1024), 200);
  EXPECT_DOUBLE_EQ(FitLine({}).slope, 0);
}

TEST(FitLine, NeverFallsWithMemory) {
  const TrainingRate rate = FitLine({{256, 900}, {512, 700}, {1024, 500}});
  EXPECT_GT(rate.slope, 0);
  EXPECT_EQ(rate.intercept, 0);
}

TEST(FitProfile, RatesAreBatchOverMeanSeconds) {
  // 32 samples in 0.1 s and in 0.2 s: 320 and 160 samples/s at 1024 and 512 MiB.
  const auto fit = FitProfile({Measured(1024, 0.1), Measured(512, 0.2)}, 32, {1.5, 2.5, 0.005});
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->profile.training_rate.At(512), 160, 1e-6);
  EXPECT_NEAR(fit->profile.training_rate.At(768), 240, 1e-6);
  EXPECT_EQ(fit->profile.training_samples, 12000);
  EXPECT_EQ(fit->profile.model_bytes, 4000);
  EXPECT_EQ(fit->profile.cold_start_seconds, 1.5);
  EXPECT_EQ(fit->profile.release_seconds, 2.5);
  EXPECT_EQ(fit->profile.slice_overhead_seconds, 0.005) << "each slice is asked for through hops";
  EXPECT_NEAR(fit->profile.residual, 0, 1e-9);
}

TEST(FitProfile, AnEvaluationIsHeldUpByAQuotaAsStepsAre) {
  std::vector<ProfileSample> samples = {Measured(1024, 0.1), Measured(512, 0.15)};
  samples[0].record.profile_evaluation_samples_per_second = 900;
  samples.push_back(AtSize(samples[1], TwoCores(), 256));
  const Result<ProfileFit> fit = FitProfile(samples, 32, {});
  ASSERT_TRUE(fit.ok());
  const WorkloadProfile& profile = fit->profile;
  EXPECT_EQ(profile.evaluation_samples, 10);
  for (const int memory_mib : {256, 512, 1024}) {
    EXPECT_NEAR(profile.evaluation_rate.At(memory_mib) / profile.training_rate.At(memory_mib),
                900 / 320.0, 1e-6);
  }
}

TEST(FitProfile, AnotherSliceTakesWritingAndReadingACheckpoint) {
  std::vector<ProfileSample> samples = {Measured(1024, 0.1), Measured(512, 0.2),
                                        Measured(256, 0.4)};
  samples[0].record.metrics["checkpointSeconds"] = 0.01;
  samples[0].record.metrics["checkpointCpuSeconds"] = 0.004;
  samples[0].record.metrics["restoreSeconds"] = 0.02;
  const Result<ProfileFit> fit = FitProfile(samples, 32, {1});
  ASSERT_TRUE(fit.ok());
  EXPECT_DOUBLE_EQ(fit->profile.checkpoint_seconds, 0.01);
  EXPECT_DOUBLE_EQ(fit->profile.checkpoint_cpu_seconds, 0.004);
  EXPECT_DOUBLE_EQ(fit->profile.slice_overhead_seconds, 0.03);
}

TEST(FitProfile, AStragglingPointShowsInTheResidual) {
  const auto fit =
      FitProfile({Measured(1024, 0.1), Measured(512, 0.2), Measured(768, 0.4)}, 32, {});
  ASSERT_TRUE(fit.ok());
  EXPECT_GT(fit->profile.residual, 0.5);
  EXPECT_THAT(fit->worst, testing::HasSubstr("768 MiB"));
}

TEST(FitProfile, NothingMeasuredIsAnErrorThatSaysWhatToDo) {
  const auto none = FitProfile({}, 32, {});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().message(), testing::HasSubstr("spec.profile"));
  ProfileSample empty;
  empty.memory_mib = 512;
  EXPECT_FALSE(FitProfile({empty}, 32, {}).ok());
}

std::string Signature(const JobSpec& spec) {
  return ProfileSignature(spec, TwoCores(), BackendKind::kKnative, "worker:1");
}

TEST(ProfileSignature, ChangesWithWhatChangesTheRate) {
  JobSpec spec;
  const std::string before = Signature(spec);
  EXPECT_EQ(Signature(spec), before);
  spec.training.epochs = 7;  // not a matter of speed
  EXPECT_EQ(Signature(spec), before);
  spec.training.optimizer.learning_rate = 0.5;
  EXPECT_EQ(Signature(spec), before);
  const auto changed = [&](auto change) {
    JobSpec other = spec;
    change(&other);
    return Signature(other) != before;
  };
  EXPECT_TRUE(changed([](JobSpec* s) { s->model.builtin_name = "cnn"; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->dataset.test_uri = "file:///test"; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->dataset.classes = 7; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->dataset.feature_shape = {1, 8, 8}; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->dataset.csv = DatasetSpec::Csv{"y", true}; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->dataset.parquet = DatasetSpec::Parquet{"y"}; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->training.optimizer.name = OptimizerKind::kAdam; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->training.optimizer.momentum = 0.9; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->object_store.uri = "s3://bucket"; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->training.global_batch_size = 96; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->training.micro_batch_size = 4; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->functions.gpu = 1; }));
  EXPECT_TRUE(changed([](JobSpec* s) { s->training.precision = Precision::kBfloat16; }));
  EXPECT_TRUE(changed(
      [](JobSpec* s) { s->pod_template.containers = {{.name = "worker", .image = "worker:2"}}; }));
}

TEST(ProfileSignature, ChangesWithTheImageAndTheBackend) {
  const JobSpec spec;
  const std::string before = Signature(spec);
  EXPECT_NE(ProfileSignature(spec, TwoCores(), BackendKind::kKnative, "worker:2"), before);
  EXPECT_NE(ProfileSignature(spec, TwoCores(), BackendKind::kLocal, "worker:1"), before);
}

}  // namespace
}  // namespace lambdadnn
