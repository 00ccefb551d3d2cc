// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/cmd/function_main.h"

#include <signal.h>

#include <cstdio>

#include "common/base/end_signals.h"
#include "common/base/files.h"
#include "common/base/process_usage.h"
#include "common/base/text.h"
#include "common/base/throttled_time.h"
#include "common/http/http_server.h"
#include "common/http/pinned_certificate.h"
#include "common/objectstore/counting_object_store.h"
#include "common/objectstore/open_store.h"
#include "common/objectstore/renewed_object_store.h"
#include "common/telemetry/log.h"
#include "trainer_function/peer/tcp_network.h"
#include "trainer_function/server/cpu_pacer.h"
#include "trainer_function/server/function_server.h"
#include "trainer_function/server/pacing.h"

namespace lambdadnn {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitBadEnvironment = 2;
constexpr int kExitCannotListen = 4;
// Interval between checks whether the last slice has ended after SIGTERM.
constexpr Duration kDrainPoll = std::chrono::milliseconds(20);
constexpr int kUsualTlsPort = 8443;

// docs/formats.md, "Environment of a function".
constexpr char kHelp[] =
    R"(%s: a function of lambdadnn, which serves the slices of one job over HTTP.
It is set up by environment variables, and ends after SIGTERM once its slice has.

  LAMBDADNN_JOB_KEY         required: the key that callers must hold
  LAMBDADNN_JOB_KEY_FILE    in its place: the file with it
  PORT                      port to serve; 0 or absent = any free one
  LAMBDADNN_TLS_CERTIFICATE, _KEY
                            PEM text: serve over TLS with this certificate, and on PORT the probes
                            alone
  LAMBDADNN_TLS_PORT        port of TLS (default 8443); 0 = any free one
  LAMBDADNN_PEER_PORT       port at which other functions of the job connect; 0 = any free one;
                            absent: none do
  LAMBDADNN_PEER_CHANNEL    how they connect: TLS (default) or Plain
  LAMBDADNN_BIND            address to serve (default 127.0.0.1)
  LAMBDADNN_PORT_FILE       file that the port is written to once it is served
  LAMBDADNN_MILLI_CPU       CPU quota to keep by pacing, where the platform keeps none; 0 = none
  LAMBDADNN_MILLI_CPU_FILE  file with the quota of the moment
  LAMBDADNN_DEVICE          of lambdadnn-worker: cpu (default) or cuda, what its models compute on
  LAMBDADNN_PRECISION       of lambdadnn-worker: float32 (default) or bfloat16, of its job's models
  LAMBDADNN_LOG_LEVEL       debug, info (default), warning or error
  LAMBDADNN_S3_ACCESS_KEY_ID, _SECRET_ACCESS_KEY, _SESSION_TOKEN
                            credentials of the object store, else AWS_*; those of a slice's
                            request go before them. Each with _FILE: the file with it
  LAMBDADNN_S3_ENDPOINT, _REGION, _PATH_STYLE, _CA_FILE
                            of s3:// data sets, and of stores whose request says nothing

Exit codes: 0 orderly end, 2 bad environment or argument, 4 cannot listen, 5 a step of
lambdadnn-worker's TorchScript module did not end with its slice.

Example: LAMBDADNN_JOB_KEY=secret PORT=8080 %s
)";

struct FunctionSettings {
  std::string bind_address = "127.0.0.1";
  int port = 0;
  std::string port_file;
  std::string job_key;
  std::optional<TlsIdentity> tls;
  int tls_port = kUsualTlsPort;
  std::optional<int> peer_port;
  bool peers_use_tls = true;
  int milli_cpu = 0;
  std::string milli_cpu_file;
};

Status ReadNumber(const char* name, long long max, int* out) {
  const std::optional<std::string> text = GetEnvironment(name);
  if (!text || text->empty()) return OkStatus();
  const std::optional<long long> value = ParseInteger(*text);
  if (!value || *value < 0 || *value > max) {
    return InvalidArgumentError(std::string(name) + " must be a whole number from 0 to " +
                                std::to_string(max) + ", not '" + *text + "'");
  }
  *out = static_cast<int>(*value);
  return OkStatus();
}

