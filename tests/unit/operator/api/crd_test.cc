// SPDX-License-Identifier: Apache-2.0
// The CRD against operator/api: the same fields, the same defaults, the same rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "common/base/files.h"
#include "operator/api/conditions.h"
#include "operator/api/embedded_crd.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_schema.h"
#include "operator/api/job_validation.h"
#include "tests/support/paths.h"
#include "tests/unit/operator/api/full_job.h"

namespace lambdadnn {
namespace {

using ::testing::IsEmpty;

// Calls visit(path, schema) for every field below `schema`.
template <typename Visit>
void Walk(const StructuralSchema& schema, const std::string& path, const Visit& visit) {
  visit(path, schema);
  for (const auto& [name, property] : schema.properties) {
    Walk(property, path.empty() ? name : path + "." + name, visit);
  }
  if (schema.items != nullptr) Walk(*schema.items, path + "[]", visit);
  if (schema.additional_properties != nullptr) {
    Walk(*schema.additional_properties, path + ".*", visit);
  }
}

// Paths of everything in an encoded object; maps of free keys end in ".*".
void CollectPaths(const Json& json, const StructuralSchema* schema, const std::string& path,
                  std::set<std::string>* paths) {
  if (!path.empty()) paths->insert(path);
  if (schema != nullptr && schema->preserve_unknown_fields && schema->properties.empty()) return;
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      const StructuralSchema* nested = nullptr;
      std::string key = name;
      if (schema != nullptr) {
        const auto found = schema->properties.find(name);
        if (found != schema->properties.end()) {
          nested = &found->second;
        } else if (schema->additional_properties != nullptr) {
          nested = schema->additional_properties.get();
          key = "*";
        }
      }
      CollectPaths(value, nested, path.empty() ? key : path + "." + key, paths);
    }
  } else if (json.is_array()) {
    for (const Json& item : json) {
      CollectPaths(item, schema == nullptr ? nullptr : schema->items.get(), path + "[]", paths);
    }
  }
}

TEST(Crd, EmbeddedTextIsTheFile) {
  EXPECT_EQ(EmbeddedCrd(), *ReadFile(SourcePath("crds/lambdadnn.io_serverlesstrainingjobs.yaml")));
}

TEST(Crd, EveryFieldOfTheCodecIsInTheSchema) {
  const Json full = EncodeJob(FullJob());
  std::vector<FieldError> errors;
  JobSchema().ValidateProperty("spec", full["spec"], "", &errors);
  JobSchema().ValidateProperty("status", full["status"], "", &errors);
  EXPECT_EQ(ToStatus(errors).message(), "");
}

TEST(Crd, EveryFieldOfTheSchemaIsWrittenByTheCodec) {
  Job job = FullJob();
  std::set<std::string> written;
  CollectPaths(EncodeJob(job), &JobSchema(), "", &written);
  job.status.completion_time.clear();  // summary.eta is for jobs that run
  CollectPaths(EncodeJob(job), &JobSchema(), "", &written);
  Walk(JobSchema(), "", [&](const std::string& path, const StructuralSchema&) {
    if (path.empty() || path.starts_with("metadata") || path == "spec.runtime") return;  // removed
    // The profile in status has the fields of the one in spec, encoded by the same function.
    EXPECT_TRUE(written.contains(path) || path.starts_with("status.profile.")) << path;
  });
}

TEST(Crd, EveryFieldOfTheSchemaIsReadByTheCodec) {
  // A full job with one field taken away must decode to something else than the full one, unless
  // the field only repeats others.
  const Json full = EncodeJob(FullJob());
  const Job job = DecodeJob(full).value();
  const Json flat = full.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (pointer.starts_with("/status/summary") || pointer.starts_with("/status/progress/metrics")) {
      continue;
    }
    Json less = flat;
    less.erase(pointer);
    std::vector<FieldError> ignored;
    const Job without = DecodeJob(less.unflatten(), &ignored);
    const bool differs = !(without == job) || !ignored.empty();
    const bool is_default = pointer == "/status/plan/threads" ||
                            pointer == "/status/plan/virtualPartitions" ||
                            pointer == "/status/plan/aggregation/transport" ||
                            pointer == "/status/plan/aggregation/placement" ||
                            pointer == "/spec/training/synchronization/mode" ||
                            pointer == "/status/conditions/1/message";
    EXPECT_TRUE(differs || is_default) << pointer;
  }
}

