// SPDX-License-Identifier: Apache-2.0
// Real processes (tests/support/fake_function.cc) under the real host.
#include "operator/backends/local/function_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/check.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "tests/support/paths.h"
#include "tests/support/raw_http.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

namespace fs = std::filesystem;

using ::testing::IsEmpty;
using ::testing::Not;

class FunctionHostTest : public testing::TestWithParam<bool> {
 protected:
  FunctionHostTest() {
    options_.directory = MakeTempDir();
    options_.program_directory = MakeTempDir();
    options_.use_cgroups = GetParam();
    fs::create_symlink(ProgramPath("fake-function"),
                       options_.program_directory + "/lambdadnn-server");
  }

  void Open() {
    auto host = FunctionHost::Open(runtime_, options_);
    ASSERT_TRUE(host.ok()) << host.status().ToString();
    host_ = *std::move(host);
  }

  HostedFunctionSpec Spec(const std::string& uid) {
    HostedFunctionSpec spec;
    spec.uid = uid;
    spec.group.job_uid = "job";
    spec.group.name = "servers";
    spec.group.program = FunctionProgram::kServer;
    spec.group.memory_mib = 128;
    return spec;
  }

  FunctionInstance View(const std::string& uid) {
    for (const FunctionInstance& function : host_->List("job")) {
      if (function.uid == uid) return function;
    }
    return {};
  }

  FunctionInstance Await(const std::string& uid, FunctionPhase phase) {
    for (int i = 0; i < 1000 && View(uid).phase != phase; ++i)
      runtime_.clock.SleepFor(FromSeconds(0.01));
    const FunctionInstance view = View(uid);
    EXPECT_EQ(view.phase, phase) << uid << " " << view.reason << ": " << view.last_log_line;
    return view;
  }

  void AwaitNone() {
    for (int i = 0; i < 1000 && !host_->List("job").empty(); ++i) {
      runtime_.clock.SleepFor(FromSeconds(0.01));
    }
    EXPECT_TRUE(host_->List("job").empty());
  }

  // From the first line of its log.
  pid_t PidOf(const std::string& uid) {
    const std::string log = ReadFile(options_.directory + "/logs/" + uid + ".log").value();
    const size_t at = log.find("pid ");
    const pid_t pid = at == std::string::npos ? 0 : std::atoi(log.substr(at + 4).c_str());
    LDNN_CHECK(pid > 1 && ::kill(pid, 0) == 0, "no process is named in: " + log);
    return pid;
  }

  // Of hosts of this process, and in them, in every hierarchy.
  static std::vector<std::string> GroupFolders() {
    const std::string host = "/" + std::to_string(::getpid()) + "-";
    // The search ends with an error when another process deletes a folder meanwhile; it is
    // repeated.
    for (int tries = 0; tries < 100; ++tries) {
      std::vector<std::string> folders;
      std::error_code error;
      fs::recursive_directory_iterator entry("/sys/fs/cgroup", error);
      for (; !error && entry != fs::end(entry); entry.increment(error)) {
        std::error_code gone;
        if (!entry->is_directory(gone)) continue;
        const std::string folder = entry->path();
        if (folder.find(host) != std::string::npos) folders.push_back(folder);
      }
      if (!error) return folders;
    }
    ADD_FAILURE() << "the folders below /sys/fs/cgroup cannot be listed";
    return {};
  }

  static std::string EnvironmentOf(const FunctionInstance& function, const std::string& name) {
    const int port = function.endpoint.port;
    return Fetch(port, "GET /" + name).body;
  }

  SystemRuntime runtime_;
  FunctionHost::Options options_;
  std::unique_ptr<FunctionHost> host_;
};

TEST_P(FunctionHostTest, StartsAFunctionAndMeasuresItsColdStart) {
  Open();
  const Instant begin = runtime_.clock.Now();
  ASSERT_TRUE(host_->Create(Spec("a")).ok());
  const FunctionInstance function = Await("a", FunctionPhase::kReady);
  EXPECT_EQ(function.endpoint.host, "127.0.0.1");
  EXPECT_GT(function.cold_start_seconds, 0);
  EXPECT_LE(function.cold_start_seconds, ToSeconds(runtime_.clock.Now() - begin));
  EXPECT_EQ(function.group, "servers");
  EXPECT_TRUE(host_->List("another job").empty());
}

