// SPDX-License-Identifier: Apache-2.0
// The programs as users run them: lambdadnn-server and `lambdadnn host` as processes, ended in
// every way a process can end.
#include "operator/backends/local/function_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/endpoint.h"
#include "common/base/files.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "common/http/pinned_certificate.h"
#include "common/protocol/slice_codec.h"
#include "operator/backends/beast_slice_client.h"
#include "operator/backends/local/local_backend.h"
#include "tests/integration/process_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/raw_http.h"

namespace lambdadnn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "integration-key";
const JobIdentity kJob = {"job-1", "default", "demo"};

class ServerProcessTest : public FunctionProcessTest {
 protected:
  pid_t StartServer(const std::map<std::string, std::string>& more = {}) {
    std::map<std::string, std::string> variables = {{"LAMBDADNN_JOB_KEY", kKey},
                                                    {"LAMBDADNN_PORT_FILE", directory_ + "/port"}};
    for (const auto& [name, value] : more) variables[name] = value;
    const pid_t pid = Start({ProgramPath("lambdadnn-server")}, variables);
    EXPECT_TRUE(Eventually([&] { return fs::exists(directory_ + "/port"); })) << Log();
    port_ = std::atoi(ReadFile(directory_ + "/port").value().c_str());
    return pid;
  }
  int port_ = 0;
};

TEST_F(ServerProcessTest, LinksNoLibTorch) {
  const std::string libraries = directory_ + "/libraries";
  const std::string command = "ldd " + ProgramPath("lambdadnn-server") + " > " + libraries;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string text = ReadFile(libraries).value();
  EXPECT_NE(text.find("libc.so"), std::string::npos);
  // Whole parts of names: addresses are hexadecimal, and may hold "c10".
  for (const char* library : {"libtorch", "libc10", "blas.so", "libmkl", "libgomp"}) {
    EXPECT_EQ(text.find(library), std::string::npos) << library << " in\n" << text;
  }
}

TEST_F(ServerProcessTest, IsReadySoonAndSmallAtRest) {
  const Instant start = runtime_.clock.Now();
  const pid_t pid = StartServer();
  ASSERT_EQ(Fetch(port_, "GET /readyz").status, 200);
  // Aims are 50 ms and 15 MB (function_start_bench); here only what no load excuses.
  EXPECT_LT(ToSeconds(runtime_.clock.Now() - start), 2.0);
  const std::string statm = ReadFile("/proc/" + std::to_string(pid) + "/statm").value();
  const int64_t resident_bytes = *ParseInteger(Split(statm, ' ')[1]) * ::sysconf(_SC_PAGESIZE);
  EXPECT_LT(resident_bytes, 15'000'000);
}

TEST_F(ServerProcessTest, EndsWithZeroOnSigterm) {
  const pid_t pid = StartServer();
  EXPECT_EQ(Fetch(port_, "GET /healthz").status, 200);
  ::kill(pid, SIGTERM);
  EXPECT_EQ(Wait(pid), 0);
  EXPECT_FALSE(RawConnection("127.0.0.1", port_).Connected());
}

TEST_F(ServerProcessTest, EndsWithZeroAsPid1) {
  // A new PID namespace: the function is its init, for which signals have no default action.
  const pid_t pid = Start(
      {"/usr/bin/unshare", "--pid", "--fork", "--kill-child", ProgramPath("lambdadnn-server")},
      {{"LAMBDADNN_JOB_KEY", kKey}, {"LAMBDADNN_PORT_FILE", directory_ + "/port"}});
  if (!Eventually([&] { return fs::exists(directory_ + "/port"); }, 5)) {
    GTEST_SKIP() << "no PID namespaces here: " << Log();
  }
  // unshare's only child.
  const std::string task = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid);
  const pid_t function = std::atoi(ReadFile(task + "/children").value().c_str());
  ASSERT_GT(function, 0);
  ::kill(function, SIGTERM);
  EXPECT_EQ(Wait(pid), 0);
}

TEST_F(ServerProcessTest, RefusesToStartWithoutAKeyOrWithABadVariable) {
  const pid_t no_key = Start({ProgramPath("lambdadnn-server")}, {{"LAMBDADNN_JOB_KEY", ""}});
  EXPECT_EQ(Wait(no_key), 2);
  EXPECT_NE(Log().find("LAMBDADNN_JOB_KEY"), std::string::npos);
  const pid_t bad_port =
      Start({ProgramPath("lambdadnn-server")}, {{"LAMBDADNN_JOB_KEY", "k"}, {"PORT", "http"}});
  EXPECT_EQ(Wait(bad_port), 2);
  EXPECT_NE(Log().find("PORT must be a whole number"), std::string::npos);
}

