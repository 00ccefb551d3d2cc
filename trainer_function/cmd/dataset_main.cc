// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-dataset` (also `lambdadnn dataset`): makes and examines data sets. Exit codes are
// those of lambdadnn: 0 complete, 2 usage or bad data, 4 environment.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/runtime.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/objectstore/open_store.h"
#include "trainer_function/data/convert.h"
#include "trainer_function/data/digit_renderer.h"
#include "trainer_function/data/inspection.h"
#include "trainer_function/data/inspection_page.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {
namespace {

constexpr int kExitUsage = 2;
constexpr int kExitEnvironment = 4;

int Fail(const Status& status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  const bool bad_input = status.code() == StatusCode::kInvalidArgument ||
                         status.code() == StatusCode::kOutOfRange ||
                         status.code() == StatusCode::kUnimplemented;
  return bad_input ? kExitUsage : kExitEnvironment;
}

struct RenderOptions {
  std::string out;
  int64_t train = 12000;
  int64_t test = 2000;
  uint64_t seed = 1;
};

int Render(const RenderOptions& options) {
  const Status status = WriteRenderedDigits(options.out, options.train, options.test, options.seed);
  if (!status.ok()) return Fail(status);
  std::printf("wrote %lld training and %lld test digits (28 x 28, IDX) to %s\n",
              static_cast<long long>(options.train), static_cast<long long>(options.test),
              options.out.c_str());
  return 0;
}

struct InspectOptions {
  DatasetConfig dataset;
  std::string format;  // empty = guessed from the names
  bool no_header = false;
  StoreConfig store;
  std::string output = "text";
  std::string page;  // file for the HTML page; empty = none
  std::string tokenizer;
};

nlohmann::json SummaryJson(const NumberSummary& summary) {
  return {{"minimum", summary.minimum},
          {"maximum", summary.maximum},
          {"mean", summary.mean},
          {"standardDeviation", summary.standard_deviation}};
}

nlohmann::json SetJson(const SetInspection& set) {
  nlohmann::json json = {{"samples", set.samples}, {"features", SummaryJson(set.features)}};
  if (set.targets.count > 0) json["targets"] = SummaryJson(set.targets);
  if (set.tokens.count > 0) json["tokens"] = SummaryJson(set.tokens);
  if (!set.class_counts.empty()) json["classCounts"] = set.class_counts;
  return json;
}

void PrintJson(const DatasetInspection& inspection) {
  nlohmann::json json = {
      {"format", EnumName(inspection.format)},  {"featureShape", inspection.info.feature_shape},
      {"classes", inspection.info.classes},     {"trainingBytes", inspection.info.bytes},
      {"checksum", Hex64(inspection.checksum)}, {"train", SetJson(inspection.train)},
      {"warnings", inspection.warnings}};
  if (!inspection.info.class_names.empty()) json["classNames"] = inspection.info.class_names;
  if (inspection.test.samples > 0) json["test"] = SetJson(inspection.test);
  std::printf("%s\n", DumpJson(json, 2).c_str());
}

void PrintSummary(const char* what, const NumberSummary& summary) {
  std::printf("  %-10s %.6g to %.6g, mean %.6g, standard deviation %.6g\n", what, summary.minimum,
              summary.maximum, summary.mean, summary.standard_deviation);
}

void PrintSet(const char* name, const SetInspection& set,
              const std::vector<std::string>& class_names) {
  std::printf("%s: %lld samples\n", name, static_cast<long long>(set.samples));
  if (set.tokens.count > 0) {
    PrintSummary("tokens", set.tokens);
  } else {
    PrintSummary("features", set.features);
  }
  if (set.targets.count > 0) PrintSummary("targets", set.targets);
  constexpr size_t kShownClasses = 20;
  for (size_t i = 0; i < std::min(set.class_counts.size(), kShownClasses); ++i) {
    std::printf("  class %-4zu %8lld  %5.1f %%  %s\n", i,
                static_cast<long long>(set.class_counts[i]),
                100 * static_cast<double>(set.class_counts[i]) / static_cast<double>(set.samples),
                i < class_names.size() ? class_names[i].c_str() : "");
  }
  if (set.class_counts.size() > kShownClasses) {
    std::printf("  … and %zu more classes (-o json lists all)\n",
                set.class_counts.size() - kShownClasses);
  }
}

void PrintText(const DatasetInspection& inspection) {
  std::printf("format %s, samples of shape %s, %s, %lld bytes of training files\n",
              std::string(EnumName(inspection.format)).c_str(),
              ShapeText(inspection.info.feature_shape).c_str(),
              inspection.info.classes > 0
                  ? (std::to_string(inspection.info.classes) + " classes").c_str()
                  : "numeric targets",
              static_cast<long long>(inspection.info.bytes));
  std::printf("checksum %s\n", Hex64(inspection.checksum).c_str());
  PrintSet("train", inspection.train, inspection.info.class_names);
  if (inspection.test.samples > 0) {
    PrintSet("test", inspection.test, inspection.info.class_names);
  }
  for (const std::string& warning : inspection.warnings) {
    std::printf("warning: %s\n", warning.c_str());
  }
}

struct OwnRuntime {
  SystemClock clock;
  ThreadExecutor executor;
  SystemRandom random;
  Runtime runtime{clock, executor, random};
};

// Where the files are, and of which format: what both commands begin with.
Result<std::shared_ptr<ObjectStore>> OpenPlace(InspectOptions* options, Runtime& runtime) {
  if (options->dataset.uri.empty()) {
    return InvalidArgumentError("the data set's folder or URI is empty; name one");
  }
  if (options->dataset.uri.find("://") == std::string::npos) {
    options->dataset.uri =
        "file://" + std::filesystem::absolute(options->dataset.uri).lexically_normal().string();
  }
  options->dataset.csv_header = !options->no_header;
  if (const auto named = FindEnum<Tokenizer>(options->tokenizer)) {
    options->dataset.text.tokenizer = *named;
  }
  LDNN_ASSIGN_OR_RETURN(const DatasetLocation location, LocateDataset(options->dataset));
  options->store.uri = location.folder_uri;
  options->store.credentials = CredentialsFromEnvironment();
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> opened, OpenStore(options->store, runtime));
  std::shared_ptr<ObjectStore> store = std::move(opened);
  if (const auto named = FindEnum<DatasetFormat>(options->format)) {
    options->dataset.format = *named;
  } else {
    LDNN_ASSIGN_OR_RETURN(options->dataset.format, DetectFormat(options->dataset, store));
  }
  return store;
}