// None of both variables = plain HTTP.
Status ReadIdentity(std::optional<TlsIdentity>* out) {
  TlsIdentity identity;
  identity.certificate = GetEnvironment("LAMBDADNN_TLS_CERTIFICATE").value_or("");
  identity.private_key = GetEnvironment("LAMBDADNN_TLS_KEY").value_or("");
  if (identity.certificate.empty() && identity.private_key.empty()) return OkStatus();
  LDNN_RETURN_IF_ERROR(
      CheckTlsIdentity(identity).WithContext("LAMBDADNN_TLS_CERTIFICATE and LAMBDADNN_TLS_KEY"));
  *out = std::move(identity);
  return OkStatus();
}

Status ReadPeerChannel(int max_port, FunctionSettings* settings) {
  if (GetEnvironment("LAMBDADNN_PEER_PORT").value_or("").empty()) return OkStatus();
  int port = 0;
  LDNN_RETURN_IF_ERROR(ReadNumber("LAMBDADNN_PEER_PORT", max_port, &port));
  settings->peer_port = port;
  const std::string mode = GetEnvironment("LAMBDADNN_PEER_CHANNEL").value_or("TLS");
  settings->peers_use_tls = mode == "TLS";
  if (mode != "TLS" && mode != "Plain") {
    return InvalidArgumentError("LAMBDADNN_PEER_CHANNEL must be TLS or Plain, not '" + mode + "'");
  }
  return OkStatus();
}

Result<FunctionSettings> ReadSettings() {
  constexpr int kMaxPort = 65535;
  constexpr int kMaxMilliCpu = 1'000'000;
  FunctionSettings settings;
  LDNN_RETURN_IF_ERROR(ReadNumber("PORT", kMaxPort, &settings.port));
  LDNN_RETURN_IF_ERROR(ReadNumber("LAMBDADNN_TLS_PORT", kMaxPort, &settings.tls_port));
  LDNN_RETURN_IF_ERROR(ReadIdentity(&settings.tls));
  LDNN_RETURN_IF_ERROR(ReadPeerChannel(kMaxPort, &settings));
  LDNN_RETURN_IF_ERROR(ReadNumber("LAMBDADNN_MILLI_CPU", kMaxMilliCpu, &settings.milli_cpu));
  settings.bind_address = GetEnvironment("LAMBDADNN_BIND").value_or(settings.bind_address);
  settings.port_file = GetEnvironment("LAMBDADNN_PORT_FILE").value_or("");
  settings.milli_cpu_file = GetEnvironment("LAMBDADNN_MILLI_CPU_FILE").value_or("");
  LDNN_ASSIGN_OR_RETURN(const std::optional<std::string> job_key, GetSecret("LAMBDADNN_JOB_KEY"));
  settings.job_key = job_key.value_or("");
  if (settings.job_key.empty()) {
    return InvalidArgumentError(
        "LAMBDADNN_JOB_KEY is not set: a function refuses all requests without its job's key; set "
        "it to "
        "the key that its callers hold");
  }
  const std::string level = GetEnvironment("LAMBDADNN_LOG_LEVEL").value_or("info");
  if (!SetLogLevel(level)) {
    return InvalidArgumentError("LAMBDADNN_LOG_LEVEL must be debug, info, warning or error, not '" +
                                level + "'");
  }
  return settings;
}

StoreConfig StoreConfigOf(const StoreCredentials& credentials, const std::string& uri) {
  StoreConfig config;
  config.uri = uri;
  config.endpoint = GetEnvironment("LAMBDADNN_S3_ENDPOINT").value_or("");
  config.region = GetEnvironment("LAMBDADNN_S3_REGION").value_or(config.region);
  config.path_style = GetEnvironment("LAMBDADNN_S3_PATH_STYLE").value_or("true") != "false";
  config.sign_payload = GetEnvironment("LAMBDADNN_S3_SIGN_PAYLOAD").value_or("true") != "false";
  config.ca_file = GetEnvironment("LAMBDADNN_S3_CA_FILE").value_or("");
  config.ca_pem = GetEnvironment("LAMBDADNN_S3_CA_PEM").value_or("");
  config.credentials = credentials;
  return config;
}