TEST_F(ServerProcessTest, RefusesToStartWithACertificateThatMakesNoSense) {
  const TlsIdentity one = MakeTlsIdentity("one").value();
  const TlsIdentity two = MakeTlsIdentity("two").value();
  const std::pair<TlsIdentity, const char*> cases[] = {
      {{"x", one.private_key}, "the certificate is not PEM"},
      {{one.certificate, ""}, "the key is not PEM"},
      {{"", one.private_key}, "the certificate is not PEM"},
      {{one.certificate, two.private_key}, "does not belong"}};
  for (const auto& [identity, message] : cases) {
    fs::remove(directory_ + "/log");
    const pid_t pid = Start({ProgramPath("lambdadnn-server")},
                            {{"LAMBDADNN_JOB_KEY", "k"},
                             {"LAMBDADNN_TLS_CERTIFICATE", identity.certificate},
                             {"LAMBDADNN_TLS_KEY", identity.private_key}});
    EXPECT_EQ(Wait(pid), 2) << message;
    EXPECT_NE(Log().find("LAMBDADNN_TLS_CERTIFICATE"), std::string::npos) << Log();
    EXPECT_NE(Log().find(message), std::string::npos) << Log();
    EXPECT_EQ(Log().find("PRIVATE KEY-----\nM"), std::string::npos);
  }
  const pid_t bad_port = Start({ProgramPath("lambdadnn-server")},
                               {{"LAMBDADNN_JOB_KEY", "k"}, {"LAMBDADNN_TLS_PORT", "65536"}});
  EXPECT_EQ(Wait(bad_port), 2);
  EXPECT_NE(Log().find("LAMBDADNN_TLS_PORT must be a whole number"), std::string::npos);
}

TEST_F(ServerProcessTest, TellsThePortOfItsPeersAndLetsNobodyInBeforeItHasASlice) {
  StartServer({{"LAMBDADNN_PEER_PORT", "0"}});
  const std::vector<std::string> ports =
      Split(std::string(Trim(ReadFile(directory_ + "/port").value())), '\n');
  ASSERT_EQ(ports.size(), 2u);
  RawConnection stranger("127.0.0.1", static_cast<int>(ParseInteger(ports[1]).value()));
  ASSERT_TRUE(stranger.Connected());
  EXPECT_EQ(stranger.ReadAll(), "") << "closed";
  EXPECT_EQ(Fetch(port_, "GET /readyz").status, 200);
  const pid_t bad = Start(
      {ProgramPath("lambdadnn-server")},
      {{"LAMBDADNN_JOB_KEY", "k"}, {"LAMBDADNN_PEER_PORT", "0"}, {"LAMBDADNN_PEER_CHANNEL", "x"}});
  EXPECT_EQ(Wait(bad), 2);
  EXPECT_NE(Log().find("LAMBDADNN_PEER_CHANNEL must be TLS or Plain, not 'x'"), std::string::npos);
}

TEST_F(ServerProcessTest, SaysThatItsPortIsInUse) {
  StartServer();
  const pid_t second = Start({ProgramPath("lambdadnn-server")},
                             {{"LAMBDADNN_JOB_KEY", "k"}, {"PORT", std::to_string(port_)}});
  EXPECT_EQ(Wait(second), 4);
  EXPECT_NE(Log().find("Address already in use"), std::string::npos);
}

TEST_F(ServerProcessTest, SurvivesGarbageAndServesOn) {
  const pid_t pid = StartServer();
  SeededRandom noise(1);
  for (int i = 0; i < 50; ++i) {
    RawConnection connection("127.0.0.1", port_);
    std::string bytes(1 + noise.Below(5000), '\0');
    for (char& byte : bytes) byte = static_cast<char>(noise.Next());
    if (i % 2 == 0) bytes.insert(0, "POST /v1/slices HTTP/1.1\r\n");
    connection.Send(bytes);
  }
  EXPECT_EQ(Fetch(port_, "GET /readyz").status, 200);
  EXPECT_EQ(Fetch(port_, "POST /v1/slices", kKey, "garbage").status, 400);
  EXPECT_EQ(Fetch(port_, "GET /v1/slices").status, 401);
  EXPECT_NE(Fetch(port_, "GET /metrics", kKey).body.find("lambdadnn_http_requests_total"),
            std::string::npos);
  EXPECT_TRUE(IsAlive(pid));
}

