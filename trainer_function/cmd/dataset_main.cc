// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-dataset` (also `lambdadnn dataset`): makes and examines data sets. Exit codes are
// those of lambdadnn: 0 complete, 2 usage or bad data, 4 environment.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "trainer_function/data/digit_renderer.h"

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitEnvironment = 4;

int Fail(const lambdadnn::Status& status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  const bool bad_input = status.code() == lambdadnn::StatusCode::kInvalidArgument ||
                         status.code() == lambdadnn::StatusCode::kOutOfRange ||
                         status.code() == lambdadnn::StatusCode::kUnimplemented;
  return bad_input ? kExitUsage : kExitEnvironment;
}

struct RenderOptions {
  std::string out;
  int64_t train = 12000;
  int64_t test = 2000;
  uint64_t seed = 1;
};

int RenderDigits(const RenderOptions& options) {
  const lambdadnn::Status status =
      lambdadnn::WriteRenderedDigits(options.out, options.train, options.test, options.seed);
  if (!status.ok()) return Fail(status);
  std::printf("wrote %lld training and %lld test digits (28 x 28, IDX) to %s\n",
              static_cast<long long>(options.train), static_cast<long long>(options.test),
              options.out.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Makes and examines data sets.", "lambdadnn dataset"};
  app.require_subcommand(1);
  int exit_code = 0;

  RenderOptions render;
  CLI::App* const digits = app.add_subcommand(
      "render-digits", "Render a set of 28 x 28 digit images as IDX files like MNIST's");
  digits->add_option("--out", render.out, "Folder to write to")->required();
  digits->add_option("--train", render.train, "Training images")->capture_default_str();
  digits->add_option("--test", render.test, "Test images")->capture_default_str();
  digits->add_option("--seed", render.seed, "Decides every image")->capture_default_str();
  digits->footer("Example: lambdadnn dataset render-digits --out digits --train 12000 --test 2000");
  digits->callback([&] { exit_code = RenderDigits(render); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "error: %s; see lambdadnn dataset --help\n", error.what());
    return kExitUsage;
  }
  return exit_code;
}