struct ConvertCommand {
  InspectOptions source;
  ConvertOptions options;
};

int Convert(ConvertCommand command) {
  OwnRuntime own;
  const auto store = OpenPlace(&command.source, own.runtime);
  if (!store.ok()) return Fail(store.status());
  command.options.dataset = command.source.dataset;
  const Status status = ConvertToShards(
      command.options, *store, [](const std::string& shard, int64_t done, int64_t all) {
        std::printf("%s: %lld of %lld samples\n", shard.c_str(), static_cast<long long>(done),
                    static_cast<long long>(all));
        std::fflush(stdout);
      });
  return status.ok() ? 0 : Fail(status);
}

int Inspect(InspectOptions options) {
  OwnRuntime own;
  const auto store = OpenPlace(&options, own.runtime);
  if (!store.ok()) return Fail(store.status());
  const auto inspection = InspectDataset(options.dataset, *store);
  if (!inspection.ok()) return Fail(inspection.status());
  if (!options.page.empty()) {
    const Status written =
        WriteFileAtomically(options.page, RenderInspection(*inspection, options.dataset.uri));
    if (!written.ok()) return Fail(written);
  }
  if (options.output == "json") {
    PrintJson(*inspection);
  } else {
    PrintText(*inspection);
  }
  return 0;
}