TEST_F(ServerProcessTest, ItsMetricsAreInPrometheusForm) {
  StartServer();
  const Result<SubprocessResult> promtool =
      RunSubprocess({.arguments = {SourcePath("scripts/test_servers.sh"), "path", "promtool"}});
  ASSERT_TRUE(promtool.ok() && promtool->exit_code == 0)
      << "scripts/test_servers.sh build promtool";
  ASSERT_TRUE(
      WriteFileAtomically(directory_ + "/metrics", Fetch(port_, "GET /metrics", kKey).body).ok());
  const std::string program = promtool->output.substr(0, promtool->output.find('\n'));
  const Result<SubprocessResult> check = RunSubprocess(
      {.arguments = {"sh", "-c", program + " check metrics < " + directory_ + "/metrics 2>&1"}});
  ASSERT_TRUE(check.ok()) << check.status().ToString();
  EXPECT_EQ(check->exit_code, 0) << check->output;
}

// A server slice whose workers never come: it waits, says so, and ends when told.
class WaitingSliceTest : public ServerProcessTest {
 protected:
  SliceRequest Request(const std::string& invocation) {
    SliceRequest request;
    request.invocation = invocation;
    request.job = kJob;
    request.roles.front().role.kind = RoleKind::kServer;
    request.plan.functions = 1;
    request.plan.memory_mib = 128;
    request.plan.server_memory_mib = 128;
    request.plan.local_batch_size = 1;
    request.plan.global_batch_size = 1;
    request.plan.iterations = 10;
    request.plan.iterations_per_epoch = 10;
    request.plan.parameters = 100;
    request.training.model.name = "logistic";
    request.training.training_samples = 10;
    request.store.uri = "file://" + directory_ + "/store";
    request.store.prefix = "default/job-1";
    request.budget_seconds = 60;
    return request;
  }

  SliceView Await(SliceClient& client, SlicePhase phase) {
    SliceView view;
    Eventually([&] {
      const std::vector<SliceView> views = client.Poll(kJob.uid);
      if (!views.empty()) view = views[0];
      return view.phase == phase;
    });
    EXPECT_EQ(view.phase, phase) << view.error.ToString();
    return view;
  }
};

TEST_F(WaitingSliceTest, HeartbeatsComeEveryTwoSecondsAndASecondCallerAttaches) {
  StartServer();
  BeastSliceClient client(runtime_);
  const SliceRequest request = Request("slice-a");
  const Endpoint endpoint = {.host = "127.0.0.1", .port = port_};
  const Instant start = runtime_.clock.Now();
  client.Start("instance", endpoint, request, {kKey});
  ASSERT_TRUE(Eventually([&] {
    const auto views = client.Poll(kJob.uid);
    return views[0].phase == SlicePhase::kLost || views[0].last_heard - start > FromSeconds(1.5);
  }));
  EXPECT_LT(ToSeconds(client.Poll(kJob.uid)[0].last_heard - start), 3.5);
  EXPECT_EQ(Fetch(port_, "GET /v1/slices", kKey).body, "{\"running\":\"slice-a\"}\n");

  BeastSliceClient other(runtime_);
  other.Start("instance", endpoint, Request("slice-b"), {kKey});
  EXPECT_EQ(Await(other, SlicePhase::kRefused).busy_with, "slice-a");
  other.Forget("slice-b");
  other.Start("instance", endpoint, request, {"wrong key"});
  EXPECT_EQ(Await(other, SlicePhase::kRefused).error.code(), StatusCode::kUnauthenticated);
  other.Forget("slice-a");
  other.Start("instance", endpoint, request, {kKey});

  client.Stop("slice-a", false);
  const SliceView ended = Await(client, SlicePhase::kEnded);
  ASSERT_TRUE(ended.record);
  EXPECT_EQ(ended.record->invocation, "slice-a");
  EXPECT_EQ(Await(other, SlicePhase::kEnded).record->invocation, "slice-a");
}

