// SPDX-License-Identifier: Apache-2.0
#include "operator/server/operator_process.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "common/base/check.h"
#include "common/base/descriptor_limit.h"
#include "common/base/endpoint.h"
#include "common/base/files.h"
#include "common/base/process_usage.h"
#include "common/base/text.h"
#include "common/http/http_transport.h"
#include "common/http/pinned_certificate.h"
#include "common/json/dump_json.h"
#include "common/telemetry/log.h"
#include "common/telemetry/metrics.h"
#include "operator/api/backend_kind.h"
#include "operator/api/platform_file.h"
#include "operator/backends/beast_slice_client.h"
#include "operator/backends/local/local_platform.h"
#include "operator/controller/loop/controller.h"
#include "operator/controller/store/store_access.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/http_kube_client.h"
#include "operator/kube/leader_election.h"
#include "operator/kube/server_clock.h"
#include "operator/server/backend_factory.h"
#include "operator/server/job_metrics.h"
#include "operator/server/operator_http.h"
#include "operator/server/tracing.h"
#include "trainer_function/data/dataset_check.h"
#include "trainer_function/data/module_check.h"

namespace lambdadnn {
namespace {

// The election must notice in time that the API server does not answer.
constexpr double kElectionCallSeconds = 4;
constexpr double kEpochRetrySeconds = 1;
constexpr double kStoreRetrySeconds = 5;
// A line of progress is at most so old when it arrives, and what is in front of functions must not
// end a request sooner.
constexpr double kWindowSeconds = 0.75;
// Enough for the events of more than a thousand jobs that start at once.
constexpr size_t kWaitingEvents = 8000;
constexpr int kExitLeadLost = 1;
// A pass makes at most some dozens of requests to the API server, each with a timeout of half a
// minute.
constexpr Duration kStuckPass = std::chrono::seconds(600);
// Less than this is what answers leave open.
constexpr double kNotedSkewSeconds = 2;

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string IdentityOf(const OperatorOptions& options, Random& random) {
  if (!options.identity.empty()) return options.identity;
  return HostName() + "_" + MakeUuid(random);
}

std::function<void(const std::string&, int, double)> CountRequests(MetricsRegistry& metrics,
                                                                   const std::string& server) {
  Result<Endpoint> read = ParseEndpoint(server);
  // A label of metrics is one for all servers, whatever their scheme.
  const std::string host = read.ok() ? read->Authority() + read->path : server;
  return [&metrics, host](const std::string& method, int code, double seconds) {
    const std::string answer = code == 0 ? "<error>" : std::to_string(code);
    metrics
        .GetCounter("rest_client_requests_total", "Requests to the API server by their answer.",
                    {{"code", answer}, {"host", host}, {"method", method}})
        .Add();
    metrics
        .GetHistogram("rest_client_request_duration_seconds", "Duration of requests.",
                      {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
                      {{"host", host}, {"verb", method}})
        .Observe(seconds);
  };
}

// The file that a flag names; nothing without the flag.
template <typename T>
Result<std::optional<T>> ReadNamed(const char* flag, const std::string& file,
                                   Result<T> (*read)(const std::string& file)) {
  if (file.empty()) return std::optional<T>();
  Result<T> content = read(file);
  if (!content.ok()) return content.status().WithContext(flag);
  return std::optional<T>(*std::move(content));
}

}  // namespace

Result<KubeConnection> ConnectionOf(const OperatorOptions& options) {
  const auto host = GetEnvironment("KUBERNETES_SERVICE_HOST");
  if (options.kubeconfig.empty() && options.context.empty() && host.has_value()) {
    return InClusterConnection(host, GetEnvironment("KUBERNETES_SERVICE_PORT"));
  }
  return LoadKubeconfig(
      KubeconfigFiles(options.kubeconfig, GetEnvironment("KUBECONFIG"), GetEnvironment("HOME")),
      options.context);
}

std::string LeaseNamespace(const OperatorOptions& options, const KubeConnection& connection) {
  return options.lease_namespace.empty() ? connection.namespace_name : options.lease_namespace;
}

TenantRules TenantRulesOf(const OperatorOptions& options) {
  TenantRules rules;
  rules.uri = options.store;
  rules.endpoint = GetEnvironment("LAMBDADNN_S3_ENDPOINT").value_or("");
  const StoreReference own = OwnStoreReference(options.store);
  rules.region = own.region;
  rules.path_style = own.path_style;
  rules.sign_payload = own.sign_payload;
  rules.readable = options.readable;
  rules.expose_operator_credentials = !options.require_job_credentials;
  rules.endpoints.refuse_loopback = CapabilitiesOf(options.backend).pods;
  if (const auto host = GetEnvironment("KUBERNETES_SERVICE_HOST"); host.has_value()) {
    const auto port = ParseInteger(GetEnvironment("KUBERNETES_SERVICE_PORT").value_or("443"));
    rules.endpoints.api_server =
        Endpoint{.scheme = "https", .host = *host, .port = static_cast<int>(port.value_or(0))};
  }
  return rules;
}

Result<std::optional<StoreEndpoints>> StoreEndpointsOf(const OperatorOptions& options) {
  auto endpoints = ReadNamed("--store-endpoints", options.store_endpoints_file, ReadStoreEndpoints);
  if (endpoints.ok() && endpoints->has_value()) {
    (*endpoints)->own = GetEnvironment("LAMBDADNN_S3_ENDPOINT").value_or("");
  }
  return endpoints;
}

Result<std::optional<PodRules>> PodRulesOf(const OperatorOptions& options) {
  return ReadNamed("--pod-rules", options.pod_rules_file, ReadPodRules);
}

// Null: functions try modules.
ModuleTrial TrialBy(const std::string& checker) {
  if (checker.empty()) return nullptr;
  return [checker](std::string_view archive, const TrialNeeds& needs) {
    return TryModule(checker, archive, needs);
  };
}

struct OperatorProcess::State {
  State(Runtime& of, OperatorOptions with)
      : runtime(of), options(std::move(with)), identity(IdentityOf(options, of.random)) {}