void AddRender(CLI::App& app, RenderOptions& options, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "render-digits", "Render a set of 28 x 28 digit images as IDX files like MNIST's");
  command->add_option("--out", options.out, "Folder to write to")->required();
  command->add_option("--train", options.train, "Training images")->capture_default_str();
  command->add_option("--test", options.test, "Test images")->capture_default_str();
  command->add_option("--seed", options.seed, "Decides every image")->capture_default_str();
  command->footer(
      "Example: lambdadnn dataset render-digits --out digits --train 12000 --test 2000");
  command->callback([&] { exit_code = Render(options); });
}

void AddPlace(CLI::App* command, InspectOptions& options) {
  command->add_option("uri", options.dataset.uri, "Folder or file: a path, file:///… or s3://…")
      ->required();
  command->add_option("--format", options.format, "Instead of guessing it from the names")
      ->transform(CLI::IsMember(EnumNameList<DatasetFormat>(), CLI::ignore_case));
  command->add_option("--test-uri", options.dataset.test_uri, "Where the test samples lie");
  command->add_option("--classes", options.dataset.classes, "Number of classes");
  command->add_option("--label-column", options.dataset.label_column,
                      "CSV and Parquet: name or index");
  command->add_flag("--no-header", options.no_header, "CSV: the first line is a sample");
  command->add_option("--image-height", options.dataset.image.height,
                      "Images: what they are brought to, with --image-width");
  command->add_option("--image-width", options.dataset.image.width, "Images");
  command->add_option("--image-channels", options.dataset.image.channels, "Images: 3, or 1")
      ->capture_default_str();
  command->add_option("--vocabulary", options.dataset.text.vocabulary,
                      "Text: file beside the samples, one token a line; without it lines have ids");
  command->add_option("--tokenizer", options.tokenizer, "Text: how words are found")
      ->transform(CLI::IsMember(EnumNameList<Tokenizer>(), CLI::ignore_case));
  command->add_option("--max-tokens", options.dataset.text.max_tokens, "Text: tokens of a sample");
  command->add_option("--endpoint", options.store.endpoint, "S3: https://host:port");
  command->add_option("--region", options.store.region, "S3")->capture_default_str();
}

void AddInspect(CLI::App& app, InspectOptions& options, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("inspect", "Read a whole data set, describe it and report its problems");
  AddPlace(command, options);
  command->add_option("-o,--output", options.output, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command->add_option("--html", options.page,
                      "File for the same as a page, of images with the first of each class");
  command->footer("Example: lambdadnn dataset inspect digits --html digits.html");
  command->callback([&] { exit_code = Inspect(options); });
}

void AddConvert(CLI::App& app, ConvertCommand& convert, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "convert",
      "Make shards: of images WebDataset's, of all else NumPy arrays; started again, it goes on "
      "where it was");
  AddPlace(command, convert.source);
  command->add_option("--out", convert.options.folder, "Folder to write to")->required();
  command->add_option("--samples-per-shard", convert.options.samples_per_shard)
      ->capture_default_str();
  command->footer("Example: lambdadnn dataset convert photos --format ImageFolder --out shards");
  command->callback([&] { exit_code = Convert(convert); });
}

}  // namespace
}  // namespace lambdadnn

int main(int argc, char** argv) {
  CLI::App app{"Makes and examines data sets.", "lambdadnn dataset"};
  app.require_subcommand(1);
  app.footer("Example: lambdadnn dataset render-digits --out digits --train 12000 --test 2000");
  int exit_code = 0;
  lambdadnn::RenderOptions render;
  lambdadnn::InspectOptions inspect;
  lambdadnn::AddRender(app, render, exit_code);
  lambdadnn::ConvertCommand convert;
  lambdadnn::AddInspect(app, inspect, exit_code);
  lambdadnn::AddConvert(app, convert, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "error: %s; see lambdadnn dataset --help\n", error.what());
    return lambdadnn::kExitUsage;
  }
  return exit_code;
}