TEST_P(FunctionHostTest, GivesTheFunctionItsEnvironment) {
  Open();
  HostedFunctionSpec spec = Spec("a");
  spec.group.environment = {{"LAMBDADNN_JOB_KEY", "secret"}, {"LAMBDADNN_MILLI_CPU", "7"}};
  spec.group.milli_cpu = 500;
  ASSERT_TRUE(host_->Create(spec).ok());
  const FunctionInstance function = Await("a", FunctionPhase::kReady);
  EXPECT_EQ(EnvironmentOf(function, "LAMBDADNN_JOB_KEY"), "secret");
  EXPECT_EQ(EnvironmentOf(function, "LAMBDADNN_BIND"), "127.0.0.1");
  // Paced by itself only where no cgroup does it, and never by what the spec says.
  const bool pacing = host_->IsolationName() == "pacing";
  EXPECT_EQ(EnvironmentOf(function, "LAMBDADNN_MILLI_CPU"), pacing ? "500" : "ok");
}

TEST_P(FunctionHostTest, ACreateThatIsRepeatedDoesNothing) {
  Open();
  ASSERT_TRUE(host_->Create(Spec("a")).ok());
  ASSERT_TRUE(host_->Create(Spec("a")).ok());
  Await("a", FunctionPhase::kReady);
  EXPECT_EQ(host_->List("job").size(), 1u);
}

TEST_P(FunctionHostTest, RefusesWhatHasNoRoomUntilSomethingHasGone) {
  options_.memory_mib = 300;
  Open();
  const auto create = [&](const std::string& uid, int memory_mib) {
    HostedFunctionSpec spec = Spec(uid);
    spec.group.memory_mib = memory_mib;
    return host_->Create(spec);
  };
  ASSERT_TRUE(create("a", 200).ok());
  const Status refused = create("b", 101);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("200 of the host's 300 MiB"), std::string::npos);
  ASSERT_TRUE(create("c", 100).ok());  // exactly the rest
  Await("a", FunctionPhase::kReady);
  ASSERT_TRUE(host_->Delete("a", 10).ok());
  Status again = create("b", 101);
  for (int i = 0; i < 1000 && !again.ok(); ++i) {
    runtime_.clock.SleepFor(FromSeconds(0.01));
    again = create("b", 101);  // a refused uid may be used later
  }
  EXPECT_TRUE(again.ok()) << again.ToString();
}

TEST_P(FunctionHostTest, EachFunctionHasAGpuOfItsOwnUntilItIsGone) {
  options_.gpus = {"3", "GPU-b"};
  Open();
  const auto create = [&](const std::string& uid, int gpu) {
    HostedFunctionSpec spec = Spec(uid);
    spec.group.gpu = gpu;
    return host_->Create(spec);
  };
  EXPECT_EQ(create("three", 3).code(), StatusCode::kUnimplemented);
  ASSERT_TRUE(create("a", 1).ok());
  ASSERT_TRUE(create("b", 1).ok());
  const Status refused = create("c", 1);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("the host's 2 GPUs are taken"));
  ASSERT_TRUE(create("without", 0).ok());
  EXPECT_EQ(EnvironmentOf(Await("a", FunctionPhase::kReady), "CUDA_VISIBLE_DEVICES"), "3");
  EXPECT_EQ(EnvironmentOf(Await("b", FunctionPhase::kReady), "CUDA_VISIBLE_DEVICES"), "GPU-b");
  ASSERT_TRUE(host_->Delete("a", 10).ok());
  Status again = create("c", 1);
  for (int i = 0; i < 1000 && !again.ok(); ++i) {
    runtime_.clock.SleepFor(FromSeconds(0.01));
    again = create("c", 1);
  }
  ASSERT_TRUE(again.ok()) << again.ToString();
  EXPECT_EQ(EnvironmentOf(Await("c", FunctionPhase::kReady), "CUDA_VISIBLE_DEVICES"), "3");
  // One that is killed gives its own back, too.
  ::kill(PidOf("b"), SIGKILL);
  Await("b", FunctionPhase::kGone);
  ASSERT_TRUE(create("d", 1).ok());
  EXPECT_EQ(EnvironmentOf(Await("d", FunctionPhase::kReady), "CUDA_VISIBLE_DEVICES"), "GPU-b");
}

TEST_P(FunctionHostTest, AUidIsNeverUsedAgain) {
  Open();
  ASSERT_TRUE(host_->Create(Spec("a")).ok());
  Await("a", FunctionPhase::kReady);
  ASSERT_TRUE(host_->Delete("a", 10).ok());
  AwaitNone();
  EXPECT_EQ(host_->Create(Spec("a")).code(), StatusCode::kAlreadyExists);
}