TEST(Crd, DefaultsAreTheCodecs) {
  Json minimal = Json::parse(R"({
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"name": "digits"},
    "spec": {"model": {"builtin": {"name": "cnn"}}, "dataset": {"renderedDigits": {}},
             "training": {"epochs": 3, "globalBatchSize": 120},
             "objective": {"deadlineSeconds": 90}}})");
  const Job from_codec = DecodeJob(minimal).value();
  JobSchema().ApplyDefaults(&minimal);
  EXPECT_EQ(DecodeJob(minimal).value().spec, from_codec.spec);
  // And every default that the codec has is in the schema: nothing is added by encoding but
  // dataset.format, which follows from renderedDigits.
  Json encoded = EncodeSpec(from_codec.spec);
  encoded["dataset"].erase("format");
  EXPECT_EQ(encoded, minimal["spec"]);
}

TEST(Crd, DefaultsOfObjectsAreThoseOfTheirFields) {
  int objects = 0;
  Walk(JobSchema(), "", [&](const std::string& path, const StructuralSchema& schema) {
    if (!schema.default_value || !schema.default_value->is_object()) return;
    if (path == "status") return;  // what holds until an operator writes it
    ++objects;
    Json filled = Json::object();
    schema.ApplyDefaults(&filled);
    for (const auto& [name, value] : schema.default_value->items()) {
      Json field = value;  // its own fields, where it is an object
      schema.properties.at(name).ApplyDefaults(&field);
      EXPECT_EQ(field, filled.at(name)) << path << "." << name;
    }
  });
  EXPECT_GT(objects, 2);
}

// What a CRD fills in is in every job, also in those of an operator of the version before, which
// runs on until it is replaced, or was put back.
TEST(Crd, NoDefaultReachesAnOperatorThatDoesNotKnowItsField) {
  std::istringstream lines(*ReadFile(SourcePath("tests/data/spec_defaults.txt")));
  std::set<std::string> known;
  for (std::string line; std::getline(lines, line);) known.insert(line);
  Walk(JobSchema(), "", [&](const std::string& path, const StructuralSchema& schema) {
    if (!path.starts_with("spec.") || !schema.default_value) return;
    EXPECT_TRUE(known.contains(path))
        << path << ": the version before leaves every job alone that has this field; leave its "
        << "default to the codec, which writes only other values. Within a field that is as new "
        << "it may have one: add it to tests/data/spec_defaults.txt";
  });
}

TEST(Crd, EveryFieldIsDescribedAndBounded) {
  Walk(JobSchema(), "", [](const std::string& path, const StructuralSchema& schema) {
    // Of metadata API servers take no description.
    EXPECT_EQ(schema.description.empty(), path == "metadata" || path == "metadata.name") << path;
    if (schema.description.empty()) return;
    const bool free = path == "apiVersion" || path == "kind" || !schema.enumeration.empty();
    if (schema.type == StructuralSchema::Type::kString && !free) {
      EXPECT_TRUE(schema.max_length) << path << " needs maxLength";
    }
    if (schema.type == StructuralSchema::Type::kArray) {
      EXPECT_TRUE(schema.max_items) << path << " needs maxItems";
    }
    if (schema.additional_properties != nullptr) {
      EXPECT_TRUE(schema.max_properties) << path << " needs maxProperties";
    }
  });
  // Of a pattern an API server shows the user nothing but itself. Of status.plan.predicted, which
  // no user writes, there are some (docs/design/018).
  std::string crd(EmbeddedCrd());
  const size_t begin = crd.find(" predicted:\n");
  ASSERT_NE(begin, std::string::npos);
  crd.erase(begin, crd.find(" binding:\n", begin) - begin);
  EXPECT_EQ(crd.find("pattern:"), std::string::npos)
      << "write a rule, self.matches(r'...'), with a sentence";
}