// The whole contract over TLS, and nothing but probes beside it.
TEST_F(WaitingSliceTest, WithACertificateSlicesComeOverTls) {
  const TlsIdentity identity = MakeTlsIdentity("job-1").value();
  const pid_t pid = StartServer({{"LAMBDADNN_TLS_CERTIFICATE", identity.certificate},
                                 {"LAMBDADNN_TLS_KEY", identity.private_key},
                                 {"LAMBDADNN_TLS_PORT", "0"}});
  constexpr std::string_view kField = "tlsPort=";
  ASSERT_TRUE(Eventually([&] { return Log().find(kField) != std::string::npos; })) << Log();
  const std::string log = Log();
  const int tls_port = std::atoi(log.c_str() + log.find(kField) + kField.size());
  ASSERT_GT(tls_port, 0) << log;
  EXPECT_EQ(Fetch(port_, "GET /readyz").status, 200);
  EXPECT_EQ(Fetch(port_, "GET /metrics", kKey).status, 403);
  EXPECT_EQ(Fetch(port_, "POST /v1/slices", kKey, "{}").status, 403);

  BeastSliceClient client(runtime_);
  const Endpoint endpoint = {.scheme = "https", .host = "127.0.0.1", .port = tls_port};
  client.Start("instance", endpoint, Request("slice-a"),
               {kKey, CertificateDigest(MakeTlsIdentity("job-1")->certificate).value()});
  EXPECT_NE(Await(client, SlicePhase::kLost).error.message().find("another certificate"),
            std::string::npos);
  const FunctionAccess access = {kKey, CertificateDigest(identity.certificate).value()};
  client.Start("instance", endpoint, Request("slice-a"), access);
  ASSERT_TRUE(Eventually([&] {
    const auto views = client.Poll(kJob.uid);
    return views[0].phase == SlicePhase::kRunning;  // a heartbeat
  })) << Log();
  client.Stop("slice-a", false);
  EXPECT_EQ(Await(client, SlicePhase::kEnded).record->invocation, "slice-a");
  ::kill(pid, SIGTERM);
  EXPECT_EQ(Wait(pid), 0);
}

TEST_F(WaitingSliceTest, AKilledFunctionIsLostToItsCaller) {
  const pid_t pid = StartServer();
  BeastSliceClient client(runtime_);
  client.Start("instance", {.host = "127.0.0.1", .port = port_}, Request("slice-a"), {kKey});
  ASSERT_TRUE(Eventually([&] {
    return Fetch(port_, "GET /v1/slices", kKey).body.find("slice-a") != std::string::npos;
  }));
  ::kill(pid, SIGKILL);
  EXPECT_FALSE(Await(client, SlicePhase::kLost).record);
}

// `lambdadnn` and its siblings in a folder of their own, where lambdadnn-server is the fake
// function: the host finds programs beside itself.
class HostProcessTest : public FunctionProcessTest {
 protected:
  HostProcessTest() {
    fs::create_directories(directory_ + "/bin");
    fs::copy(ProgramPath("lambdadnn"), directory_ + "/bin/lambdadnn");
    fs::copy(ProgramPath("fake-function"), directory_ + "/bin/lambdadnn-server");
  }

  pid_t StartHost(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        directory_ + "/bin/lambdadnn", "host", "--socket", socket_, "--dir", directory_ + "/host"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const pid_t pid = Start(arguments);
    EXPECT_TRUE(Eventually([&] { return FetchUnix(socket_, "GET /v1/host").status == 200; }))
        << Log();
    return pid;
  }

  std::unique_ptr<LocalBackend> Connect() {
    auto backend = LocalBackend::Connect(runtime_, socket_);
    EXPECT_TRUE(backend.ok()) << backend.status().ToString();
    return backend.ok() ? *std::move(backend) : nullptr;
  }

  static FunctionGroup Group(int count) {
    FunctionGroup group;
    group.job_uid = kJob.uid;
    group.name = "servers";
    group.program = FunctionProgram::kServer;
    group.count = count;
    group.memory_mib = 64;
    group.environment["LAMBDADNN_JOB_KEY"] = kKey;
    return group;
  }

  std::vector<FunctionInstance> Ready(LocalBackend& backend, size_t count) {
    std::vector<FunctionInstance> ready;
    EXPECT_TRUE(Eventually([&] {
      ready.clear();
      const auto functions = backend.List(kJob);
      if (!functions.ok()) return false;
      for (const FunctionInstance& function : *functions) {
        if (function.phase == FunctionPhase::kReady) ready.push_back(function);
      }
      return ready.size() == count;
    })) << ready.size();
    return ready;
  }