// Waits of the data set's store, which outlasts slices but is read within them. Thread-safe.
class SliceWaits {
 public:
  explicit SliceWaits(Clock& clock) : clock_(clock) {}
  void Use(Interrupt* of_slice) {
    const std::lock_guard lock(mutex_);
    of_slice_ = of_slice;
  }
  Status SleepUntil(Instant time) {
    std::unique_lock lock(mutex_);
    Interrupt* const of_slice = of_slice_;
    lock.unlock();
    if (of_slice != nullptr) return of_slice->SleepUntil(time);
    clock_.SleepFor(time - clock_.Now());
    return OkStatus();
  }

 private:
  Clock& clock_;
  std::mutex mutex_;
  Interrupt* of_slice_ = nullptr;
};

void AddStores(Runtime& runtime, SliceCredentials& credentials, const DataCounters& counters,
               SliceEnvironment& environment) {
  environment.use_credentials = [&credentials](const std::optional<StoreCredentials>& of_slice) {
    credentials.Use(of_slice);
  };
  environment.open_store = [&runtime, &credentials](const StoreReference& reference) {
    StoreConfig config = StoreConfigOf(credentials.Now(), reference.uri);
    if (!reference.endpoint.empty()) {
      config.endpoint = reference.endpoint;
      config.path_style = reference.path_style;
    }
    if (!reference.region.empty()) config.region = reference.region;
    config.sign_payload = reference.sign_payload;
    return OpenPlainStore(config, runtime);
  };
  const auto waits = std::make_shared<SliceWaits>(runtime.clock);
  environment.use_interrupt = [waits, others = environment.use_interrupt](Interrupt* of_slice) {
    waits->Use(of_slice);
    if (others) others(of_slice);
  };
  environment.data_requests = [counters] { return counters->Now(); };
  environment.open_dataset = [&runtime, &credentials, waits,
                              counters](const DatasetConfig& dataset) {
    // A function reads from it in later slices as well.
    const OpenStoreAt open = [&](const std::string& uri) -> Result<std::unique_ptr<ObjectStore>> {
      LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store,
                            RenewedObjectStore::Make(
                                [&runtime, uri, waits](const StoreCredentials& of_slice) {
                                  StoreConfig config = StoreConfigOf(of_slice, uri);
                                  config.sleep_until = [waits](Instant time) {
                                    return waits->SleepUntil(time);
                                  };
                                  return OpenStore(config, runtime);
                                },
                                [&credentials] { return credentials.Now(); }));
      return std::unique_ptr<ObjectStore>(
          std::make_unique<CountingObjectStore>(std::move(store), counters));
    };
    return OpenDatasetAt(dataset, open);
  };
}

// What a function serves: the contract, in plain text or over TLS, and with TLS the probes alone in
// plain text.
class FunctionHttp {
 public:
  static Result<std::unique_ptr<FunctionHttp>> Listen(Runtime& runtime, FunctionServer& handler,
                                                      const FunctionSettings& settings) {
    std::unique_ptr<FunctionHttp> http(new FunctionHttp);
    const std::string& address = settings.bind_address;
    if (!settings.tls.has_value()) {
      LDNN_ASSIGN_OR_RETURN(http->plain_,
                            HttpServer::ListenTcp(runtime, handler, address, settings.port, {}));
      return http;
    }
    LDNN_ASSIGN_OR_RETURN(http->tls_, HttpServer::ListenTcp(runtime, handler, address,
                                                            settings.tls_port, {}, settings.tls));
    http->probes_ = std::make_unique<ProbeServer>(handler, http->tls_->port());
    LDNN_ASSIGN_OR_RETURN(
        http->plain_, HttpServer::ListenTcp(runtime, *http->probes_, address, settings.port, {}));
    return http;
  }

