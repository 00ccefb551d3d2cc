// SPDX-License-Identifier: Apache-2.0
#include "common/json/unknown_field.h"
#include "common/plan_json/plan_json.h"
#include "common/protocol/codec_internal.h"
#include "common/protocol/slice_codec.h"

namespace lambdadnn {
namespace {

Json ModelToJson(const ModelConfig& model) {
  Json json = {{"name", model.name}, {"parameters", Json::object()}};
  for (const auto& [name, values] : model.parameters) json["parameters"][name] = values;
  if (!model.torch_script_uri.empty()) json["torchScriptUri"] = model.torch_script_uri;
  if (!model.module.digest.empty()) json["torchScriptDigest"] = model.module.digest;
  if (model.module.tried) json["torchScriptTried"] = true;
  return json;
}

void ReadModel(const Json& json, const std::string& path, ModelConfig* out,
               std::vector<FieldError>* errors) {
  JsonReader reader(json, path, errors);
  reader.Optional("name", &out->name);
  reader.Optional("torchScriptUri", &out->torch_script_uri);
  reader.Optional("torchScriptDigest", &out->module.digest);
  reader.Optional("torchScriptTried", &out->module.tried);
  if (const Json* parameters = reader.Child("parameters")) {
    JsonReader inner(*parameters, reader.PathOf("parameters"), errors);
    if (parameters->is_object()) {
      for (const auto& [name, unused] : parameters->items()) {
        std::vector<double> values;
        if (inner.Optional(name, &values)) out->parameters[name] = std::move(values);
      }
    }
  }
  reader.Finish();
}

// Of what is not there nothing is said.
void AugmentationToJson(const Augmentation& augment, Json* json) {
  if (const auto& crop = augment.random_resized_crop) {
    (*json)["augmentRandomResizedCrop"] = {
        {"height", crop->height},          {"width", crop->width},
        {"leastScale", crop->least_scale}, {"largestScale", crop->largest_scale},
        {"leastRatio", crop->least_ratio}, {"largestRatio", crop->largest_ratio}};
  }
  if (const ColorJitter& jitter = augment.color_jitter; jitter.active()) {
    (*json)["augmentColorJitter"] = {{"brightness", jitter.brightness},
                                     {"contrast", jitter.contrast},
                                     {"saturation", jitter.saturation},
                                     {"hue", jitter.hue}};
  }
  if (augment.mixup_alpha > 0) (*json)["augmentMixupAlpha"] = augment.mixup_alpha;
}

void ReadAugmentation(JsonReader& reader, Augmentation* out, std::vector<FieldError>* errors) {
  if (const Json* json = reader.Child("augmentRandomResizedCrop")) {
    RandomResizedCrop& crop = out->random_resized_crop.emplace();
    JsonReader inner(*json, reader.PathOf("augmentRandomResizedCrop"), errors);
    inner.Required("height", &crop.height);
    inner.Required("width", &crop.width);
    inner.Required("leastScale", &crop.least_scale);
    inner.Required("largestScale", &crop.largest_scale);
    inner.Required("leastRatio", &crop.least_ratio);
    inner.Required("largestRatio", &crop.largest_ratio);
    inner.Finish();
  }
  if (const Json* json = reader.Child("augmentColorJitter")) {
    ColorJitter& jitter = out->color_jitter;
    JsonReader inner(*json, reader.PathOf("augmentColorJitter"), errors);
    inner.Required("brightness", &jitter.brightness);
    inner.Required("contrast", &jitter.contrast);
    inner.Required("saturation", &jitter.saturation);
    inner.Required("hue", &jitter.hue);
    inner.Finish();
  }
  reader.Optional("augmentMixupAlpha", &out->mixup_alpha);
}

Json DatasetToJson(const DatasetConfig& dataset) {
  Json json = {{"uri", dataset.uri},
               {"testUri", dataset.test_uri},
               {"format", EnumName(dataset.format)},
               {"featureShape", dataset.feature_shape},
               {"classes", dataset.classes},
               {"normalizeMean", dataset.normalize_mean},
               {"normalizeStandardDeviation", dataset.normalize_standard_deviation},
               {"scale", dataset.scale},
               {"augmentFlip", dataset.augment.flip},
               {"augmentCropPadding", dataset.augment.crop_padding},
               {"labelColumn", dataset.label_column},
               {"csvHeader", dataset.csv_header}};
  AugmentationToJson(dataset.augment, &json);
  if (dataset.cifar100_labels != CifarLabels::kFine) {
    json["cifar100Labels"] = EnumName(dataset.cifar100_labels);
  }
  if (!dataset.channel_mean.empty()) {
    json["channelMean"] = dataset.channel_mean;
    json["channelStandardDeviation"] = dataset.channel_standard_deviation;
  }
  if (HasImageFiles(dataset.format)) {
    json["imageHeight"] = dataset.image.height;
    json["imageWidth"] = dataset.image.width;
    json["imageChannels"] = dataset.image.channels;
  }
  if (dataset.format == DatasetFormat::kText) {
    json["textVocabulary"] = dataset.text.vocabulary;
    json["textTokenizer"] = EnumName(dataset.text.tokenizer);
    json["textMaxTokens"] = dataset.text.max_tokens;
  }
  if (MaySkipBadSamples(dataset.format)) {
    json["onBadSample"] = EnumName(dataset.on_bad_sample);
    json["maxBadSamples"] = dataset.max_bad_samples;
  }
  if (dataset.rendered_digits) {
    json["renderedDigits"] = {{"train", dataset.rendered_digits->train},
                              {"test", dataset.rendered_digits->test},
                              {"seed", dataset.rendered_digits->seed}};
  }
  return json;
}

void ReadDataset(const Json& json, const std::string& path, DatasetConfig* out,
                 std::vector<FieldError>* errors) {
  JsonReader reader(json, path, errors);
  reader.Required("uri", &out->uri);
  reader.Optional("testUri", &out->test_uri);
  reader.Required("format", &out->format);
  reader.Optional("featureShape", &out->feature_shape);
  reader.Optional("classes", &out->classes);
  reader.Optional("normalizeMean", &out->normalize_mean);
  reader.Optional("normalizeStandardDeviation", &out->normalize_standard_deviation);
  reader.Optional("scale", &out->scale);
  reader.Optional("augmentFlip", &out->augment.flip);
  reader.Optional("augmentCropPadding", &out->augment.crop_padding);
  ReadAugmentation(reader, &out->augment, errors);
  reader.Optional("labelColumn", &out->label_column);
  reader.Optional("csvHeader", &out->csv_header);
  reader.Optional("cifar100Labels", &out->cifar100_labels);
  reader.Optional("channelMean", &out->channel_mean);
  reader.Optional("channelStandardDeviation", &out->channel_standard_deviation);
  reader.Optional("imageHeight", &out->image.height);
  reader.Optional("imageWidth", &out->image.width);
  reader.Optional("imageChannels", &out->image.channels);
  reader.Optional("textVocabulary", &out->text.vocabulary);
  reader.Optional("textTokenizer", &out->text.tokenizer);
  reader.Optional("textMaxTokens", &out->text.max_tokens);
  reader.Optional("onBadSample", &out->on_bad_sample);
  reader.Optional("maxBadSamples", &out->max_bad_samples);
  if (const Json* digits = reader.Child("renderedDigits")) {
    RenderedDigitsConfig& rendered = out->rendered_digits.emplace();
    JsonReader inner(*digits, reader.PathOf("renderedDigits"), errors);
    inner.Required("train", &rendered.train);
    inner.Required("test", &rendered.test);
    inner.Required("seed", &rendered.seed);
    inner.Finish();
  }
  reader.Finish();
}

Json OptimizerToJson(const OptimizerConfig& optimizer) {
  Json json = {{"name", EnumName(optimizer.name)},
               {"learningRate", optimizer.learning_rate},
               {"momentum", optimizer.momentum},
               {"dampening", optimizer.dampening},
               {"nesterov", optimizer.nesterov},
               {"weightDecay", optimizer.weight_decay},
               {"beta1", optimizer.beta1},
               {"beta2", optimizer.beta2},
               {"epsilon", optimizer.epsilon},
               {"amsgrad", optimizer.amsgrad},
               {"schedule",
                {{"name", EnumName(optimizer.schedule.name)},
                 {"warmupIterations", optimizer.schedule.warmup_iterations},
                 {"stepIterations", optimizer.schedule.step_iterations},
                 {"gamma", optimizer.schedule.gamma},
                 {"minLearningRate", optimizer.schedule.min_learning_rate}}}};
  if (optimizer.schedule.power != 1) json["schedule"]["power"] = optimizer.schedule.power;
  if (optimizer.clip_value) json["clipValue"] = *optimizer.clip_value;
  if (optimizer.clip_global_norm) json["clipGlobalNorm"] = *optimizer.clip_global_norm;
  return json;
}

void ReadOptimizer(const Json& json, const std::string& path, OptimizerConfig* out,
                   std::vector<FieldError>* errors) {
  JsonReader reader(json, path, errors);
  reader.Required("name", &out->name);
  reader.Required("learningRate", &out->learning_rate);
  reader.Optional("momentum", &out->momentum);
  reader.Optional("dampening", &out->dampening);
  reader.Optional("nesterov", &out->nesterov);
  reader.Optional("weightDecay", &out->weight_decay);
  reader.Optional("beta1", &out->beta1);
  reader.Optional("beta2", &out->beta2);
  reader.Optional("epsilon", &out->epsilon);
  reader.Optional("amsgrad", &out->amsgrad);
  if (const Json* schedule = reader.Child("schedule")) {
    JsonReader inner(*schedule, reader.PathOf("schedule"), errors);
    inner.Optional("name", &out->schedule.name);
    inner.Optional("warmupIterations", &out->schedule.warmup_iterations);
    inner.Optional("stepIterations", &out->schedule.step_iterations);
    inner.Optional("gamma", &out->schedule.gamma);
    inner.Optional("minLearningRate", &out->schedule.min_learning_rate);
    inner.Optional("power", &out->schedule.power);
    inner.Finish();
  }
  reader.Optional("clipValue", &out->clip_value);
  reader.Optional("clipGlobalNorm", &out->clip_global_norm);
  reader.Finish();
}

Json TrainingToJson(const TrainingConfig& training) {
  Json json = {{"model", ModelToJson(training.model)},
               {"dataset", DatasetToJson(training.dataset)},
               {"optimizer", OptimizerToJson(training.optimizer)},
               {"loss", EnumName(training.loss)},
               {"seed", training.seed},
               {"epochs", training.epochs},
               {"trainingSamples", training.training_samples},
               {"evaluateEachEpoch", training.evaluate_each_epoch}};
  if (training.label_smoothing > 0) json["labelSmoothing"] = training.label_smoothing;
  if (training.stop_at_loss) json["stopAtLoss"] = *training.stop_at_loss;
  if (training.evaluate_every != 1) json["evaluateEvery"] = training.evaluate_every;
  if (training.early_stopping) {
    json["earlyStopping"] = {{"metric", EnumName(training.early_stopping->metric)},
                             {"patience", training.early_stopping->patience},
                             {"minDelta", training.early_stopping->min_delta}};
  }
  if (training.keep_best) json["keepBest"] = EnumName(*training.keep_best);
  if (!training.class_weights.empty()) json["classWeights"] = training.class_weights;
  if (training.micro_batch_size != 0) json["microBatchSize"] = training.micro_batch_size;
  if (training.precision != Precision::kFloat32) json["precision"] = EnumName(training.precision);
  return json;
}

void ReadTraining(const Json& json, const std::string& path, TrainingConfig* out,
                  std::vector<FieldError>* errors) {
  JsonReader reader(json, path, errors);
  if (const Json* model = codec::RequiredChild(reader, "model"))
    ReadModel(*model, reader.PathOf("model"), &out->model, errors);
  if (const Json* dataset = codec::RequiredChild(reader, "dataset"))
    ReadDataset(*dataset, reader.PathOf("dataset"), &out->dataset, errors);
  if (const Json* optimizer = codec::RequiredChild(reader, "optimizer"))
    ReadOptimizer(*optimizer, reader.PathOf("optimizer"), &out->optimizer, errors);
  reader.Required("loss", &out->loss);
  reader.Optional("labelSmoothing", &out->label_smoothing);
  reader.Required("seed", &out->seed);
  reader.Optional("epochs", &out->epochs);
  reader.Required("trainingSamples", &out->training_samples);
  reader.Optional("stopAtLoss", &out->stop_at_loss);
  reader.Optional("evaluateEachEpoch", &out->evaluate_each_epoch);
  reader.Optional("evaluateEvery", &out->evaluate_every);
  if (out->evaluate_every < 1) reader.Report("evaluateEvery", "must be at least 1");
  if (const Json* early_stopping = reader.Child("earlyStopping")) {
    EarlyStopping& rule = out->early_stopping.emplace();
    JsonReader inner(*early_stopping, reader.PathOf("earlyStopping"), errors);
    inner.Required("metric", &rule.metric);
    inner.Required("patience", &rule.patience);
    inner.Required("minDelta", &rule.min_delta);
    inner.Finish();
  }
  reader.Optional("keepBest", &out->keep_best);
  reader.Optional("classWeights", &out->class_weights);
  reader.Optional("microBatchSize", &out->micro_batch_size);
  reader.Optional("precision", &out->precision);
  reader.Finish();
}

Json RoleToJson(const Role& role) {
  Json json = {{"kind", role.kind == RoleKind::kWorker   ? "worker"
                        : role.kind == RoleKind::kServer ? "server"
                                                         : "profile"},
               {"rank", role.rank}};
  if (role.kind == RoleKind::kServer) {
    json["level"] = role.position.level;
    json["index"] = role.position.index;
    json["group"] = role.position.group;
  }
  return json;
}

Json AssignedRolesToJson(const std::vector<AssignedRole>& roles) {
  Json list = Json::array();
  for (const AssignedRole& assigned : roles) {
    Json json = RoleToJson(assigned.role);
    json["attempt"] = assigned.attempt;
    list.push_back(std::move(json));
  }
  return list;
}

Json PeersToJson(const std::vector<Peer>& peers) {
  Json list = Json::array();
  for (const Peer& peer : peers) {
    Json json = RoleToJson(peer.role);
    json["address"] = peer.address;
    list.push_back(std::move(json));
  }
  return list;
}

void ReadRole(JsonReader& reader, Role* out) {
  std::string kind;
  if (reader.Required("kind", &kind)) {
    if (kind == "worker") {
      out->kind = RoleKind::kWorker;
    } else if (kind == "server") {
      out->kind = RoleKind::kServer;
    } else if (kind == "profile") {
      out->kind = RoleKind::kProfile;
    } else {
      reader.Report("kind", "must be worker, server or profile");
    }
  }
  reader.Required("rank", &out->rank);
  if (kind == "server") {
    reader.Required("level", &out->position.level);
    reader.Required("index", &out->position.index);
    reader.Required("group", &out->position.group);
  }
}

// Calls `read` with a reader of each item.
template <typename T, typename Read>
std::vector<T> ReadList(const Json& json, const std::string& path, std::vector<FieldError>* errors,
                        const Read& read) {
  std::vector<T> items;
  if (!json.is_array()) {
    errors->push_back({path, "must be a list"});
    return items;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    JsonReader reader(json[i], path + "[" + std::to_string(i) + "]", errors);
    read(reader, &items.emplace_back());
    reader.Finish();
  }
  return items;
}

std::vector<AssignedRole> ReadRoles(const Json& json, std::vector<FieldError>* errors) {
  auto roles = ReadList<AssignedRole>(json, "roles", errors, [](JsonReader& reader, auto* out) {
    ReadRole(reader, &out->role);
    reader.Optional("attempt", &out->attempt);
  });
  // Callers that go on despite errors find one.
  if (!roles.empty()) return roles;
  if (json.is_array()) errors->push_back({"roles", "is empty; a function takes on one at least"});
  roles.resize(1);
  return roles;
}

std::vector<Peer> ReadPeers(const Json& json, std::vector<FieldError>* errors) {
  return ReadList<Peer>(json, "peers", errors, [](JsonReader& reader, auto* out) {
    ReadRole(reader, &out->role);
    reader.Required("address", &out->address);
  });
}

Json StoreToJson(const StoreReference& store) {
  return {{"uri", store.uri},
          {"endpoint", store.endpoint},
          {"region", store.region},
          {"pathStyle", store.path_style},
          {"signPayload", store.sign_payload},
          {"prefix", store.prefix}};
}

void ReadStore(const Json& json, const std::string& path, StoreReference* out,
               std::vector<FieldError>* errors) {
  JsonReader reader(json, path, errors);
  reader.Required("uri", &out->uri);
  reader.Optional("endpoint", &out->endpoint);
  reader.Optional("region", &out->region);
  reader.Optional("pathStyle", &out->path_style);
  reader.Optional("signPayload", &out->sign_payload);
  reader.Required("prefix", &out->prefix);
  reader.Finish();
}

void ReadCredentials(const Json& json, const std::string& path,
                     std::optional<StoreCredentials>* out, std::vector<FieldError>* errors) {
  JsonReader reader(json, path, errors);
  StoreCredentials& credentials = out->emplace();
  reader.Required("accessKeyId", &credentials.access_key);
  reader.Required("secretAccessKey", &credentials.secret_key);
  reader.Optional("sessionToken", &credentials.session_token);
  reader.Finish();
}

void ReadJob(const Json& json, const std::string& path, JobIdentity* out,
             std::vector<FieldError>* errors) {
  JsonReader reader(json, path, errors);
  reader.Required("uid", &out->uid);
  reader.Optional("namespace", &out->namespace_name);
  reader.Optional("name", &out->name);
  reader.Finish();
}

void ReadProfile(const Json& json, const std::string& path, ProfileConfig* out,
                 std::vector<FieldError>* errors) {
  JsonReader reader(json, path, errors);
  reader.Optional("iterations", &out->iterations);
  reader.Optional("seconds", &out->seconds);
  reader.Optional("warmupIterations", &out->warmup_iterations);
  reader.Optional("filler", &out->filler);
  reader.Optional("rateOnly", &out->rate_only);
  reader.Optional("batchSize", &out->batch_size);
  reader.Optional("milliCpu", &out->milli_cpu);
  reader.Finish();
}

void ReadParts(JsonReader& reader, SliceRequest* out, std::vector<FieldError>* errors) {
  if (const Json* job = codec::RequiredChild(reader, "job"))
    ReadJob(*job, "job", &out->job, errors);
  if (const Json* roles = codec::RequiredChild(reader, "roles"))
    out->roles = ReadRoles(*roles, errors);
  if (const Json* peers = reader.Child("peers")) out->peers = ReadPeers(*peers, errors);
  if (const Json* plan = codec::RequiredChild(reader, "plan"))
    out->plan = DecodeExecutionPlan(*plan, "plan", errors);
  if (const Json* training = codec::RequiredChild(reader, "training"))
    ReadTraining(*training, "training", &out->training, errors);
  if (const Json* store = codec::RequiredChild(reader, "store"))
    ReadStore(*store, "store", &out->store, errors);
  if (const Json* credentials = reader.Child("credentials"))
    ReadCredentials(*credentials, "credentials", &out->credentials, errors);
  if (const Json* start = reader.Child("start"))
    out->start = codec::ReadCheckpoint(*start, "start", errors);
  if (const Json* profile = reader.Child("profile"))
    ReadProfile(*profile, "profile", &out->profile, errors);
}

}  // namespace

std::string EncodeSliceRequest(const SliceRequest& request) {
  Json json = {{"protocol", request.protocol},
               {"minimumProtocol", request.minimum_protocol},
               {"invocation", request.invocation},
               {"job",
                {{"uid", request.job.uid},
                 {"namespace", request.job.namespace_name},
                 {"name", request.job.name}}},
               {"leaderEpoch", request.leader_epoch},
               {"incarnation", request.incarnation},
               {"roles", AssignedRolesToJson(request.roles)},
               {"peers", PeersToJson(request.peers)},
               {"plan", ExecutionPlanToJson(request.plan)},
               {"training", TrainingToJson(request.training)},
               {"store", StoreToJson(request.store)},
               {"firstIteration", request.first_iteration},
               {"budgetSeconds", request.budget_seconds},
               {"checkpointKeep", request.checkpoint_keep},
               {"profile",
                {{"iterations", request.profile.iterations},
                 {"seconds", request.profile.seconds},
                 {"warmupIterations", request.profile.warmup_iterations},
                 {"batchSize", request.profile.batch_size},
                 {"milliCpu", request.profile.milli_cpu},
                 {"filler", request.profile.filler}}}};
  if (request.profile.rate_only) json["profile"]["rateOnly"] = true;
  if (request.credentials) {
    json["credentials"] = {{"accessKeyId", request.credentials->access_key},
                           {"secretAccessKey", request.credentials->secret_key},
                           {"sessionToken", request.credentials->session_token}};
  }
  if (request.start) json["start"] = codec::CheckpointToJson(*request.start);
  return codec::Dump(json);
}

Result<SliceRequest> DecodeSliceRequest(std::string_view text) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  SliceRequest request;
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  reader.Required("protocol", &request.protocol);
  reader.Required("minimumProtocol", &request.minimum_protocol);
  reader.Required("invocation", &request.invocation);
  reader.Required("leaderEpoch", &request.leader_epoch);
  reader.Required("incarnation", &request.incarnation);
  reader.Required("firstIteration", &request.first_iteration);
  reader.Required("budgetSeconds", &request.budget_seconds);
  reader.Optional("checkpointKeep", &request.checkpoint_keep);
  ReadParts(reader, &request, &errors);
  reader.Finish();
  const bool newer = request.protocol > kProtocolVersion;
  if (newer && request.minimum_protocol <= kProtocolVersion) std::erase_if(errors, IsUnknownField);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return request;
}

}  // namespace lambdadnn