  // Ages change between two listings of the functions.
  static std::vector<FunctionInstance> WithoutAges(std::vector<FunctionInstance> functions) {
    for (FunctionInstance& function : functions) function.age_seconds = 0;
    return functions;
  }

  pid_t PidOf(const std::string& uid, const std::string& host_directory) {
    const std::string log = ReadFile(host_directory + "/logs/" + uid + ".log").value();
    return std::atoi(log.substr(log.find("pid ") + 4).c_str());
  }
  pid_t PidOf(const FunctionInstance& function) {
    return PidOf(function.uid, directory_ + "/host");
  }

  std::string socket_ = directory_ + "/host.sock";
};

TEST_F(HostProcessTest, OutlivesItsStarterAndIsFoundAgain) {
  StartHost();
  auto first = Connect();
  ASSERT_TRUE(first->EnsureGroup(Group(2)).ok());
  const auto functions = Ready(*first, 2);
  first.reset();
  auto second = Connect();
  EXPECT_EQ(WithoutAges(*second->List(kJob)), WithoutAges(functions));
  ASSERT_TRUE(second->EnsureGroup(Group(2)).ok());
  EXPECT_EQ(WithoutAges(*second->List(kJob)), WithoutAges(functions));
  EXPECT_TRUE(second->List({"job-2", "default", "demo"})->empty());
}

TEST_F(HostProcessTest, EnsureGroupGrowsShrinksAndDeletes) {
  StartHost();
  auto backend = Connect();
  ASSERT_TRUE(backend->EnsureGroup(Group(1)).ok());
  Ready(*backend, 1);
  ASSERT_TRUE(backend->EnsureGroup(Group(3)).ok());
  Ready(*backend, 3);
  ASSERT_TRUE(backend->EnsureGroup(Group(1)).ok());
  EXPECT_TRUE(Eventually([&] { return backend->List(kJob)->size() == 1; }));
  ASSERT_TRUE(backend->EnsureGroup(Group(0)).ok());
  EXPECT_TRUE(Eventually([&] { return backend->List(kJob)->empty(); }));
}

TEST_F(HostProcessTest, AKilledInstanceIsGoneAndReplacedUnderANewUid) {
  StartHost();
  auto backend = Connect();
  ASSERT_TRUE(backend->EnsureGroup(Group(2)).ok());
  const auto before = Ready(*backend, 2);
  ASSERT_EQ(::kill(PidOf(before[0]), SIGKILL), 0);
  FunctionInstance gone;
  ASSERT_TRUE(Eventually([&] {
    const std::vector<FunctionInstance> functions = *backend->List(kJob);
    for (const FunctionInstance& function : functions) {
      if (function.uid == before[0].uid) gone = function;
    }
    return gone.phase == FunctionPhase::kGone;
  }));
  EXPECT_EQ(gone.reason, "Killed");
  EXPECT_NE(gone.last_log_line.find("fake function"), std::string::npos);
  ASSERT_TRUE(backend->EnsureGroup(Group(2)).ok());
  const auto after = Ready(*backend, 2);
  for (const FunctionInstance& function : after) EXPECT_NE(function.uid, before[0].uid);
  EXPECT_NE(backend->Logs(kJob, before[0].uid, 10)->find("fake function"), std::string::npos);
}

TEST_F(HostProcessTest, AFunctionThatAllocatesTooMuchIsOomKilled) {
  StartHost();
  auto backend = Connect();
  FunctionGroup group = Group(1);
  group.environment["FAKE_ALLOCATE_MIB"] = "200";
  ASSERT_TRUE(backend->EnsureGroup(group).ok());
  EXPECT_TRUE(Eventually([&] {
    const std::vector<FunctionInstance> functions = *backend->List(kJob);
    return functions.size() == 1 && functions[0].reason == "OOMKilled";
  }));
}