  int port() const { return plain_->port(); }
  int tls_port() const { return tls_ == nullptr ? 0 : tls_->port(); }
  int ActiveReplies() const {
    return plain_->ActiveReplies() + (tls_ == nullptr ? 0 : tls_->ActiveReplies());
  }

 private:
  FunctionHttp() = default;

  std::unique_ptr<ProbeServer> probes_;
  std::unique_ptr<HttpServer> tls_;
  std::unique_ptr<HttpServer> plain_;
};

// Until the slice has ended and its callers have read the record; a second signal ends it at once.
void AwaitDrained(const SliceControl& slices, const FunctionHttp& http, const sigset_t& signals) {
  const timespec poll{0, kDrainPoll.count()};
  while (slices.Running() || http.ActiveReplies() > 0) {
    if (sigtimedwait(&signals, nullptr, &poll) > 0) {
      LogWarning("function", "second signal: ending at once");
      return;
    }
  }
}

std::optional<PeerSecret> TlsOfPeers(const FunctionSettings& settings, const PeerKeys& keys) {
  return settings.peers_use_tls ? std::optional(keys.tls) : std::nullopt;
}

// Where other functions of the job connect; null = nowhere.
Result<std::unique_ptr<TcpNetwork>> ListenToPeers(Runtime& runtime,
                                                  const FunctionSettings& settings,
                                                  const PeerKeys& keys) {
  if (!settings.peer_port.has_value()) return std::unique_ptr<TcpNetwork>();
  return TcpNetwork::Listen(runtime, settings.bind_address, *settings.peer_port,
                            TlsOfPeers(settings, keys));
}

// PeerAccess::open_own.
Result<OpenedNetwork> OpenOwnNetwork(Runtime& runtime, const std::optional<PeerSecret>& tls) {
  const std::string host = "127.0.0.1";
  LDNN_ASSIGN_OR_RETURN(auto network, TcpNetwork::Listen(runtime, host, 0, tls));
  std::string address = host + ":" + std::to_string(network->port());
  return OpenedNetwork{std::move(network), std::move(address)};
}

// LAMBDADNN_PORT_FILE: the port, and below it that of the peer channel where there is one.
Status WritePorts(const FunctionSettings& settings, int port, const TcpNetwork* peers) {
  if (settings.port_file.empty()) return OkStatus();
  std::string text = std::to_string(port) + "\n";
  if (peers != nullptr) text += std::to_string(peers->port()) + "\n";
  return WriteFileAtomically(settings.port_file, text);
}

int Fail(const Status& status, int exit_code) {
  LogError("function", status.message());
  return exit_code;
}

}  // namespace

void SliceCredentials::Use(const std::optional<StoreCredentials>& of_slice) {
  const std::lock_guard lock(mutex_);
  of_slice_ = of_slice;
}

StoreCredentials SliceCredentials::Now() const {
  const std::lock_guard lock(mutex_);
  return of_slice_.has_value() ? *of_slice_ : CredentialsFromEnvironment();
}

Result<std::string> ReadObject(Runtime& runtime, const SliceCredentials& credentials,
                               const DataCounters& counters, const std::string& uri,
                               uint64_t max_bytes) {
  const size_t scheme = uri.find("://");
  const size_t slash = uri.rfind('/');
  if (scheme == std::string::npos || slash < scheme + 3 || slash + 1 == uri.size()) {
    return InvalidArgumentError("'" + uri +
                                "' names no object; write file:///folder/name or s3://bucket/name");
  }
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> opened,
                        OpenStore(StoreConfigOf(credentials.Now(), uri.substr(0, slash)), runtime));
  CountingObjectStore store(std::move(opened), counters);
  const std::string key = uri.substr(slash + 1);
  const auto info = store.Head(key);
  if (!info.ok()) return info.status().WithContext(uri);
  if (info->size > max_bytes) {
    return InvalidArgumentError(uri + " has " + std::to_string(info->size) + " bytes; at most " +
                                std::to_string(max_bytes) + " are read");
  }
  const auto bytes = store.ObjectStore::Get(key);
  if (!bytes.ok()) return bytes.status().WithContext(uri);
  return std::string(AsText(*bytes));
}