  Status Open();
  Status OpenBackend();
  Status Serve();
  void StartLeading();
  void Lead(int64_t epoch);
  void AwaitEpoch();
  ControllerDependencies Dependencies();
  std::function<Result<bool>()> LeadsNow();
  HttpServerReply Alive();
  HttpServerReply Ready();
  HttpServerReply Metrics();
  HttpServerReply Debug(const std::string& path);

  // Client options by which the server clock learns the server's time.
  HttpKubeClientOptions ServerTimed(HttpKubeClientOptions with);

  Runtime& runtime;
  ServerClock server_clock{runtime.clock};
  // Times of objects are the API server's.
  Runtime server_runtime{server_clock, runtime.executor, runtime.random};
  const OperatorOptions options;
  const std::string identity;
  MetricsRegistry metrics;
  KubeConnection connection;
  Platform platform;
  std::optional<StoreEndpoints> store_endpoints;
  std::optional<PodRules> pod_rules;
  Reservation capacity;  // of all jobs together, as the platform file gives it
  std::unique_ptr<HttpKubeClient> kube;
  std::unique_ptr<HttpKubeClient> election_kube;
  std::unique_ptr<FunctionBackend> backend;
  ClusterBound* cluster = nullptr;  // the same, where it has one
  std::unique_ptr<BeastSliceClient> slices;
  const std::shared_ptr<HttpCancellation> store_requests = std::make_shared<HttpCancellation>();
  std::unique_ptr<EventRecorder> recorder;
  std::unique_ptr<Tracing> tracing;  // null: nobody asks for traces
  std::unique_ptr<Informer> jobs;
  JobMetrics job_metrics;
  OperatorHttp health_pages;
  OperatorHttp metrics_pages;
  std::unique_ptr<HttpServer> health;
  std::unique_ptr<HttpServer> metrics_server;
  std::unique_ptr<LeaderElection> election;
  std::unique_ptr<Task> epoch_task;
  std::mutex mutex;
  bool stopping = false;                   // with the mutex
  std::unique_ptr<Controller> controller;  // made with the mutex, once
};

OperatorProcess::OperatorProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}

OperatorProcess::~OperatorProcess() { Stop(); }

HttpKubeClientOptions OperatorProcess::State::ServerTimed(HttpKubeClientOptions with) {
  with.on_request = CountRequests(metrics, connection.server);
  with.on_date = [this](WallTime date, Instant sent, Instant received) {
    const bool first = !server_clock.OwnAhead().has_value();
    server_clock.Observe(date, sent, received);
    const double ahead = ToSeconds(server_clock.OwnAhead().value());
    if (first && std::abs(ahead) > kNotedSkewSeconds) {
      LogWarning("operator",
                 "the clocks of this machine and of the API server differ; times of jobs are the "
                 "server's",
                 {{"aheadSeconds", std::round(ahead)}});
    }
  };
  return with;
}

Status OperatorProcess::State::Open() {
  if (options.platform_file.empty()) {
    platform = LocalPlatform(MeasureMachine());
  } else {
    LDNN_ASSIGN_OR_RETURN(platform, ReadPlatform(options.platform_file, runtime.clock.Wall()));
    capacity = {platform.total_memory_mib, platform.total_milli_cpu, 0, platform.total_gpus};
  }
  LDNN_ASSIGN_OR_RETURN(store_endpoints, StoreEndpointsOf(options));
  LDNN_ASSIGN_OR_RETURN(pod_rules, PodRulesOf(options));
  LDNN_ASSIGN_OR_RETURN(connection, ConnectionOf(options));
  kube = std::make_unique<HttpKubeClient>(connection, server_runtime,
                                          ServerTimed({.user_agent = "lambdadnn-operator",
                                                       .queries_per_second = options.kube_api_qps,
                                                       .burst = options.kube_api_burst}));
  recorder = std::make_unique<EventRecorder>(
      *kube, server_runtime,
      EventRecorder::Options{.instance = "lambdadnn-operator-" + identity.substr(0, 100),
                             .queue_limit = kWaitingEvents});
  LDNN_ASSIGN_OR_RETURN(tracing, Tracing::Open(runtime, GetEnvironment, identity, metrics));
  LDNN_RETURN_IF_ERROR(OpenBackend());
  BeastSliceClient::Options streams;
  if (CapabilitiesOf(options.backend).buffers_answers) streams.window_seconds = kWindowSeconds;
  slices = std::make_unique<BeastSliceClient>(runtime, streams);
  jobs = std::make_unique<Informer>(*kube, server_runtime,
                                    InformerOptions{.type = ServerlessTrainingJobType(),
                                                    .namespaces = options.namespaces,
                                                    .storage = ObjectCache::Storage::kText});
  return OkStatus();
}

Status OperatorProcess::State::OpenBackend() {
  const BackendFactory* factory = FindBackendFactory(options.backend);
  LDNN_CHECK(factory != nullptr, "the options are valid");
  LDNN_ASSIGN_OR_RETURN(
      OpenedBackend opened,
      factory->open(
          {.options = options,
           .runtime = runtime,
           .server_runtime = server_runtime,
           .kube = *kube,
           .try_create = [this](const ResourceType& type,
                                const Json& object) { return kube->CreateDryRun(type, object); },
           .record_event = [this](EventDraft draft) { recorder->Record(std::move(draft)); },
           .store_endpoints = store_endpoints}));
  backend = std::move(opened.backend);
  cluster = opened.cluster;
  platform.machine_sidecar_memory_mib = opened.sidecar.memory_mib;
  platform.machine_sidecar_milli_cpu = opened.sidecar.milli_cpu;
  if (const double most = opened.most_memory_mib; most > 0) {
    const double total = platform.total_memory_mib;
    platform.total_memory_mib = total > 0 ? std::min(total, most) : most;
  }
  if (opened.gpus && *opened.gpus < platform.total_gpus.Or(*opened.gpus + 1)) {
    platform.total_gpus = {*opened.gpus, Origin::kMeasured};
  }
  return OkStatus();
}

// A restart resolves a deadlock: this handler must not wait for a lock that is never released.
HttpServerReply OperatorProcess::State::Alive() {
  Duration longest = Duration::zero();
  {
    const std::lock_guard lock(mutex);
    if (controller != nullptr) longest = controller->LongestPass();
  }
  if (longest < kStuckPass) return TextReply(200, "ok");
  return TextReply(500, "a pass over a job has been going for " +
                            std::to_string(static_cast<int64_t>(ToSeconds(longest))) + " s");
}

HttpServerReply OperatorProcess::State::Ready() {
  if (jobs->synced()) return TextReply(200, "ok");
  const std::string why = jobs->Problem().message();
  return TextReply(503, "jobs are not listed yet" + (why.empty() ? "" : ": " + why));
}

HttpServerReply OperatorProcess::State::Metrics() {
  {
    const std::lock_guard lock(mutex);
    if (controller != nullptr) controller->UpdateMetrics();
  }
  const ProcessUsage usage = CurrentProcessUsage();
  metrics.GetGauge("process_resident_memory_bytes", "Resident memory.")
      .Set(static_cast<double>(ResidentBytes()));
  Counter& cpu = metrics.GetCounter("process_cpu_seconds_total", "Processor time.");
  cpu.Add(std::max(0.0, usage.cpu_seconds - cpu.value()));
  metrics.GetGauge("process_open_fds", "Open files and sockets.")
      .Set(static_cast<double>(OpenDescriptors()));
  if (election != nullptr) {
    metrics
        .GetGauge("leader_election_master_status", "1 = this process leads.",
                  {{"name", options.lease_name}})
        .Set(election->is_leader() ? 1 : 0);
  }
  if (const auto ahead = server_clock.OwnAhead(); ahead.has_value()) {
    metrics
        .GetGauge("lambdadnn_clock_ahead_seconds",
                  "How far this machine's clock is ahead of the API server's.")
        .Set(ToSeconds(*ahead));
  }
  const Informer::Counts counts = jobs->counts();
  metrics.GetGauge("lambdadnn_informer_lists", "Lists of all jobs since the start.")
      .Set(static_cast<double>(counts.lists));
  metrics.GetGauge("lambdadnn_informer_watches", "Watches begun since the start.")
      .Set(static_cast<double>(counts.watches));
  metrics.GetGauge("lambdadnn_events_dropped", "Events that could not be written.")
      .Set(static_cast<double>(recorder->dropped()));
  HttpServerReply reply;
  reply.content_type = MetricsRegistry::kContentType;
  reply.body = metrics.Text() + job_metrics.Text(jobs->cache());
  return reply;
}

HttpServerReply OperatorProcess::State::Debug(const std::string& path) {
  const std::vector<std::string> words = Split(path, '/');  // "", debug, jobs, NAMESPACE, NAME
  if (words.size() != 5) return TextReply(404, "ask for /debug/jobs/NAMESPACE/NAME");
  const std::lock_guard lock(mutex);
  if (controller == nullptr) return TextReply(503, "this process does not lead");
  const Result<Json> described = controller->Describe({words[3], words[4]});
  if (!described.ok()) return ErrorReply(described.status());
  HttpServerReply reply;
  reply.body = DumpJson(*described, 1) + "\n";
  return reply;
}

Status OperatorProcess::State::Serve() {
  health_pages.Add("/healthz", [this](const HttpServerRequest&) { return Alive(); });
  health_pages.Add("/readyz", [this](const HttpServerRequest&) { return Ready(); });
  metrics_pages.Add("/metrics", [this](const HttpServerRequest&) { return Metrics(); });
  if (options.debug_endpoint) {
    metrics_pages.Add("/debug/jobs/",
                      [this](const HttpServerRequest& request) { return Debug(request.path); });
  }
  LDNN_ASSIGN_OR_RETURN(health,
                        health_pages.Listen(runtime, "--health-address", options.health_address));
  LDNN_ASSIGN_OR_RETURN(
      metrics_server, metrics_pages.Listen(runtime, "--metrics-address", options.metrics_address));
  return OkStatus();
}

ControllerDependencies OperatorProcess::State::Dependencies() {
  const std::string ca_file = options.store_ca_file;
  std::map<std::string, std::string> environment = StoreEnvironment(ca_file);
  // Functions in pods of their own have no file of this process.
  if (CapabilitiesOf(options.backend).pods) {
    auto portable = PortableStoreEnvironment(ca_file);
    if (portable.ok()) {
      environment = *std::move(portable);
    } else {
      LogWarning("operator", "functions will not trust the store: " + portable.status().message());
    }
  }
  std::function<Result<TlsIdentity>(const std::string&)> make_certificate;
  if (options.function_tls && CapabilitiesOf(options.backend).tls) {
    make_certificate = MakeTlsIdentity;
  }
  Runtime& with = runtime;
  EventRecorder& events = *recorder;
  std::function<void(std::vector<Span>)> export_spans;
  if (tracing != nullptr) {
    export_spans = [to = tracing.get()](std::vector<Span> spans) { to->Export(std::move(spans)); };
  }
  return {
      .runtime = server_runtime,
      .kube = *kube,
      .backend = *backend,
      .slices = *slices,
      .open_store =
          [ca_file, &with, requests = store_requests](const StoreReference& reference,
                                                      const StoreSecrets& secrets) {
            // The controller repeats what fails; meanwhile others have their turn.
            return OpenJobStore(reference, secrets, ca_file, with, kStoreRetrySeconds, requests);
          },
      .store_environment = environment,
      .own_credentials = CredentialsFromEnvironment,
      .measurements = [](const Job& job, ObjectStore& store) -> std::unique_ptr<MeasurementStore> {
        return std::make_unique<StoredMeasurements>(store, job);
      },
      .check_dataset = CheckDataset,
      .check_module =
          [trial = TrialBy(options.module_checker)](const TrainingConfig& training,
                                                    const OpenStoreAt& open_store) {
            return CheckModule(training, open_store, trial);
          },
      .record_event = [&events](EventDraft draft) { events.Record(std::move(draft)); },
      .export_spans = std::move(export_spans),
      .metrics = &metrics,
      .end_store_requests = [requests = store_requests] { requests->Cancel(); },
      .leads_now = LeadsNow(),
      .assume_role =
          [ca_file, &with, requests = store_requests](const StoreReference& reference,
                                                      const StoreSecrets& secrets,
                                                      const AssumedRole& role) {
            return AssumeJobRole(reference, secrets, ca_file, with, role, requests);
          },
      .make_certificate = make_certificate,
      .cluster = cluster};
}

// Without an election there is no way to know of other operators.
std::function<Result<bool>()> OperatorProcess::State::LeadsNow() {
  if (election == nullptr) return nullptr;
  return [of = election.get()] { return of->HoldsNow(); };
}

void OperatorProcess::State::Lead(int64_t epoch) {
  ControllerOptions with;
  with.tenants = TenantRulesOf(options);
  with.tenants->endpoints.listed = store_endpoints;
  with.pod_rules = pod_rules;
  with.backend = options.backend;
  with.worker_image = options.worker_image;
  with.worker_gpu_image = options.worker_gpu_image;
  with.platform = platform;
  with.capacity = capacity;
  with.namespace_weights = ParseNamespaceWeights(options.namespace_weights).value();  // valid
  with.workers = options.workers;
  with.leader_epoch = epoch;
  const std::lock_guard lock(mutex);
  if (stopping) return;
  LogInfo("operator", "leading", {{"identity", identity}, {"epoch", epoch}});
  controller = std::make_unique<Controller>(Dependencies(), with, *jobs);
  controller->Start();
  slices->SetListener([leading = controller.get()](const JobIdentity& job) {
    leading->Wake({job.namespace_name, job.name});
  });
}

// Without an election this process is the only one; its epoch still follows those of others before
// it, whatever they got theirs from: versions of the API server grow.
void OperatorProcess::State::AwaitEpoch() {
  const std::string space = options.namespaces.empty() ? "" : options.namespaces.front();
  for (std::string said;;) {
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
    }
    const Result<KubeList> list = kube->List(ServerlessTrainingJobType(), space, "", 1, "");
    if (list.ok()) return Lead(ParseInteger(list->resource_version).value_or(1));
    if (list.status().message() != said) {
      said = list.status().message();
      LogWarning("operator", "waits for the API server: " + said);
    }
    runtime.clock.SleepFor(FromSeconds(kEpochRetrySeconds));
  }
}

