// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/confined_model.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/support/arithmetic_model.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

int ErrorOf(int descriptor) {
  if (descriptor < 0) return errno;
  close(descriptor);
  return 0;
}

// Tries what a module must not do, on each call.
class CuriousModel final : public TrainableModel {
 public:
  explicit CuriousModel(std::vector<int>* errors) : errors_(errors) { Try(); }
  ~CuriousModel() override { Try(); }
  const ParameterManifest& manifest() const override { return manifest_; }
  void Initialize(uint64_t) override { Try(); }
  void SetParameters(const SplitVector&) override { Try(); }
  void GetParameters(std::span<float>) const override { Try(); }
  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t,
                                     std::span<float> gradient) override {
    Try();
    gradient[0] = 7;
    return StepResult{0.5, batch.samples, 0};
  }
  Result<EvaluationResult> Evaluate(const Batch&) override {
    // A thread of its own, as LibTorch has some.
    std::thread([this] { Try(); }).join();
    return InvalidArgumentError("no evaluation");
  }
  Result<std::string> ExportTorchScript() override {
    Try();
    return std::string("archive");
  }

 private:
  void Try() const {
    errors_->push_back(ErrorOf(socket(AF_INET, SOCK_STREAM, 0)));
    errors_->push_back(ErrorOf(open("/dev/null", O_WRONLY)));
  }

  std::vector<int>* const errors_;
  const ParameterManifest manifest_ = {{"weight", {2}, 0, 2}};
};

class ConfinedModelTest : public testing::Test {
 protected:
  ConfinedModelOptions Options() {
    ConfinedModelOptions options;
    options.slice_is_over = [this] { return over_.load(); };
    options.give_up = [this](const std::string& why) {
      why_ = why;
      ++given_up_;
    };
    return options;
  }

  SystemClock clock_;
  ThreadExecutor executor_;
  SeededRandom random_{1};
  Runtime runtime_{clock_, executor_, random_};
  std::atomic<bool> over_{false};
  std::string why_;
  std::atomic<int> given_up_{0};
};

TEST_F(ConfinedModelTest, WhatTheModuleRunsHasNoNetworkAndWritesNoFileAndOthersDo) {
  std::vector<int> errors;
  {
    auto made = MakeConfinedModel(runtime_, Options(), [&] {
      return std::unique_ptr<TrainableModel>(std::make_unique<CuriousModel>(&errors));
    });
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    TrainableModel& model = **made;
    EXPECT_EQ(model.size(), 2);
    model.Initialize(1);
    std::vector<float> numbers(2);
    model.SetVector(numbers, 0);
    model.GetVector(numbers);
    Batch batch;
    batch.samples = 3;
    EXPECT_EQ(model.ForwardBackward(batch, 1, numbers)->samples, 3);
    EXPECT_EQ(numbers[0], 7);
    EXPECT_EQ(model.Evaluate(batch).status().message(), "no evaluation");
    EXPECT_EQ(*model.ExportTorchScript(), "archive");
    EXPECT_EQ(model.State()->front().name, "weight");
  }
  EXPECT_GE(errors.size(), 2u * 8);
  EXPECT_THAT(errors, testing::Each(EPERM));
  EXPECT_EQ(ErrorOf(socket(AF_INET, SOCK_STREAM, 0)), 0) << "the function's own threads";
  EXPECT_EQ(ErrorOf(open("/dev/null", O_WRONLY)), 0);
  EXPECT_EQ(given_up_, 0);
}

TEST_F(ConfinedModelTest, WhatCannotBeMadeIsToldAsItIs) {
  const auto made = MakeConfinedModel(
      runtime_, Options(), [] { return InvalidArgumentError("is no TorchScript archive"); });
  EXPECT_EQ(made.status().message(), "is no TorchScript archive");
}

// Until somebody lets it end.
class EndlessModel final : public TrainableModel {
 public:
  explicit EndlessModel(std::atomic<bool>& ends) : ends_(ends) {}
  const ParameterManifest& manifest() const override { return manifest_; }
  void Initialize(uint64_t) override {}
  void SetParameters(const SplitVector&) override {}
  void GetParameters(std::span<float>) const override {}
  Result<StepResult> ForwardBackward(const Batch&, uint64_t, std::span<float>) override {
    while (!ends_) std::this_thread::yield();
    return StepResult{};
  }
  Result<EvaluationResult> Evaluate(const Batch&) override { return EvaluationResult{}; }
  Result<std::string> ExportTorchScript() override { return std::string(); }

 private:
  std::atomic<bool>& ends_;
  const ParameterManifest manifest_;
};

TEST_F(ConfinedModelTest, AStepThatGoesOnWhenItsSliceIsOverIsGivenUp) {
  std::atomic<bool> ends{false};
  ConfinedModelOptions options = Options();
  options.grace = std::chrono::milliseconds(1);
  options.give_up = [&, give_up = options.give_up](const std::string& why) {
    give_up(why);
    ends = true;  // in place of the process
  };
  auto made = MakeConfinedModel(runtime_, options, [&] {
    return std::unique_ptr<TrainableModel>(std::make_unique<EndlessModel>(ends));
  });
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  over_ = true;
  EXPECT_TRUE((*made)->ForwardBackward({}, 0, {}).ok());
  EXPECT_EQ(given_up_, 1);
  EXPECT_THAT(why_, HasSubstr("the module has not ended a step"));
  EXPECT_THAT(why_, HasSubstr("platform.functionTimeoutSeconds"));
  // Short ones are none of its business.
  EXPECT_TRUE((*made)->Evaluate({}).ok());
  EXPECT_EQ(given_up_, 1);
}

TEST_F(ConfinedModelTest, ASliceIsOverWhenItIsToldToEndOrItsTimeIsUp) {
  SliceEnd end;
  EXPECT_FALSE(end.IsOver()) << "there is none";
  Interrupt running(runtime_, clock_.Now() + std::chrono::hours(1));
  end.Use(&running);
  EXPECT_FALSE(end.IsOver());
  running.Abort();
  EXPECT_TRUE(end.IsOver());
  Interrupt late(runtime_, clock_.Now());
  end.Use(&late);
  EXPECT_TRUE(end.IsOver());
  end.Use(nullptr);
  EXPECT_FALSE(end.IsOver());
}

}  // namespace
}  // namespace lambdadnn