TEST(Crd, ValuesAreTheNamesOfTheEnums) {
  const auto values = [](const char* path) {
    const StructuralSchema* schema = FindFieldSchema(path);
    return schema == nullptr ? std::vector<std::string>{} : schema->enumeration;
  };
  EXPECT_EQ(values("spec.dataset.format"), EnumNameList<DatasetFormat>());
  EXPECT_EQ(values("spec.training.loss"), EnumNameList<Loss>());
  EXPECT_EQ(values("spec.training.precision"), EnumNameList<Precision>());
  EXPECT_EQ(values("spec.training.optimizer.name"), EnumNameList<OptimizerKind>());
  EXPECT_EQ(values("spec.training.optimizer.schedule.name"), EnumNameList<ScheduleKind>());
  EXPECT_EQ(values("spec.training.optimizer.learningRateScaling"),
            EnumNameList<LearningRateScaling>());
  EXPECT_EQ(values("spec.training.synchronization.mode"), EnumNameList<Synchronization>());
  EXPECT_EQ(values("spec.cleanupPolicy"), EnumNameList<CleanupPolicy>());
  EXPECT_EQ(values("status.plan.aggregation.transport"), EnumNameList<TransportKind>());
  EXPECT_EQ(values("status.plan.aggregation.placement"), EnumNameList<Placement>());
  using ::testing::ElementsAre;
  EXPECT_THAT(values("spec.aggregation.transport"), ElementsAre(kAuto, "ObjectStore", "Direct"));
  EXPECT_THAT(values("spec.aggregation.placement"), ElementsAre(kAuto, "Dedicated", "Workers"));
}

// (path, sentence) of every x-kubernetes-validations entry.
void CollectRules(const Json& schema, const std::string& path,
                  std::multiset<std::pair<std::string, std::string>>* rules) {
  for (const Json& rule : schema.value("x-kubernetes-validations", Json::array())) {
    // Patterns with a sentence: StructuralSchema knows them.
    if (rule.at("rule").get<std::string>().starts_with("self.matches(r'")) continue;
    const std::string field = rule.value("fieldPath", "");
    const std::string at = path.empty() ? field.substr(1) : path + field;
    rules->insert({at, rule.at("message").get<std::string>()});
  }
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, property] : properties.items()) {
    CollectRules(property, path.empty() ? name : path + "." + name, rules);
  }
  if (schema.contains("items")) CollectRules(schema["items"], path + "[]", rules);
}

TEST(Crd, RulesAreThoseOfTheCode) {
  std::multiset<std::pair<std::string, std::string>> of_crd;
  CollectRules(JobCrd().at(Json::json_pointer("/spec/versions/0/schema/openAPIV3Schema")), "",
               &of_crd);
  std::multiset<std::pair<std::string, std::string>> of_code;
  for (const JobRule& rule : JobRules()) {
    const std::string path = rule.path;
    of_code.insert({*rule.field == '\0' ? path : path + "." + rule.field, rule.message});
  }
  EXPECT_EQ(of_crd, of_code);
}

// Calls visit(path, schema) for every field below `schema`, as the file has it.
template <typename Visit>
void WalkJson(const Json& schema, const std::string& path, const Visit& visit) {
  visit(path, schema);
  if (schema.contains("items")) WalkJson(schema["items"], path + "[]", visit);
  const Json values = schema.value("additionalProperties", Json());
  if (values.is_object()) WalkJson(values, path + ".*", visit);
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, property] : properties.items()) {
    WalkJson(property, path.empty() ? name : path + "." + name, visit);
  }
}

TEST(Crd, ListsSayHowServerSideApplyMergesThem) {
  int lists = 0;
  const auto check = [&](const std::string& path, const Json& schema) {
    if (schema.value("type", "") != "array" || path.starts_with("spec.runtime.")) return;
    ++lists;
    const std::string type = schema.value("x-kubernetes-list-type", "none");
    EXPECT_THAT(type, ::testing::AnyOf("atomic", "set", "map")) << path;
    EXPECT_EQ(schema.contains("x-kubernetes-list-map-keys"), type == "map") << path;
    for (const Json& key : schema.value("x-kubernetes-list-map-keys", Json::array())) {
      const Json required = schema["items"].value("required", Json::array());
      EXPECT_NE(std::find(required.begin(), required.end(), key), required.end())
          << path << " needs " << key;
    }
  };
  WalkJson(JobCrd().at(Json::json_pointer("/spec/versions/0/schema/openAPIV3Schema")), "", check);
  EXPECT_GT(lists, 8);
}

TEST(Crd, ReferencesToSecretsAreReplacedAsAWhole) {
  int references = 0;
  const auto check = [&](const std::string& path, const Json& schema) {
    if (!path.ends_with("SecretRef")) return;
    ++references;
    EXPECT_EQ(schema.value("x-kubernetes-map-type", ""), "atomic") << path;
  };
  WalkJson(JobCrd().at(Json::json_pointer("/spec/versions/0/schema/openAPIV3Schema")), "", check);
  EXPECT_EQ(references, 2);
}

