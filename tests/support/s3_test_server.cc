// SPDX-License-Identifier: Apache-2.0
#include "tests/support/s3_test_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/objectstore/s3_object_store.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

constexpr double kStartSeconds = 60;
constexpr double kPollSeconds = 0.05;

Result<std::string> FindServer(const std::string& name) {
  const std::string script = SourcePath("scripts/test_servers.sh");
  std::FILE* const pipe = popen((script + " path " + name + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return InternalError("cannot run " + script);
  std::array<char, 4096> line{};
  std::string output;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) output += line.data();
  if (pclose(pipe) == 0) return std::string(Trim(output));
  return FailedPreconditionError("the test server " + name +
                                 " is not built; run scripts/test_servers.sh build " + name +
                                 " (minutes, once), or set LAMBDADNN_WITHOUT_SERVERS=1 to leave "
                                 "its tests out (" +
                                 std::string(Trim(output)) + ")");
}

// The range and the files of ports.py, which says why; the lock is the descriptor's.
constexpr int kFirstPort = 20000;
constexpr int kPortCount = 8000;

bool Bindable(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool bound = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                     bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return bound;
}

Result<int> ReservePort(int* lock) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("lambdadnn-ports-" + std::to_string(getuid()));
  std::filesystem::create_directories(folder);
  for (int i = 0; i < kPortCount; ++i) {
    const int port = kFirstPort + (getpid() + i) % kPortCount;
    const std::string file = folder / std::to_string(port);
    *lock = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (*lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) == 0 && Bindable(port)) return port;
    if (*lock >= 0) close(*lock);
    *lock = -1;
  }
  return UnavailableError("no free port on 127.0.0.1");
}

int Spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
          const std::string& log_file) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (const std::string& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
  envp.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const int log = open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(log, 1);
  dup2(log, 2);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

}  // namespace

bool WithoutServers() { return GetEnvironment("LAMBDADNN_WITHOUT_SERVERS") == "1"; }

Result<std::unique_ptr<S3TestServer>> S3TestServer::Start(const S3TestServerOptions& options) {
  LDNN_ASSIGN_OR_RETURN(const std::string program, FindServer(options.name));
  std::unique_ptr<S3TestServer> server(new S3TestServer);
  LDNN_ASSIGN_OR_RETURN(const int port, ReservePort(&server->port_lock_));
  const std::string folder = MakeTempDir();
  const std::string data = folder + "/data";
  mkdir(data.c_str(), 0755);
  const std::string address = "127.0.0.1:" + std::to_string(port);
  const std::string access = "test-access-key";
  const std::string secret = "test-secret-key/+=";

  server->log_file_ = folder + "/log";
  S3Options& store = server->store_options_;
  store.endpoint = (options.certificate_file.empty() ? "http://" : "https://") + address;
  store.bucket = options.bucket;
  store.credentials = {.access_key = access, .secret_key = secret, .session_token = ""};
  std::vector<std::string> command;
  std::vector<std::string> environment = {"HOME=" + folder, "PATH=/usr/bin:/bin"};
  if (options.name == "minio") {
    command = {program, "server", "--quiet", "--address", address, data};
    environment.insert(environment.end(),
                       {"MINIO_ROOT_USER=" + access, "MINIO_ROOT_PASSWORD=" + secret,
                        "MINIO_BROWSER=off", "MINIO_UPDATE=off", "MINIO_CI_CD=1"});
  } else {
    command = {program,    "--quiet", "--keep-alive", "--port", address,
               "--access", access,    "--secret",     secret};
    if (!options.certificate_file.empty()) {
      command.insert(command.end(),
                     {"--cert", options.certificate_file, "--key", options.key_file});
    }
    const std::string sidecar = folder + "/metadata";
    mkdir(sidecar.c_str(), 0755);
    command.insert(command.end(), {"posix", "--sidecar", sidecar, data});
  }
  server->pid_ = Spawn(command, environment, server->log_file_);
  if (server->pid_ < 0) return UnavailableError("cannot start " + program);

  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<HttpTransport> transport,
                        NewDataTransport({.inactivity_seconds = 10, .ca_file = options.ca_file}));
  SystemClock clock;
  S3ObjectStore bucket(std::move(transport), clock, store);
  const Instant give_up = clock.Now() + FromSeconds(kStartSeconds);
  for (;;) {
    const Status created = bucket.CreateBucket();
    if (created.ok()) return server;
    if (clock.Now() > give_up || waitpid(server->pid_, nullptr, WNOHANG) != 0) {
      return created.WithContext(program +
                                 " did not start; it said: " + ReadFile(server->log_file_).value());
    }
    clock.SleepFor(FromSeconds(kPollSeconds));
  }
}

S3TestServer::~S3TestServer() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (port_lock_ >= 0) close(port_lock_);
}

}  // namespace lambdadnn