TEST_P(FunctionHostTest, RefusesWhatItCannotRun) {
  Open();
  EXPECT_EQ(host_->Create(Spec("../a")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(host_->Create(Spec("")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(host_->Create(Spec(std::string(101, 'a'))).code(), StatusCode::kInvalidArgument);
  HostedFunctionSpec spec = Spec("a");
  spec.group.program = FunctionProgram::kWorker;
  const Status missing = host_->Create(spec);
  EXPECT_EQ(missing.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(missing.message().find("lambdadnn-worker"), std::string::npos);
  EXPECT_TRUE(host_->List("job").empty());
}

TEST_P(FunctionHostTest, AProgramThatCannotBeExecutedIsGoneWithTheReason) {
  std::ofstream(options_.program_directory + "/lambdadnn-worker") << "not a program";
  fs::permissions(options_.program_directory + "/lambdadnn-worker", fs::perms::owner_all);
  Open();
  HostedFunctionSpec spec = Spec("a");
  spec.group.program = FunctionProgram::kWorker;
  ASSERT_TRUE(host_->Create(spec).ok());
  EXPECT_NE(Await("a", FunctionPhase::kGone).reason.find("NotStarted"), std::string::npos);
}

TEST_P(FunctionHostTest, SaysHowAFunctionEndedAndItsLastWords) {
  Open();
  HostedFunctionSpec spec = Spec("a");
  spec.group.environment = {{"FAKE_EXIT", "3"}};
  ASSERT_TRUE(host_->Create(spec).ok());
  const FunctionInstance function = Await("a", FunctionPhase::kGone);
  EXPECT_EQ(function.reason, "Exited 3");
  EXPECT_EQ(function.end, FunctionEnd::kByItself);
  EXPECT_EQ(function.last_log_line, "giving up with 3");
  EXPECT_EQ(*host_->Logs("a", 1), "giving up with 3\n");
}

TEST_P(FunctionHostTest, AKilledFunctionIsGoneAndAnotherMayCome) {
  Open();
  ASSERT_TRUE(host_->Create(Spec("a")).ok());
  Await("a", FunctionPhase::kReady);
  ASSERT_EQ(::kill(PidOf("a"), SIGKILL), 0);
  EXPECT_EQ(Await("a", FunctionPhase::kGone).reason, "Killed");
  ASSERT_TRUE(host_->Create(Spec("b")).ok());
  Await("b", FunctionPhase::kReady);
}

TEST_P(FunctionHostTest, AFunctionThatOutgrowsItsMemoryIsOomKilled) {
  Open();
  HostedFunctionSpec spec = Spec("a");
  spec.group.memory_mib = 64;
  spec.group.environment = {{"FAKE_ALLOCATE_MIB", "256"}};
  ASSERT_TRUE(host_->Create(spec).ok());
  const FunctionInstance function = Await("a", FunctionPhase::kGone);
  EXPECT_EQ(function.reason, "OOMKilled");
  EXPECT_EQ(function.end, FunctionEnd::kOutOfMemory);
  EXPECT_EQ(function.last_log_line, "allocating 256 MiB");
}

TEST_P(FunctionHostTest, DeletesAGroupInOrder) {
  Open();
  for (const char* uid : {"a", "b"}) ASSERT_TRUE(host_->Create(Spec(uid)).ok());
  HostedFunctionSpec other = Spec("c");
  other.group.name = "others";
  ASSERT_TRUE(host_->Create(other).ok());
  for (const char* uid : {"a", "b", "c"}) Await(uid, FunctionPhase::kReady);
  ASSERT_TRUE(host_->DeleteGroup("job", "servers", 10).ok());
  for (int i = 0; i < 1000 && host_->List("job").size() > 1; ++i) {
    runtime_.clock.SleepFor(FromSeconds(0.01));
  }
  ASSERT_EQ(host_->List("job").size(), 1u);
  EXPECT_EQ(host_->List("job")[0].uid, "c");
}

TEST_P(FunctionHostTest, KillsWhatIgnoresSigtermAfterTheGrace) {
  Open();
  HostedFunctionSpec spec = Spec("a");
  spec.group.environment = {{"FAKE_IGNORE_TERM", "1"}};
  ASSERT_TRUE(host_->Create(spec).ok());
  Await("a", FunctionPhase::kReady);
  ASSERT_TRUE(host_->Delete("a", 0.3).ok());
  EXPECT_EQ(View("a").phase, FunctionPhase::kTerminating);
  AwaitNone();
}

TEST_P(FunctionHostTest, DeletingWhatIsNotThereIsOk) {
  Open();
  EXPECT_TRUE(host_->Delete("never", 1).ok());
  EXPECT_TRUE(host_->DeleteGroup("job", "never", 1).ok());
  EXPECT_EQ(host_->Logs("never", 1).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(host_->Logs("../../etc/passwd", 1).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(host_->SetCpu("never", 100).code(), StatusCode::kNotFound);
}

TEST_P(FunctionHostTest, LeavesNoProcessFileOrGroupBehind) {
  Open();
  ASSERT_TRUE(host_->Create(Spec("a")).ok());
  Await("a", FunctionPhase::kReady);
  const pid_t pid = PidOf("a");
  EXPECT_EQ(GroupFolders().empty(), host_->IsolationName() == "pacing");
  host_.reset();
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_TRUE(fs::is_empty(options_.directory + "/functions"));
  EXPECT_THAT(GroupFolders(), IsEmpty());
}

TEST_P(FunctionHostTest, AGroupIsRemovedOnceTheLastProcessInItIsGone) {
  Open();
  if (host_->IsolationName() == "pacing") GTEST_SKIP() << "pacing makes no groups";
  ASSERT_TRUE(host_->Create(Spec("a")).ok());
  Await("a", FunctionPhase::kReady);
  const pid_t straggler = ::fork();
  if (straggler == 0) {
    ::pause();
    ::_exit(0);
  }
  for (const std::string& folder : GroupFolders()) {
    if (fs::path(folder).filename() != "a") continue;
    std::ofstream(folder + "/cgroup.procs") << straggler << std::flush;
  }
  ::kill(PidOf("a"), SIGKILL);
  Await("a", FunctionPhase::kGone);
  EXPECT_THAT(GroupFolders(), Not(IsEmpty()));
  ::kill(straggler, SIGKILL);
  ::waitpid(straggler, nullptr, 0);
  host_.reset();
  EXPECT_THAT(GroupFolders(), IsEmpty());
}

TEST_P(FunctionHostTest, EndsWithItsParent) {
  options_.parent = 1 << 30;  // not our parent: as if it had died
  Open();
  for (int i = 0; i < 500 && !host_->Ended(); ++i) runtime_.clock.SleepFor(FromSeconds(0.01));
  EXPECT_TRUE(host_->Ended());
  EXPECT_EQ(host_->Create(Spec("a")).code(), StatusCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Isolation, FunctionHostTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& parameter) {
                           return parameter.param ? "Cgroups" : "Pacing";
                         });

class FunctionHostCpuTest : public FunctionHostTest {
 protected:
  // CPU seconds per second that the process uses.
  double MeasureCpu(pid_t pid) {
    const double before = CpuSeconds(pid);
    const Instant start = runtime_.clock.Now();
    runtime_.clock.SleepFor(FromSeconds(1));
    return (CpuSeconds(pid) - before) / ToSeconds(runtime_.clock.Now() - start);
  }
  static double CpuSeconds(pid_t pid) {
    const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat").value();
    const auto fields = Split(stat.substr(stat.rfind(')') + 2), ' ');
    return static_cast<double>(*ParseInteger(fields[11]) + *ParseInteger(fields[12])) /
           static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
};

TEST_P(FunctionHostCpuTest, KeepsTheQuotaAndTakesANewOne) {
  Open();
  if (host_->IsolationName() == "pacing") GTEST_SKIP() << host_->IsolationReason();
  HostedFunctionSpec spec = Spec("a");
  spec.group.milli_cpu = 200;
  spec.group.environment = {{"FAKE_BURN", "1"}};
  ASSERT_TRUE(host_->Create(spec).ok());
  Await("a", FunctionPhase::kReady);
  // Upper bounds are the kernel's; a busy machine may give less.
  const double first = MeasureCpu(PidOf("a"));
  EXPECT_LT(first, 0.25);
  EXPECT_GT(first, 0.01);
  ASSERT_TRUE(host_->SetCpu("a", 50).ok());
  EXPECT_LT(MeasureCpu(PidOf("a")), 0.08);
}

INSTANTIATE_TEST_SUITE_P(Isolation, FunctionHostCpuTest, testing::Values(true),
                         [](const testing::TestParamInfo<bool>&) { return "Cgroups"; });

TEST(FunctionHostPacing, NewQuotaReachesAPacingFunctionByFile) {
  SystemRuntime runtime;
  FunctionHost::Options options;
  options.directory = MakeTempDir();
  options.program_directory = MakeTempDir();
  options.use_cgroups = false;
  fs::create_symlink(ProgramPath("fake-function"), options.program_directory + "/lambdadnn-server");
  auto host = FunctionHost::Open(runtime, options);
  ASSERT_TRUE(host.ok());
  EXPECT_EQ((*host)->IsolationName(), "pacing");
  HostedFunctionSpec spec;
  spec.uid = "a";
  spec.group.program = FunctionProgram::kServer;
  spec.group.milli_cpu = 300;
  ASSERT_TRUE((*host)->Create(spec).ok());
  const std::string file = options.directory + "/functions/a.cpu";
  for (int i = 0; i < 500 && !fs::exists(file); ++i) runtime.clock.SleepFor(FromSeconds(0.01));
  EXPECT_EQ(*ReadFile(file), "300\n");
  ASSERT_TRUE((*host)->SetCpu("a", 450).ok());
  EXPECT_EQ(*ReadFile(file), "450\n");
}

}  // namespace
}  // namespace lambdadnn