// `kubectl get all` is for what belongs to every application.
TEST(Crd, JobsAreInTheCategoryTrainingAlone) {
  EXPECT_EQ(JobCrd().at(Json::json_pointer("/spec/names/categories")), Json({"training"}));
}

TEST(Crd, PrinterColumnsReadFieldsThatExist) {
  const Json& version = JobCrd().at(Json::json_pointer("/spec/versions/0"));
  std::vector<std::string> names;
  for (const Json& column : version.at("additionalPrinterColumns")) {
    names.push_back(column.at("name"));
    const std::string path = column.at("jsonPath").get<std::string>().substr(1);
    if (!path.starts_with("metadata.")) {
      EXPECT_NE(FindFieldSchema(path), nullptr) << path;
    }
  }
  EXPECT_THAT(
      names, ::testing::ElementsAre("State", "Functions", "Memory", "Epoch", "Loss", "ETA", "Cost",
                                    "Age", "Reason", "Plan", "Transport", "Placement", "Restarts"));
  for (const Json& field : version.at("selectableFields")) {
    EXPECT_NE(FindFieldSchema(field.at("jsonPath").get<std::string>().substr(1)), nullptr);
  }
}

TEST(Crd, ConditionMessagesFit) {
  const StructuralSchema* message = FindFieldSchema("status.conditions[0].message");
  ASSERT_NE(message, nullptr);
  std::vector<Condition> conditions;
  SetCondition(&conditions, {"Failed", "True", "Bad", std::string(100'000, 'x'), "", 1}, {});
  EXPECT_LE(conditions[0].message.size(), *message->max_length);
}

// Where the rules refuse `old` with a change of its spec.
std::vector<std::string> BrokenBy(const Json& old, const Json& patch) {
  Json object = old;
  object.merge_patch({{"spec", patch}});
  std::vector<FieldError> errors;
  CheckJobRules(object, &old, &errors);
  std::vector<std::string> paths;
  for (const FieldError& error : errors) paths.push_back(error.path);
  return paths;
}

Json PodSpec(const Json& spec) { return {{"podTemplate", {{"spec", spec}}}}; }

TEST(JobRules, ChangesThatAJobCannotTakeAreRefusedAndOthersAreNot) {
  Json old = Json::parse(R"({
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"name": "digits"},
    "spec": {"model": {"builtin": {"name": "cnn"}}, "dataset": {"renderedDigits": {}},
             "training": {"epochs": 3, "globalBatchSize": 120},
             "objective": {"deadlineSeconds": 90}}})");
  JobSchema().ApplyDefaults(&old);
  const auto broken_by = [&](const Json& patch) { return BrokenBy(old, patch); };
  using ::testing::ElementsAre;
  EXPECT_THAT(broken_by(Json::object()), IsEmpty());
  EXPECT_THAT(broken_by({{"suspend", true},
                         {"backoffLimit", 1},
                         {"priority", 5},
                         {"objective", {{"deadlineSeconds", 91}}},
                         {"activeDeadlineSeconds", 5},
                         {"ttlSecondsAfterFinished", 5},
                         {"cleanupPolicy", "Never"}}),
              IsEmpty());
  EXPECT_THAT(broken_by({{"model", {{"builtin", {{"name", "mlp"}}}}}}), ElementsAre("spec.model"));
  EXPECT_THAT(broken_by({{"dataset", {{"classes", 3}}}}), ElementsAre("spec.dataset"));
  EXPECT_THAT(broken_by({{"functions", {{"min", 2}}}}), ElementsAre("spec.functions"));
  EXPECT_THAT(broken_by({{"aggregation", {{"shards", 2}}}}), ElementsAre("spec.aggregation"));
  EXPECT_THAT(broken_by({{"profile", {{"trainingSamples", 9000}}}}), ElementsAre("spec.profile"));
  EXPECT_THAT(broken_by({{"backend", "Knative"}}), ElementsAre("spec.backend"));
  Json named = old;
  named["spec"]["backend"] = "Knative";
  EXPECT_THAT(BrokenBy(named, {{"backend", nullptr}}), ElementsAre("spec.backend"));
  EXPECT_THAT(BrokenBy(named, {{"backend", "Local"}}), ElementsAre("spec.backend"));
  EXPECT_THAT(BrokenBy(named, {{"backend", "Knative"}}), IsEmpty());
  EXPECT_THAT(broken_by({{"addressing", "Service"}}), ElementsAre("spec.addressing"));
  EXPECT_THAT(broken_by({{"peerChannel", "None"}}), ElementsAre("spec.peerChannel"));
  EXPECT_THAT(broken_by({{"profiling", "WhileTraining"}}), ElementsAre("spec.profiling"));
  EXPECT_THAT(broken_by({{"profiling", "BeforeTraining"}}), IsEmpty());
  EXPECT_THAT(broken_by(PodSpec({{"nodeSelector", {{"disk", "ssd"}}}})),
              ElementsAre("spec.podTemplate"));
  EXPECT_THAT(broken_by({{"podTemplate", {{"metadata", {{"labels", {{"a", "b"}}}}}}}}),
              ElementsAre("spec.podTemplate"));
  EXPECT_THAT(broken_by(PodSpec({{"containers", {{{"name", "worker"}, {"image", "x"}}}}})),
              ElementsAre("spec.podTemplate", "spec.podTemplate.spec.containers"));
  EXPECT_THAT(broken_by({{"runtime", Json::object()}}), ElementsAre("spec.runtime"));
  EXPECT_THAT(broken_by({{"managedBy", "me"}}), ElementsAre("spec.managedBy"));
}

TEST(JobRules, WhatIsPlannedMayChangeWhileTheJobIsSuspended) {
  Json old = Json::parse(R"({
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"name": "digits"},
    "spec": {"model": {"builtin": {"name": "cnn"}}, "dataset": {"renderedDigits": {}},
             "training": {"epochs": 3, "globalBatchSize": 120}, "suspend": true,
             "objective": {"deadlineSeconds": 90}}})");
  JobSchema().ApplyDefaults(&old);
  const auto broken_by = [&](const Json& patch) { return BrokenBy(old, patch); };
  using ::testing::ElementsAre;
  EXPECT_THAT(broken_by({{"functions", {{"min", 2}, {"memory", {{"max", "2Gi"}}}}},
                         {"aggregation", {{"shards", 2}}},
                         {"addressing", "Service"},
                         {"peerChannel", "Plain"},
                         {"podTemplate",
                          {{"metadata", {{"annotations", {{"a", "b"}}}}},
                           {"spec", {{"nodeSelector", {{"disk", "ssd"}}}}}}},
                         {"suspend", false}}),
              IsEmpty());
  // What functions may do and reach, other than where they run.
  EXPECT_THAT(broken_by(PodSpec({{"containers", {{{"name", "worker"}, {"image", "x"}}}}})),
              ElementsAre("spec.podTemplate.spec.containers"));
  EXPECT_THAT(broken_by(PodSpec({{"serviceAccountName", "x"}})),
              ElementsAre("spec.podTemplate.spec.serviceAccountName"));
  EXPECT_THAT(broken_by(PodSpec({{"imagePullSecrets", {{{"name", "x"}}}}})),
              ElementsAre("spec.podTemplate.spec.imagePullSecrets"));
  const auto variable = [](const char* value) {
    return Json{
        {"containers", {{{"name", "worker"}, {"env", {{{"name", "A"}, {"value", value}}}}}}}};
  };
  Json with = old;
  with["spec"]["podTemplate"]["spec"] = variable("1");
  EXPECT_THAT(BrokenBy(with, PodSpec({{"tolerations", {{{"key", "gpu"}}}}})), IsEmpty());
  EXPECT_THAT(BrokenBy(with, PodSpec({{"containers", nullptr}})),
              ElementsAre("spec.podTemplate.spec.containers"));
  EXPECT_THAT(BrokenBy(with, PodSpec(variable("2"))),
              ElementsAre("spec.podTemplate.spec.containers"));
  EXPECT_THAT(broken_by({{"training", {{"seed", 4}}}}), ElementsAre("spec.training.seed"));
}

