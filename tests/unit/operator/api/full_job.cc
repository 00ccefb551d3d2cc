// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/api/full_job.h"

namespace lambdadnn {
namespace {

WorkloadProfile FullProfile() {
  WorkloadProfile profile;
  profile.training_samples = 12000;
  profile.training_bytes = 9408000;
  profile.model_bytes = 247e3;
  profile.buffer_bytes = 2e3;
  profile.training_rate = {0.03, 5.6, {{128, 10.5}, {256, 1.0 / 3}}, 950.5};
  profile.iteration_overhead_seconds = 0.001;
  profile.evaluation_samples = 2000;
  profile.evaluation_rate = {0.1, 0.2, {{128, 55.5}}, 3000};
  profile.merge_bytes_per_second = 1e9;
  profile.cold_start_seconds = 0.6;
  profile.cold_start_deviation_seconds = 0.25;
  profile.release_seconds = 2.5;
  profile.slice_overhead_seconds = 1.5;
  profile.checkpoint_seconds = 0.05;
  profile.checkpoint_cpu_seconds = 0.02;
  profile.iteration_cpu_seconds = 0.0015;
  profile.disturbed_cpu_seconds = 0.0005;
  profile.start_cpu_seconds = 0.4;
  profile.load_cpu_seconds_per_sample = 2e-5;
  profile.update_cpu_seconds_per_byte = 1e-9;
  profile.finish_cpu_seconds = 0.06;
  profile.store_bytes_per_second = 2e8;
  profile.store_request_seconds = 0.003;
  profile.store_streams = {{1, 1e8}, {4, 2.5e8}};
  profile.store_deviation_seconds = 0.001;
  profile.transfer = {1e-4, 2e-9, 3e-5, 1.5e-9};
  profile.direct = {{2e-5, 3e-10, 4e-5, 1e-9}, 3e-5, 6e-10, 2e-4, 1e-4, 4e8, 5e-4};
  profile.host = {5e-4, 1e-3, 5e-9, 2e-3, 7e-4, 3e-9, 8e-4, 4e-9, 6e-9, 9e-4, 7e-9};
  profile.store_host = {0, 2e-3, 6e-9, 0, 5e-4, 2e-9, 4e-4, 1e-9, 0, 3e-4, 8e-9};
  profile.doorbell = {2e-5, 3e-5};
  profile.miss = {0.002, 1e-4};
  profile.worker_base_memory_mib = 120.5;
  profile.worker_least_memory_mib = 140.25;
  profile.loaded_bytes_per_sample = 792;
  profile.stream_requests_per_sample = 2;
  profile.stream_bytes_per_sample = 785;
  profile.stream_cpu_seconds_per_sample = 3e-5;
  profile.stream_seconds_per_sample = 4e-5;
  profile.open_requests = 6;
  profile.open_lists = 1;
  profile.load_requests_per_sample = 0.002;
  profile.worker_bytes_per_sample = 40000;
  profile.residual = 0.02;
  profile.run = {1.1, 0.9, 1.2, 1.3, 1.4, 0.8, 0.7};
  return profile;
}

ModelSpec FullModel() {
  ModelSpec model;
  model.builtin_name = "cnn";
  model.builtin_parameters = {
      {"hidden", {128, 64}}, {"dropout", 0.5}, {"rates", {0.25, 1}}, {"padding", true}};
  model.torch_script_uri = "s3://models/model.pt";
  return model;
}

DatasetSpec FullDataset() {
  DatasetSpec dataset;
  dataset.uri = "s3://data/train";
  dataset.test_uri = "s3://data/test";
  dataset.format = DatasetFormat::kCsv;
  dataset.classes = 10;
  dataset.feature_shape = {1, 28, 28};
  dataset.normalize_mean = 0.1307;
  dataset.normalize_standard_deviation = 0.3081;
  dataset.augment = {.flip = true,
                     .crop_padding = 4,
                     .random_resized_crop = RandomResizedCrop{160, 128, 0.25, 0.75, 0.5, 2},
                     .color_jitter = {0.4, 0.3, 0.2, 0.1},
                     .mixup_alpha = 0.5};
  dataset.csv = DatasetSpec::Csv{"digit", false};
  dataset.parquet = DatasetSpec::Parquet{"species"};
  dataset.cifar100_labels = CifarLabels::kCoarse;
  dataset.channel_mean = {0.485, 0.456, 0.406};
  dataset.channel_standard_deviation = {0.229, 0.224, 0.225};
  dataset.image = DatasetSpec::Images{224, 192, 1};
  dataset.text = DatasetSpec::Text{"vocab.txt", Tokenizer::kWhitespace, 64};
  dataset.on_bad_sample = BadSamples::kSkip;
  dataset.max_bad_samples = 7;
  dataset.rendered_digits = DatasetSpec::RenderedDigits{600, 100, 7};
  return dataset;
}

TrainingSpec FullTraining() {
  TrainingSpec training;
  training.epochs = 3;
  training.global_batch_size = 120;
  training.max_global_batch_size = 512;
  training.local_batch_size = 32;
  training.seed = 42;
  training.loss = Loss::kMse;
  training.optimizer = {OptimizerKind::kAdamW,
                        0.002,
                        LearningRateScaling::kLinear,
                        0.9,
                        0.1,
                        true,
                        0.01,
                        0.8,
                        0.99,
                        1e-7,
                        true,
                        ScheduleKind::kCosine,
                        20,
                        50,
                        0.5,
                        0.001,
                        2,
                        5.0,
                        1.5};
  training.stop_at_loss = 0.05;
  training.label_smoothing = 0.1;
  training.evaluate_every = 2;
  training.early_stopping = {TestMetric::kAccuracy, 4, 0.001};
  training.keep_best = TestMetric::kTop5Accuracy;
  training.class_weights = {1, 0.25, 12.5};
  training.micro_batch_size = 8;
  training.precision = Precision::kBfloat16;
  return training;
}

JobSpec FullSpec() {
  JobSpec spec;
  spec.model = FullModel();
  spec.dataset = FullDataset();
  spec.training = FullTraining();
  spec.objective.deadline_seconds = 90;
  spec.objective.budget = 0.25;
  spec.objective.finish_by = WallTime(std::chrono::seconds(1'800'000'000));
  spec.objective.performance_cost_ratio = true;
  spec.objective.cost_weight = 0.25;
  spec.objective.best_effort = true;
  spec.objective.confidence = 0.95;
  spec.objective.fixed = Objective::Fixed{8, 1728};
  spec.functions = {2, 16, 128, 3008, 64, 1};
  spec.aggregation = {TransportKind::kObjectStore, Placement::kDedicated, 4, {1, 2}, 2, 256};
  spec.profile = FullProfile();
  spec.object_store = {"file:///store", "https://minio:9000", "training",
                       "team",          "eu-west-1",          false,
                       false,           "store-key",          "store-ca"};
  spec.checkpoint = {60, 5, "s3://old/checkpoint"};
  spec.backend = BackendKind::kKnative;
  spec.addressing = Addressing::kService;
  spec.peer_channel = PeerChannelMode::kPlain;
  spec.profiling = Profiling::kWhileTraining;
  PodTemplate& pods = spec.pod_template;
  pods.labels = {{"team", "vision"}};
  pods.annotations = {{"sidecar.istio.io/inject", "false"}};
  pods.service_account_name = "trainer";
  pods.image_pull_secrets = {"pull"};
  pods.node_selector = {{"disk", "ssd"}};
  pods.tolerations = Json::parse(R"([{"key": "gpu", "operator": "Equal", "value": "no",
                                      "effect": "NoSchedule", "tolerationSeconds": 30}])");
  pods.workers.node_selector = {{"nvidia.com/gpu.product", "H100"}};
  pods.workers.tolerations = pods.tolerations;
  pods.affinity = {{"nodeAffinity", Json::object()}};
  pods.priority_class_name = "low";
  pods.runtime_class_name = "gvisor";
  pods.scheduler_name = "volcano";
  pods.topology_spread_constraints = Json::parse(R"([{"maxSkew": 1, "topologyKey": "zone"}])");
  pods.volumes = Json::parse(R"([{"name": "scratch", "emptyDir": {}}])");
  ContainerTemplate worker;
  worker.name = "worker";
  worker.image = "registry.example/worker:1";
  worker.env = Json::parse(R"([{"name": "A", "value": "b"},
                               {"name": "C",
                                "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])");
  worker.resources = Json::parse(R"({"requests": {"ephemeral-storage": "1Gi"},
                                     "limits": {"nvidia.com/gpu": 1}})");
  worker.volume_mounts = Json::parse(
      R"([{"name": "scratch", "mountPath": "/scratch", "subPath": "a", "readOnly": false}])");
  pods.containers = {std::move(worker)};
  spec.suspend = true;
  spec.managed_by = "kueue.x-k8s.io/multikueue";
  spec.backoff_limit = 3;
  spec.priority = 7;
  spec.active_deadline_seconds = 600;
  spec.ttl_seconds_after_finished = 3600;
  spec.cleanup_policy = CleanupPolicy::kOnSuccess;
  return spec;
}

Plan FullPlan() {
  Plan plan;
  plan.revision = 2;
  plan.first_iteration = 40;
  plan.functions = 8;
  plan.memory_mib = 1728;
  plan.server_memory_mib = 256;
  plan.sample_memory_mib = 640;
  plan.gpu = 1;
  plan.local_batch_size = 15;
  plan.global_batch_size = 120;
  plan.iterations = 300;
  plan.iterations_per_epoch = 100;
  plan.aggregation = {TransportKind::kObjectStore, Placement::kDedicated, 4, {1, 2, 8}, 2};
  plan.isa = "avx2";
  plan.libtorch = "1.13.1, built in";
  plan.checkpoint_every = 40;
  plan.parameters = (1 << 20) + 96;
  plan.buffers = 96;
  plan.block_elements = 4096;
  plan.predicted = {71.5, 0.0123, 300, 1.5, 0.2, 0.1, 0.05, 2.5, 7, 0.05, 2};
  plan.predicted.deviation = 8.5;
  plan.predicted.term_deviations = {0.5, 0.03, 0.01, 0.02, 1, 3, 0.01, 0.75};
  plan.binding = {"deadline"};
  return plan;
}

JobStatus FullStatus() {
  JobStatus status;
  status.observed_generation = 2;
  status.phase = "Running";
  status.conditions = {
      {"Accepted", "True", "SpecValid", "The job is valid.", "2026-01-31T12:00:00Z", 2},
      {"Running", "True", "SlicesRunning", "", "2026-01-31T12:00:09Z", 2}};
  status.plan = FullPlan();
  status.profile = FullProfile();
  status.execution = {3,
                      120,
                      Json{{"prefix", "p"}, {"iteration", 120}},
                      1,
                      12.25,
                      PlannedInputs{FullSpec().objective, FullSpec().functions,
                                    FullSpec().aggregation, 3, 512, 256},
                      {{"worker-0", 1, "instance-1"}, {"server-0", 2, "instance-2"}},
                      4,
                      {1.5, 0.1 + 0.2, 2},
                      1,
                      512,
                      256,
                      "digits-4f6c2b1e9d3a",
                      "4f6c2b1e-9d3a-4e0b-8f6e-2f1d5a7c9b10",
                      "910a2dec-8902-4cc1-beeb-8da1658eec67",
                      {"sha256:" + std::string(64, 'a'), true},
                      {12000, 2000, 788, 105506},
                      UnmeasuredPlan::kLeft};
  PlanRecord record;
  record.revision = 2;
  record.first_iteration = 40;
  record.functions = 8;
  record.memory_mib = 1728;
  record.aggregation.layers = {1, 2, 8};
  record.aggregation.shards = 4;
  record.aggregation.spread = 2;
  record.iterations = 300;
  record.reason = "the objective changed";
  record.at_seconds = 30.5;
  record.cost_before = 0.004;
  record.predicted_seconds = 71.5;
  record.predicted_cost = 0.0123;
  record.predicted_from = {52, 33.25, 0.005};
  PlanRecord first;
  first.functions = 4;
  status.plan_history = {first, record};
  status.progress = {130, 300, 1, 0.1 + 0.2, {0.5, 0.97, 0.99, 0.125}, 1234.5, 43, 41, 0.0625};
  status.usage = {12.5, 1.0 / 3, "EUR", 4242, 1 << 30, 16, 2, 9, "workers-1", 8.25, {}};
  for (const Phase phase : kWorkerPhases) {
    status.usage.worker_seconds[static_cast<size_t>(phase)] = 0.5 + static_cast<double>(phase);
  }
  status.workers_desired = 8;
  status.workers_ready = 7;
  status.model_uri = "file:///out/model.safetensors";
  status.model_digest = "0123456789abcdef";
  status.best_model = {"file:///out/model-best.safetensors", 70, TestMetric::kTop5Accuracy, 0.99};
  status.store_capabilities = {"ConditionalPut", "ArrivalHints"};
  status.store_credentials = kSecretCredentials;
  status.store_credentials_message = "the store has no AssumeRole";
  status.start_time = "2026-01-31T12:00:01Z";
  status.completion_time = "2026-01-31T12:01:12Z";
  return status;
}

}  // namespace

Job FullJob() {
  Job job;
  job.metadata = {"digits",
                  "team",
                  "0b7c9d8e-0000-4000-8000-000000000000",
                  "17",
                  2,
                  "2026-01-31T12:00:00Z",
                  "2026-01-31T12:05:00Z",
                  {kCleanupFinalizer},
                  {{"app", "digits"}},
                  {{"note", "text"}}};
  job.spec = FullSpec();
  job.status = FullStatus();
  return job;
}

}  // namespace lambdadnn
