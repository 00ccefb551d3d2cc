// SPDX-License-Identifier: Apache-2.0
// `lambdadnn run` and `lambdadnn profile`: a job on this machine, without a cluster.
#include <memory>

#include "operator/cli/command.h"
#include "operator/cli/run/embedded_run.h"

namespace lambdadnn {
namespace {

void AddCommonOptions(CLI::App* command, RunOptions* options) {
  command->add_option("--out", options->directory, "Folder of the run (default: runs/NAME-TIME)");
  command->add_option("--store", options->store,
                      "Object store: file:///DIR or s3://BUCKET (default: a folder of the run)");
  command->add_option("--set", options->overrides,
                      "Override one field, e.g. --set spec.training.epochs=3");
  command->add_option("--platform", options->platform_file,
                      "Platform file (default: this machine, measured)");
  command->add_option("--prices", options->prices_file,
                      "Price book (default: that of the platform); see examples/prices");
  command->add_flag("--no-cgroups", options->no_cgroups,
                    "Let functions pace themselves even where control groups could be made");
}

}  // namespace

void AddRunCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Train a job on this machine, without a cluster");
  command->add_option("file", options->file, "Job file; - is standard input");
  AddCommonOptions(command, options.get());
  command->add_option(
      "--resume", options->resume,
      "Go on with the run in this folder; `latest` = the newest under runs/. FILE and --set may "
      "change its objective, functions and aggregation");
  command->add_option("-o,--output", options->output, "text or json (one object a line)")
      ->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--profile-again", options->profile_again,
                    "Measure the model even if an equal job was measured before");
  command->footer(
      "Exit codes: 0 complete, 1 the job failed, 2 usage or bad file, 3 infeasible, 4 environment, "
      "130 interrupted.\n"
      "Example: lambdadnn run examples/quickstart/job.yaml --set spec.training.epochs=3\n"
      "         lambdadnn run --resume latest --set spec.objective='{deadlineSeconds: 300}'");
  command->callback([options, command, &context] {
    if (options->file.empty() && options->resume.empty()) {
      throw CLI::ValidationError(command->get_name(), "needs a job FILE, or --resume DIR");
    }
    context.exit_code = RunEmbedded(*options, context);
  });
}

void AddProfileCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<RunOptions>();
  options->profile_only = true;
  CLI::App* command =
      app.add_subcommand("profile", "Measure a job's training rate and print its spec.profile");
  command->add_option("-f,--file", options->file, "Job file; - is standard input")->required();
  AddCommonOptions(command, options.get());
  command->add_option("-o,--output", options->output, "text (YAML) or json")
      ->check(CLI::IsMember({"text", "json"}));
  command->footer("Example: lambdadnn profile -f examples/quickstart/job.yaml");
  command->callback([options, &context] { context.exit_code = RunEmbedded(*options, context); });
}

}  // namespace lambdadnn