// One field after the other, in all ways: another value, and where it may be absent, added and
// removed.
TEST(JobRules, InATrainingItsStoreAndItsCheckpointsSomeFieldsMayChange) {
  Json old = Json::parse(R"({
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"name": "digits"},
    "spec": {"model": {"builtin": {"name": "cnn"}}, "dataset": {"renderedDigits": {}},
             "training": {"epochs": 3, "globalBatchSize": 120, "stopAt": {"loss": "0.5"}},
             "objectStore": {"bucket": "runs", "prefix": "team", "endpoint": "http://minio",
                             "credentialsSecretRef": {"name": "s3"}, "caSecretRef": {"name": "ca"}},
             "checkpoint": {"resumeFrom": "s3://runs/other"},
             "objective": {"deadlineSeconds": 90}}})");
  JobSchema().ApplyDefaults(&old);
  using ::testing::ElementsAre;
  const auto broken_by = [&](const char* parent, const char* field, const Json& value) {
    return BrokenBy(old, {{parent, {{field, value}}}});
  };
  EXPECT_THAT(BrokenBy(old, {{"training", {{"epochs", 4}}},
                             {"checkpoint", {{"keep", 9}, {"intervalSeconds", 5}}},
                             {"objectStore",
                              {{"endpoint", "http://other"},
                               {"credentialsSecretRef", {{"name", "next"}}},
                               {"caSecretRef", {{"name", "next"}}}}}}),
              IsEmpty());
  struct Change {
    const char* parent;
    const char* field;
    Json value;
  };
  const std::vector<Change> refused = {{"training", "globalBatchSize", 60},
                                       {"training", "localBatchSize", 4},
                                       {"training", "seed", 1},
                                       {"training", "loss", "MSE"},
                                       {"training", "precision", "bfloat16"},
                                       {"training", "optimizer", {{"learningRate", "0.5"}}},
                                       {"training", "synchronization", {{"mode", "other"}}},
                                       {"training", "stopAt", {{"loss", "0.25"}}},
                                       {"training", "stopAt", nullptr},
                                       {"objectStore", "bucket", "other"},
                                       {"objectStore", "prefix", "other"},
                                       {"objectStore", "prefix", nullptr},
                                       {"objectStore", "region", "other"},
                                       {"objectStore", "pathStyle", false},
                                       {"objectStore", "endpoint", nullptr},
                                       {"objectStore", "credentialsSecretRef", nullptr},
                                       {"objectStore", "caSecretRef", nullptr},
                                       {"checkpoint", "resumeFrom", "s3://runs/third"},
                                       {"checkpoint", "resumeFrom", nullptr}};
  for (const auto& [parent, field, value] : refused) {
    EXPECT_THAT(broken_by(parent, field, value),
                ElementsAre(std::string("spec.") + parent + "." + field))
        << value;
  }
  EXPECT_THAT(
      BrokenBy(
          old,
          {{"training",
            {{"globalBatchSize", nullptr}, {"maxGlobalBatchSize", 240}, {"localBatchSize", 30}}}}),
      ElementsAre("spec.training.globalBatchSize", "spec.training.maxGlobalBatchSize",
                  "spec.training.localBatchSize"));
  for (const char* field : {"endpoint", "credentialsSecretRef", "caSecretRef", "prefix"}) {
    Json without = old;
    without["spec"]["objectStore"].erase(field);
    EXPECT_THAT(BrokenBy(without, {{"objectStore", {{field, old["spec"]["objectStore"][field]}}}}),
                ElementsAre(std::string("spec.objectStore.") + field));
  }
  Json of_file = old;
  of_file["spec"]["objectStore"] = {{"uri", "file:///store"}};
  EXPECT_THAT(BrokenBy(of_file, {{"objectStore", {{"uri", "file:///other"}}}}),
              ElementsAre("spec.objectStore.uri"));
}