void OperatorProcess::State::StartLeading() {
  if (!options.leader_elect) {
    epoch_task = runtime.executor.Spawn("epoch", [this] { AwaitEpoch(); });
    return;
  }
  election_kube = std::make_unique<HttpKubeClient>(
      connection, server_runtime,
      ServerTimed({.user_agent = "lambdadnn-operator/leader-election",
                   .call_inactivity_seconds = kElectionCallSeconds,
                   .call_total_seconds = kElectionCallSeconds,
                   .max_attempts = 1}));
  election = std::make_unique<LeaderElection>(
      *election_kube, server_runtime,
      LeaderElectionOptions{.lease = {LeaseNamespace(options, connection), options.lease_name},
                            .identity = identity},
      LeaderElection::Callbacks{.on_acquired = [this](int64_t epoch) { Lead(epoch); },
                                .on_lost =
                                    [](const std::string& why) {
                                      LogError("operator", "lost the lead, ending: " + why);
                                      ::_exit(kExitLeadLost);
                                    },
                                .on_new_leader =
                                    [](const std::string& leader) {
                                      LogInfo("operator", "standby", {{"leader", leader}});
                                    }});
  election->Start();
}

Result<std::unique_ptr<OperatorProcess>> OperatorProcess::Start(Runtime& runtime,
                                                                const OperatorOptions& options) {
  LDNN_RETURN_IF_ERROR(options.Validate());
  auto state = std::make_unique<State>(runtime, options);
  LDNN_RETURN_IF_ERROR(state->Open());
  std::unique_ptr<OperatorProcess> process(new OperatorProcess(std::move(state)));
  LDNN_RETURN_IF_ERROR(process->state_->Serve());
  process->state_->jobs->Start();
  process->state_->StartLeading();
  LogInfo("operator", "started", {{"server", process->state_->connection.server}});
  return process;
}

void OperatorProcess::Stop() {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopping) return;
    state_->stopping = true;
  }
  // In this order: the lease is released only when nothing acts any more.
  if (state_->epoch_task != nullptr) state_->epoch_task->Join();
  if (state_->slices != nullptr) state_->slices->SetListener(nullptr);
  if (state_->controller != nullptr) state_->controller->Stop();
  if (state_->election != nullptr) state_->election->Stop();
  state_->tracing.reset();
  state_->health.reset();
  state_->metrics_server.reset();
  if (state_->jobs != nullptr) state_->jobs->Stop();
  state_->recorder.reset();
}

}  // namespace lambdadnn
