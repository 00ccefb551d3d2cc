// SPDX-License-Identifier: Apache-2.0
// Price books and objectives of `lambdadnn plan` as a user gives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/files.h"
#include "common/json/json_reader.h"
#include "tests/support/paths.h"
#include "tests/unit/operator/cli/run_program.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A small part of the space, which is searched at once.
const std::string kJob =
    "plan -f examples/profiles/1dcnn-imdb.yaml --platform examples/platforms/lambda-s3.yaml "
    "--set spec.functions.max=12 --set spec.functions.memory.step=1024Mi ";

std::string BookFile(const std::string& text) {
  const std::string file = MakeTempDir() + "/book.yaml";
  EXPECT_TRUE(WriteFileAtomically(file, text).ok());
  return file;
}

Json PlanOf(const std::string& arguments) {
  const Ended run = Lambdadnn(kJob + "-o json " + arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const auto json = ParseJson(run.output);
  EXPECT_TRUE(json.ok()) << run.output;
  return json.ok() ? *json : Json();
}

TEST(PriceBooks, ABookTakesThePlaceOfThePlatforms) {
  const Json lambda = PlanOf("");
  EXPECT_EQ(lambda["currency"], "USD");
  EXPECT_EQ(lambda["comparedBy"], "Prices");
  const Json own = PlanOf("--prices examples/prices/on-prem-node.yaml");
  EXPECT_EQ(own["currency"], "EUR");
  EXPECT_NE(own["predicted"]["cost"], lambda["predicted"]["cost"]);
  const Ended text = Lambdadnn(kJob + "--prices examples/prices/on-prem-node.yaml");
  EXPECT_THAT(text.output, HasSubstr(" EUR\n"));
  EXPECT_THAT(text.output, Not(HasSubstr("$")));
}

TEST(PriceBooks, WithoutPricesThePlanTellsWhatCheapestMeans) {
  const std::string zero = "--prices " + BookFile("currency: EUR\n");
  const Json plan = PlanOf(zero);
  EXPECT_EQ(plan["comparedBy"], "CoreSeconds");
  EXPECT_EQ(plan["predicted"]["cost"], "0");
  EXPECT_GT(plan["use"].get<double>(), 0);
  EXPECT_GT(plan["paretoFront"][0]["use"].get<double>(), plan["use"].get<double>());
  for (const char* flag : {"", "--deadlines 300,600 ", "--compare "}) {
    const Ended text = Lambdadnn(kJob + flag + zero);
    EXPECT_EQ(text.exit_code, 0) << text.output;
    EXPECT_THAT(text.output, HasSubstr(" core-s"));
    EXPECT_THAT(text.output, HasSubstr("all prices are zero, so the cheapest plan is the one of"));
  }
}

TEST(PriceBooks, ABadOneIsRefusedWithItsLine) {
  struct Row {
    const char* text;
    const char* sentence;
  };
  for (const Row& row : {
           Row{"currency: EUR\ngibSeconds: 1\n",
               ":2: gibSeconds: is not a field here; did you mean"},
           Row{"gibSecond: 1\n", "currency: is required; add the one of these prices"},
           Row{"currency: EUR\ngibSecond: .nan\n", ":2: gibSecond: must be a decimal number"},
           Row{"currency: EUR\nrequest: -1\n", ":2: request: must not be negative"},
           Row{"currency: EUR\nvalidUntil: \"2020-01-01T00:00:00Z\"\n",
               ":2: validUntil: this price book was valid until 2020-01-01T00:00:00Z; give "
               "today's"},
       }) {
    const std::string file = BookFile(row.text);
    const Ended run = Lambdadnn(kJob + "--prices " + file);
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_THAT(run.output, HasSubstr("error: " + file)) << row.text;
    EXPECT_THAT(run.output, HasSubstr(row.sentence)) << row.text;
  }
  const Ended missing = Lambdadnn(kJob + "--prices nowhere.yaml");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.output, HasSubstr("nowhere.yaml"));
}

TEST(Objectives, DeadlineAndBudgetHoldTogether) {
  const Json alone = PlanOf("--set spec.objective.deadlineSeconds=300");
  const Json loose =
      PlanOf("--set spec.objective.deadlineSeconds=300 --set spec.objective.budget=9");
  for (const char* field : {"functions", "memory", "predicted", "aggregation", "binding"}) {
    EXPECT_EQ(loose[field], alone[field]) << field;
  }
  const Ended both = Lambdadnn(
      kJob + "--set spec.objective.deadlineSeconds=300 --set spec.objective.budget=0.0001");
  EXPECT_EQ(both.exit_code, 3);
  EXPECT_THAT(both.output, HasSubstr("deadline 5 min 00 s, budget $0.0001"));
  EXPECT_THAT(both.output, HasSubstr("no plan costs at most $0.0001"));
}

TEST(Objectives, BestEffortIsAPlanThatSaysWhatItMisses) {
  const std::string late = "--set spec.objective.deadlineSeconds=1 ";
  const Ended refused = Lambdadnn(kJob + late);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.output, HasSubstr("no plan meets the deadline of 1 s"));
  const Ended effort = Lambdadnn(kJob + late + "--set spec.objective.bestEffort=true");
  EXPECT_EQ(effort.exit_code, 0) << effort.output;
  EXPECT_THAT(effort.output, HasSubstr("best effort: no plan meets the deadline of 1 s"));
  const Json plan = PlanOf(late + "--set spec.objective.bestEffort=true");
  EXPECT_EQ(plan["bestEffort"], true);
  EXPECT_EQ(plan["feasible"], true);
  EXPECT_THAT(plan["certificate"]["reason"].get<std::string>(), HasSubstr("no plan meets"));
}

TEST(Objectives, FinishByIsATimeToCome) {
  const std::string by = "--set spec.objective.deadlineSeconds= --set spec.objective.finishBy=";
  const Ended past = Lambdadnn(kJob + by + "2020-01-31T12:00:00Z");
  EXPECT_EQ(past.exit_code, 2) << past.output;
  EXPECT_THAT(past.output, HasSubstr("spec.objective.finishBy is 2020-01-31T12:00:00Z, in the past "
                                     "when the job begins; give a time that is still to come"));
  const Ended future = Lambdadnn(kJob + by + "2200-01-31T12:00:00Z");
  EXPECT_EQ(future.exit_code, 0) << future.output;
  EXPECT_THAT(future.output, HasSubstr("done by 2200-01-31T12:00:00Z"));
}

}  // namespace
}  // namespace lambdadnn