// Objects are stored longer than their schema: theirs must still be able to end.
TEST(JobRules, ARemovedFieldThatWasStoredBeforeMayStayOrGo) {
  Json old = Json::parse(R"({"metadata": {"name": "digits"},
      "spec": {"runtime": {"image": "x", "affinity": {"nodeAffinity": {}}}}})");
  JobSchema().ApplyDefaults(&old);
  const auto refused = [&](const Json& patch) {
    const auto paths = BrokenBy(old, patch);
    return std::find(paths.begin(), paths.end(), "spec.runtime") != paths.end();
  };
  EXPECT_FALSE(refused({{"suspend", true}}));
  EXPECT_FALSE(refused({{"runtime", nullptr}}));
  old["spec"].erase("runtime");
  EXPECT_TRUE(refused({{"runtime", {{"image", "y"}}}}));
}

TEST(JobValidation, AnythingGivesAnAnswer) {
  for (const char* text : {"null", "[]", "7", "{}", R"({"spec": 1, "metadata": []})",
                           R"({"spec": {"model": 1, "dataset": [], "training": "x",
                                        "objective": null}, "metadata": {"name": 1}})"}) {
    EXPECT_THAT(ValidateJob(Json::parse(text)), ::testing::Not(IsEmpty())) << text;
  }
}

}  // namespace
}  // namespace lambdadnn