std::optional<int> AnswerArguments(const char* name, int argc, char** argv) {
  if (argc < 2) return std::nullopt;
  const std::string argument = argv[1];
  if (argc == 2 && (argument == "-h" || argument == "--help")) {
    std::printf(kHelp, name, name);
    return kExitOk;
  }
  if (argc == 2 && argument == "--version") {
    std::printf("%s %s, slice protocol %d\n", name, LAMBDADNN_VERSION, kProtocolVersion);
    return kExitOk;
  }
  std::fprintf(stderr,
               "error: %s takes no argument '%s': it is set up by environment variables; see %s "
               "--help\n",
               name, argument.c_str(), name);
  return kExitBadEnvironment;
}

int RunFunction(Runtime& runtime, SliceEnvironment environment, SliceCredentials& credentials,
                const DataCounters& counters) {
  const sigset_t signals = BlockEndSignals();
  Result<FunctionSettings> settings = ReadSettings();
  if (!settings.ok()) return Fail(settings.status(), kExitBadEnvironment);

  CpuPacer pacer(runtime.clock, settings->milli_cpu);
  pacer.FollowFile(settings->milli_cpu_file);
  environment.usage = CurrentProcessUsage;
  const std::unique_ptr<ThrottledTime> throttled = ThrottledTime::Open();
  if (throttled != nullptr) {
    environment.throttled_seconds = [&throttled] { return throttled->Seconds(); };
  }
  AddStores(runtime, credentials, counters, environment);
  // Where no control group keeps the quota the function host says so by LAMBDADNN_MILLI_CPU_FILE, a
  // platform without limits by LAMBDADNN_MILLI_CPU.
  if (settings->milli_cpu > 0 || !settings->milli_cpu_file.empty()) {
    AddPacing(pacer, &environment);
  }

  const PeerKeys peer_keys = DerivePeerKeys(settings->job_key);
  Result<std::unique_ptr<TcpNetwork>> peers = ListenToPeers(runtime, *settings, peer_keys);
  if (!peers.ok()) return Fail(peers.status(), kExitCannotListen);
  environment.peers = {peers->get(), peer_keys.handshake, [](const std::string& why) {
                         LogWarning("peers", "does not reach all functions that it connects to",
                                    {{"last", why}});
                       }};
  if (*peers != nullptr) {
    environment.peers.open_own = [&runtime, tls = TlsOfPeers(*settings, peer_keys)] {
      return OpenOwnNetwork(runtime, tls);
    };
  }

  MetricsRegistry metrics;
  NumericsFingerprint fingerprint = {environment.isa, environment.libtorch};
  SliceService service(runtime, std::move(environment));
  SliceServiceControl slices(service);
  FunctionServer handler(runtime, slices, metrics, settings->job_key, std::move(fingerprint));
  Result<std::unique_ptr<FunctionHttp>> http = FunctionHttp::Listen(runtime, handler, *settings);
  if (!http.ok()) return Fail(http.status(), kExitCannotListen);
  const int port = (*http)->port();
  const Status written = WritePorts(*settings, port, peers->get());
  if (!written.ok()) return Fail(written, kExitCannotListen);
  LogInfo("function", "ready",
          {{"address", settings->bind_address},
           {"port", port},
           {"tlsPort", (*http)->tls_port()},
           {"peerPort", *peers == nullptr ? 0 : (*peers)->port()},
           {"protocol", kProtocolVersion}});

  int signal_number = 0;
  sigwait(&signals, &signal_number);
  LogInfo("function", "ending", {{"signal", signal_number}});
  handler.SetNotReady();
  slices.Drain();
  AwaitDrained(slices, **http, signals);
  return kExitOk;
}

}  // namespace lambdadnn