TEST_F(HostProcessTest, ABackendTellsTheIsolationOfNowNotOfItsStart) {
  const pid_t host = StartHost();
  auto backend = Connect();
  if (backend->IsolationName() == "pacing") GTEST_SKIP() << backend->IsolationReason();
  EXPECT_EQ(backend->IsolationReason(), "");
  // Somebody takes the host's groups away, so that it cannot make one for its first function.
  const CgroupPlaces places =
      FindCgroups(*ReadFile("/proc/self/mountinfo"), *ReadFile("/proc/self/cgroup"));
  int removed = 0;
  for (const auto& [mount, path] : {std::pair(places.cpu_mount, places.cpu_path),
                                    std::pair(places.memory_mount, places.memory_path),
                                    std::pair(places.v2_mount, places.v2_path)}) {
    if (mount.empty()) continue;
    for (const std::string& base : CgroupFolders(mount, path)) {
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(base + "/lambdadnn", ignored)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(std::to_string(host) + "-")) continue;
        removed += ::rmdir(entry.path().c_str()) == 0;
      }
    }
  }
  ASSERT_GT(removed, 0);
  ASSERT_TRUE(backend->EnsureGroup(Group(1)).ok());
  Ready(*backend, 1);
  EXPECT_EQ(backend->IsolationName(), "pacing");
  EXPECT_NE(backend->IsolationReason(), "");
}

TEST_F(HostProcessTest, ASecondHostOnTheSocketRefuses) {
  StartHost();
  const pid_t second = Start({directory_ + "/bin/lambdadnn", "host", "--socket", socket_, "--dir",
                              directory_ + "/second"});
  EXPECT_EQ(Wait(second), 4);
  EXPECT_NE(Log().find("another function host serves"), std::string::npos);
  EXPECT_EQ(FetchUnix(socket_, "GET /v1/host").status, 200);
}

TEST_F(HostProcessTest, MakesTheFolderOfItsSocketForItsUserAlone) {
  socket_ = directory_ + "/not/there/host.sock";
  StartHost();
  EXPECT_EQ(fs::status(directory_ + "/not/there").permissions(), fs::perms::owner_all);
  EXPECT_EQ(FetchUnix(socket_, "GET /v1/host").status, 200);
}

TEST_F(HostProcessTest, TakesOverTheSocketOfAKilledHostWhoseFunctionsDiedWithIt) {
  const pid_t first = StartHost();
  auto backend = Connect();
  ASSERT_TRUE(backend->EnsureGroup(Group(2)).ok());
  const auto functions = Ready(*backend, 2);
  ::kill(first, SIGKILL);
  EXPECT_EQ(Wait(first), -SIGKILL);
  for (const FunctionInstance& function : functions) {
    EXPECT_TRUE(Eventually([&] { return !IsAlive(PidOf(function)); }));
  }
  EXPECT_TRUE(fs::exists(socket_));
  EXPECT_EQ(backend->List(kJob).status().code(), StatusCode::kUnavailable);
  StartHost();
  EXPECT_TRUE(backend->List(kJob)->empty());
}

TEST_F(HostProcessTest, EndsInOrderOnSigterm) {
  const pid_t host = StartHost();
  auto backend = Connect();
  ASSERT_TRUE(backend->EnsureGroup(Group(2)).ok());
  const auto functions = Ready(*backend, 2);
  ::kill(host, SIGTERM);
  EXPECT_EQ(Wait(host), 0);
  for (const FunctionInstance& function : functions) EXPECT_FALSE(IsAlive(PidOf(function)));
  EXPECT_FALSE(fs::exists(socket_));
  EXPECT_FALSE(fs::exists(socket_ + ".lock"));
}

