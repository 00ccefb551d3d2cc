// SPDX-License-Identifier: Apache-2.0
// The programs: `lambdadnn-dataset`, and `lambdadnn dataset` in front of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "common/base/files.h"
#include "common/json/json_reader.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string output;
};

// Standard output and error together.
Outcome RunProgram(const std::string& program, const std::string& arguments) {
  const std::string command = ProgramPath(program) + " " + arguments + " 2>&1";
  Outcome outcome;
  FILE* const pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t count = 0; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    outcome.output.append(buffer, count);
  }
  outcome.exit_code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

TEST(DatasetCommand, RendersAndInspectsDigits) {
  const std::string folder = MakeTempDir() + "/digits";
  const Outcome rendered =
      RunProgram("lambdadnn", "dataset render-digits --train 50 --test 7 --seed 3 --out " + folder);
  EXPECT_EQ(rendered.exit_code, 0) << rendered.output;
  EXPECT_THAT(rendered.output, HasSubstr("50 training and 7 test digits"));
  const Outcome text =
      RunProgram("lambdadnn", "dataset inspect " + folder + " --html " + folder + "/page.html");
  EXPECT_EQ(text.exit_code, 0) << text.output;
  EXPECT_THAT(text.output, AllOf(HasSubstr("format IDX"), HasSubstr("[1, 28, 28]"),
                                 HasSubstr("train: 50 samples"), HasSubstr("test: 7 samples")));
  EXPECT_THAT(*ReadFile(folder + "/page.html"),
              AllOf(HasSubstr("data:image/png;base64,"), HasSubstr("Test set: 7 samples")));
  EXPECT_EQ(
      RunProgram("lambdadnn", "dataset inspect " + folder + " --html /proc/page.html").exit_code,
      4);
  const Outcome json = RunProgram("lambdadnn-dataset", "inspect -o json file://" + folder);
  const auto parsed = ParseJson(json.output);
  ASSERT_TRUE(parsed.ok()) << json.output;
  EXPECT_EQ((*parsed)["train"]["samples"], 50);
  EXPECT_EQ((*parsed)["checksum"].get<std::string>().size(), 16u);
}

TEST(DatasetCommand, ConvertsToShardsThatInspectReads) {
  const std::string folder = MakeTempDir();
  ASSERT_EQ(RunProgram("lambdadnn", "dataset render-digits --train 50 --test 7 --seed 3 --out " +
                                        folder + "/digits")
                .exit_code,
            0);
  const std::string convert =
      "dataset convert " + folder + "/digits --samples-per-shard 20 --out " + folder + "/shards";
  const Outcome converted = RunProgram("lambdadnn", convert);
  EXPECT_EQ(converted.exit_code, 0) << converted.output;
  EXPECT_THAT(converted.output, AllOf(HasSubstr("train-00002.tar: 50 of 50 samples"),
                                      HasSubstr("test-00000.tar: 7 of 7 samples")));
  const auto checksum = [&](const std::string& arguments) {
    const Outcome outcome = RunProgram("lambdadnn", "dataset inspect -o json " + arguments);
    const auto parsed = ParseJson(outcome.output);
    EXPECT_TRUE(parsed.ok()) << outcome.output;
    return parsed.ok() ? (*parsed)["checksum"].get<std::string>() : outcome.output;
  };
  EXPECT_EQ(checksum(folder + "/digits"), checksum(folder + "/shards --image-channels 1"));
  EXPECT_EQ(RunProgram("lambdadnn", convert + " --samples-per-shard 0").exit_code, 2);
}

TEST(DatasetCommand, TheFormatIsNamedInAnyCase) {
  const std::string file = MakeTempDir() + "/samples";
  ASSERT_TRUE(WriteFileAtomically(file + "/train.csv", "a,b,y\n1,2,0\n1,3,1\n").ok());
  for (const char* format : {"csv", "CSV", "Csv"}) {
    const Outcome outcome = RunProgram(
        "lambdadnn", "dataset inspect --classes 2 --format " + std::string(format) + " " + file);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("format CSV"));
  }
  EXPECT_THAT(RunProgram("lambdadnn", "dataset inspect --format arrow " + file).output,
              AllOf(HasSubstr("IDX"), HasSubstr("CIFAR10"), HasSubstr("CSV"), HasSubstr("NPY")));
}

TEST(DatasetCommand, TextsAreShownByTheirClassesAndLengths) {
  const std::string folder = MakeTempDir() + "/texts";
  ASSERT_TRUE(WriteFileAtomically(folder + "/vocab.txt", "<pad>\n<unk>\ngood\n").ok());
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/train.txt", "__label__praise Good!\n__label__blame bad\n")
          .ok());
  const std::string inspect =
      "dataset inspect --vocabulary vocab.txt --max-tokens 8 --tokenizer basicenglish " + folder;
  const Outcome text = RunProgram("lambdadnn", inspect);
  EXPECT_EQ(text.exit_code, 0) << text.output;
  EXPECT_THAT(text.output, AllOf(HasSubstr("format Text, samples of shape [8], 2 classes"),
                                 HasSubstr("tokens     1 to 2, mean 1.5"),
                                 HasSubstr("class 1           1   50.0 %  praise")));
  const auto json = ParseJson(RunProgram("lambdadnn", inspect + " -o json").output);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["classNames"], (nlohmann::json{"blame", "praise"}));
  EXPECT_EQ((*json)["train"]["tokens"]["maximum"], 2);
}

TEST(DatasetCommand, BadDataEndsWithCode2AndItsRecord) {
  const std::string file = MakeTempDir() + "/bad.csv";
  ASSERT_TRUE(WriteFileAtomically(file, "a,b,y\n1,2,0\n1,NaN,1\n").ok());
  const Outcome outcome = RunProgram("lambdadnn", "dataset inspect --classes 2 " + file);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.output, AllOf(testing::StartsWith("error: "), HasSubstr("bad.csv, line 3")));
}

TEST(DatasetCommand, BadUsageEndsWithCode2AndAHint) {
  for (const char* arguments :
       {"dataset", "dataset inspect", "dataset inspect x --format pdf",
        "dataset render-digits --train 5", "dataset render-digits --out /tmp/x --train -5",
        "dataset inspct x"}) {
    const Outcome outcome = RunProgram("lambdadnn", arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, testing::StartsWith("error: ")) << arguments;
  }
}

TEST(DatasetCommand, WhatIsNotThereEndsWithCode4) {
  const Outcome outcome = RunProgram("lambdadnn", "dataset inspect " + MakeTempDir());
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.output, HasSubstr("train-images-idx3-ubyte"));
  EXPECT_EQ(
      RunProgram("lambdadnn", "dataset render-digits --train 1 --out /proc/nowhere").exit_code, 4);
}

TEST(DatasetCommand, HelpHasAnExample) {
  for (const char* arguments :
       {"dataset inspect --help", "dataset render-digits --help", "dataset convert --help"}) {
    const Outcome outcome = RunProgram("lambdadnn", arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.output, HasSubstr("Example: lambdadnn dataset"));
  }
}

}  // namespace
}  // namespace lambdadnn
