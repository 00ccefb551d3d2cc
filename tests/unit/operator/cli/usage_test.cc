// SPDX-License-Identifier: Apache-2.0
// `lambdadnn` for new users: help of every command, and typing mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/operator/cli/run_program.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;

// Names under "Subcommands:" of a help text.
std::vector<std::string> CommandsIn(const std::string& help) {
  std::vector<std::string> names;
  bool inside = false;
  for (const std::string& line : Split(help, '\n')) {
    if (line.starts_with("Subcommands:")) {
      inside = true;
    } else if (inside && line.starts_with("  ") && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    } else if (inside && !line.starts_with(" ")) {
      break;
    }
  }
  return names;
}

TEST(Help, EveryCommandHasOneWithAnExampleOfItself) {
  const Ended top = Lambdadnn("--help");
  EXPECT_EQ(top.exit_code, 0);
  EXPECT_THAT(top.output, HasSubstr("Example: lambdadnn "));
  const std::vector<std::string> commands = CommandsIn(top.output);
  EXPECT_THAT(commands, IsSupersetOf({"completion", "dataset", "delete", "doctor", "events", "host",
                                      "logs", "plan", "predict", "profile", "report", "resume",
                                      "status", "submit", "suspend", "run", "version"}));
  for (const std::string& name : commands) {
    // The other program, which this build may not have.
    if (name == "dataset") continue;
    const Ended help = Lambdadnn(name + " --help");
    EXPECT_EQ(help.exit_code, 0) << name;
    EXPECT_THAT(help.output, HasSubstr("Example: lambdadnn " + name)) << name;
    EXPECT_THAT(CommandsIn(help.output), testing::IsEmpty()) << name << " has commands to visit";
  }
}

TEST(Usage, AnUnknownCommandIsNamedWithTheLikelyOne) {
  const Ended run = Lambdadnn("rnu job.yaml");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.output,
            "error: unknown command \"rnu\"; did you mean \"run\"?; see lambdadnn --help\n");
  EXPECT_EQ(Lambdadnn("teleport").output,
            "error: unknown command \"teleport\"; see lambdadnn --help\n");
}

TEST(Usage, AnUnknownFlagIsNamedWithTheLikelyOne) {
  const Ended run = Lambdadnn("run job.yaml --resum latest");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.output,
            "error: unknown flag \"--resum\" of lambdadnn run; did you mean \"--resume\"?; see "
            "lambdadnn run --help\n");
  EXPECT_EQ(Lambdadnn("--versoin").output,
            "error: unknown flag \"--versoin\" of lambdadnn; see lambdadnn --help\n");
}

TEST(Usage, NothingAtAllAndWhatIsMissingAreOneSentence) {
  const Ended nothing = Lambdadnn("");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_EQ(nothing.output, "error: no command is given; see lambdadnn --help\n");
  const Ended missing = Lambdadnn("plan");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.output, "error: --file is required; see lambdadnn plan --help\n");
  const Ended neither = Lambdadnn("run");
  EXPECT_EQ(neither.exit_code, 2);
  EXPECT_THAT(neither.output, HasSubstr("needs a job FILE, or --resume DIR"));
}

TEST(Usage, WhatAResumedRunCannotChangeIsRefused) {
  const Ended store = Lambdadnn("run --resume latest --store file:///tmp/st");
  EXPECT_EQ(store.exit_code, 2);
  EXPECT_EQ(store.output,
            "error: --store cannot be given with --resume: the run resumes in the store that its "
            "checkpoints are in; leave --store away\n");
  const Ended out = Lambdadnn("run --resume latest --out elsewhere");
  EXPECT_EQ(out.exit_code, 2);
  EXPECT_EQ(out.output,
            "error: --out cannot be given with --resume: the run resumes in its own folder; leave "
            "--out away\n");
}

TEST(Usage, AValueThatIsNoneOfThoseAllowedIsNamed) {
  const Ended run = Lambdadnn("plan -f job.yaml -o xml");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("xml"));
  EXPECT_THAT(run.output, HasSubstr("lambdadnn plan --help"));
}

}  // namespace
}  // namespace lambdadnn