TEST_F(HostProcessTest, RefusesBadRequestsWithASentence) {
  StartHost();
  EXPECT_EQ(FetchUnix(socket_, "POST /v1/functions", "{}").status, 400);
  EXPECT_EQ(FetchUnix(socket_, "POST /v1/functions", "nonsense").status, 400);
  EXPECT_EQ(FetchUnix(socket_, "GET /v1/nothing").status, 404);
  EXPECT_EQ(FetchUnix(socket_, "PUT /v1/functions/x/cpu?milliCpu=-1").status, 400);
  EXPECT_EQ(FetchUnix(socket_, "PUT /v1/functions/x/cpu?milliCpu=1").status, 404);
  EXPECT_EQ(FetchUnix(socket_, "DELETE /v1/functions/x?graceSeconds=nan").status, 400);
  EXPECT_EQ(FetchUnix(socket_, "GET /v1/functions/..%2f..%2fetc%2fpasswd/logs").status, 404);
  auto backend = Connect();
  FunctionGroup group = Group(1);
  group.program = FunctionProgram::kWorker;
  const Status missing = backend->EnsureGroup(group);
  EXPECT_EQ(missing.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(missing.message().find("lambdadnn-worker"), std::string::npos);
}

// The parent is a shell that starts the host and then waits; the test kills it.
TEST_F(HostProcessTest, DiesWithItsParentHoweverThatDies) {
  for (const int signal_number : {SIGKILL, SIGTERM}) {
    const pid_t parent = Start({"/bin/sh", "-c",
                                directory_ + "/bin/lambdadnn host --socket " + socket_ + " --dir " +
                                    directory_ + "/host --with-parent & wait"});
    ASSERT_TRUE(Eventually([&] { return FetchUnix(socket_, "GET /v1/host").status == 200; }))
        << Log();
    auto backend = Connect();
    ASSERT_TRUE(backend->EnsureGroup(Group(2)).ok());
    const auto functions = Ready(*backend, 2);
    const std::string info = FetchUnix(socket_, "GET /v1/host").body;
    const pid_t host = std::atoi(info.substr(info.find("\"pid\":") + 6).c_str());
    ASSERT_TRUE(IsAlive(host));
    ::kill(parent, signal_number);
    Wait(parent);
    EXPECT_TRUE(Eventually([&] { return !IsAlive(host); }));
    for (const FunctionInstance& function : functions) EXPECT_FALSE(IsAlive(PidOf(function)));
    EXPECT_FALSE(fs::exists(socket_));
  }
}

TEST_F(HostProcessTest, DiesWithAParentThatHadDiedBeforeItBegan) {
  const pid_t host = Start({directory_ + "/bin/lambdadnn", "host", "--socket", socket_, "--dir",
                            directory_ + "/host", "--with-parent", "999999999"});
  EXPECT_EQ(Wait(host), 0);
}

class OwnHostTest : public HostProcessTest {
 protected:
  std::unique_ptr<LocalBackend> StartOwn(const std::string& host_directory) {
    auto backend = LocalBackend::StartHost(
        runtime_, {.directory = host_directory, .program = directory_ + "/bin/lambdadnn"});
    EXPECT_TRUE(backend.ok()) << backend.status().ToString();
    return backend.ok() ? *std::move(backend) : nullptr;
  }
};

TEST_F(OwnHostTest, EndsWithTheBackend) {
  auto backend = StartOwn(directory_ + "/own");
  ASSERT_TRUE(backend->EnsureGroup(Group(2)).ok());
  const auto functions = Ready(*backend, 2);
  EXPECT_GT(functions[0].cold_start_seconds, 0);
  const std::string socket = backend->socket();
  backend.reset();
  for (const FunctionInstance& function : functions) {
    EXPECT_FALSE(IsAlive(PidOf(function.uid, directory_ + "/own")));
  }
  EXPECT_FALSE(fs::exists(socket));
}

TEST_F(OwnHostTest, IsStartedAgainWhenItWasKilled) {
  auto backend = StartOwn(directory_ + "/own");
  ASSERT_TRUE(backend->EnsureGroup(Group(1)).ok());
  Ready(*backend, 1);
  const std::string info = FetchUnix(backend->socket(), "GET /v1/host").body;
  ::kill(std::atoi(info.substr(info.find("\"pid\":") + 6).c_str()), SIGKILL);
  // The functions are gone with it; the next call starts a host, and the group comes again.
  EXPECT_TRUE(Eventually([&] {
    const auto functions = backend->List(kJob);
    return functions.ok() && functions->empty();
  }));
  ASSERT_TRUE(backend->EnsureGroup(Group(1)).ok());
  Ready(*backend, 1);
}

TEST_F(OwnHostTest, WorksInAFolderWhosePathIsTooLongForASocket) {
  auto backend = StartOwn(directory_ + "/" + std::string(120, 'd'));
  ASSERT_TRUE(backend->EnsureGroup(Group(1)).ok());
  Ready(*backend, 1);
}

TEST_F(OwnHostTest, SaysWhyTheHostDoesNotStart) {
  const auto missing =
      LocalBackend::StartHost(runtime_, {.directory = directory_ + "/own", .program = "/nowhere"});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("/nowhere"), std::string::npos);
  std::ofstream(directory_ + "/file") << "not a folder";
  EXPECT_FALSE(LocalBackend::StartHost(runtime_, {.directory = directory_ + "/file/own",
                                                  .program = directory_ + "/bin/lambdadnn"})
                   .ok());
}

}  // namespace
}  // namespace lambdadnn
