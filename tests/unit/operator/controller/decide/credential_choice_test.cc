// SPDX-License-Identifier: Apache-2.0
// Whose credentials the functions of a job get, when they are renewed, and when a job fails without
// any: one row a situation.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "operator/api/conditions.h"
#include "operator/controller/decide/job_credentials.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

using Step = CredentialStep;

// A new job of an S3 store with a Secret, whose store has shown nothing yet.
CredentialSituation NewJob() {
  CredentialSituation situation;
  situation.can_issue = true;
  situation.has_secret = true;
  return situation;
}

struct ChoiceRow {
  const char* name;
  std::function<void(CredentialSituation&)> change;
  Step step;
};

void Exposed(CredentialSituation& s) {
  s.has_secret = false;
  s.may_use_operators = true;
}
void WithoutAny(CredentialSituation& s) { s.has_secret = false; }

const ChoiceRow kChoices[] = {
    {"NotAccepted", [](CredentialSituation&) {}, Step::kAwaitAccept},
    {"Accepted", [](CredentialSituation& s) { s.may_try = true; }, Step::kTryOut},
    {"AnotherStore", [](CredentialSituation& s) { s.can_issue = false; }, Step::kKeep},
    {"Chosen", [](CredentialSituation& s) { s.chosen = kSecretCredentials; }, Step::kKeep},
    {"ToldItsOwn", [](CredentialSituation& s) { s.told = kPerJobCredentials; }, Step::kKeep},
    {"ToldTheSecrets", [](CredentialSituation& s) { s.told = kSecretCredentials; }, Step::kKeep},
    {"ToldTheSecretsWhichIsNoLongerNamed",
     [](CredentialSituation& s) {
       WithoutAny(s);
       s.told = kSecretCredentials;
     },
     Step::kAwaitAccept},
    {"ToldTheOperators",
     [](CredentialSituation& s) {
       Exposed(s);
       s.told = kOperatorCredentials;
     },
     Step::kKeep},
    {"ToldTheOperatorsWhichAreNoLongerExposed",
     [](CredentialSituation& s) {
       WithoutAny(s);
       s.told = kOperatorCredentials;
     },
     Step::kAwaitAccept},
    {"StartedByAVersionThatDidNotTell", [](CredentialSituation& s) { s.started = true; },
     Step::kKeep},
    {"StartedAndMayHaveNone",
     [](CredentialSituation& s) {
       WithoutAny(s);
       s.started = true;
     },
     Step::kAwaitAccept},
    {"NoPolicy", [](CredentialSituation& s) { s.policy = FailedPreconditionError("too long"); },
     Step::kSecret},
    {"NoPolicyAndNoSecret",
     [](CredentialSituation& s) {
       WithoutAny(s);
       s.policy = FailedPreconditionError("too long");
     },
     Step::kRefuse},
    {"NoPolicyAndExposed",
     [](CredentialSituation& s) {
       Exposed(s);
       s.policy = FailedPreconditionError("too long");
     },
     Step::kOperator},
    {"TriedWell", [](CredentialSituation& s) { s.trial = OkStatus(); }, Step::kPerJob},
    {"TriedWellByAnotherJobBeforeThisIsAccepted",
     [](CredentialSituation& s) {
       WithoutAny(s);
       s.trial = OkStatus();
     },
     Step::kPerJob},
    {"TriedInVain", [](CredentialSituation& s) { s.trial = UnimplementedError("no such action"); },
     Step::kSecret},
    {"TriedInVainAndExposed",
     [](CredentialSituation& s) {
       Exposed(s);
       s.trial = UnimplementedError("no such action");
     },
     Step::kOperator},
    {"TriedInVainWithoutSecret",
     [](CredentialSituation& s) {
       WithoutAny(s);
       s.trial = UnimplementedError("no such action");
     },
     Step::kRefuse},
    {"TriedWithoutAnswer", [](CredentialSituation& s) { s.trial = UnavailableError("503"); },
     Step::kSecret},
    {"TriedWithoutAnswerOrSecret",
     [](CredentialSituation& s) {
       WithoutAny(s);
       s.trial = UnavailableError("503");
     },
     Step::kAskAgain},
};

class ChooseCredentialsTest : public ::testing::TestWithParam<ChoiceRow> {};

TEST_P(ChooseCredentialsTest, TakesTheStep) {
  CredentialSituation situation = NewJob();
  GetParam().change(situation);
  const CredentialChoice choice = ChooseCredentials(situation);
  EXPECT_EQ(choice.step, GetParam().step);
  const bool says_why = choice.step == Step::kSecret || choice.step == Step::kOperator ||
                        choice.step == Step::kRefuse || choice.step == Step::kAskAgain;
  EXPECT_EQ(choice.why.ok(), !says_why);
}

INSTANTIATE_TEST_SUITE_P(Situations, ChooseCredentialsTest, ::testing::ValuesIn(kChoices),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(ChooseAfterRefusal, OnlyAnAnswerOfTheStoreMakesAJobFallBack) {
  CredentialSituation situation = NewJob();
  EXPECT_EQ(ChooseAfterRefusal(situation, UnavailableError("503")).step, Step::kAskAgain);
  EXPECT_EQ(ChooseAfterRefusal(situation, CancelledError("ending")).step, Step::kAskAgain);
  EXPECT_EQ(ChooseAfterRefusal(situation, PermissionDeniedError("key")).step, Step::kSecret);
  WithoutAny(situation);
  EXPECT_EQ(ChooseAfterRefusal(situation, PermissionDeniedError("key")).step, Step::kRefuse);
}

TEST(HoldsForOtherJobs, OnlyWhatTheStoreAnswered) {
  EXPECT_TRUE(HoldsForOtherJobs(OkStatus()));
  EXPECT_TRUE(HoldsForOtherJobs(UnimplementedError("no such action")));
  EXPECT_FALSE(HoldsForOtherJobs(UnavailableError("503")));
  EXPECT_FALSE(HoldsForOtherJobs(CancelledError("ending")));
}

TEST(RenewalSeconds, CoversTheSliceAndAMarginButRenewsAtHalfTheLifeOfShortOnes) {
  constexpr double kHour = 3600;
  const struct {
    const char* name;
    std::optional<CredentialLife> at_hand;
    double budget;
    std::optional<double> renewal;
  } rows[] = {
      {"none at hand", std::nullopt, kHour, kHour + 60},
      {"none at hand, a short slice", std::nullopt, 100, 900},
      {"none at hand, a slice without limit", std::nullopt, 0, 12 * kHour},
      {"none at hand, a slice that is too long", std::nullopt, 24 * kHour, 12 * kHour},
      {"enough", CredentialLife{kHour + 30, 2 * kHour + 60}, kHour, std::nullopt},
      {"a second too few", CredentialLife{kHour + 29, 2 * kHour + 60}, kHour, kHour + 60},
      {"short ones, fresh", CredentialLife{900, 900}, kHour, std::nullopt},
      {"short ones, half over", CredentialLife{450, 900}, kHour, std::nullopt},
      {"short ones, more than half over", CredentialLife{449, 900}, kHour, kHour + 60},
      {"a slice without limit", CredentialLife{6 * kHour, 12 * kHour}, 0, std::nullopt},
      {"a slice without limit, late", CredentialLife{6 * kHour - 1, 12 * kHour}, 0, 12 * kHour},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RenewalSeconds(row.at_hand, row.budget), row.renewal) << row.name;
  }
}

TEST(BudgetWithin, ASliceEndsBeforeItsCredentials) {
  EXPECT_EQ(BudgetWithin({900, 900}, 100), 100);
  EXPECT_EQ(BudgetWithin({900, 900}, 3600), 870);
  EXPECT_EQ(BudgetWithin({900, 900}, 0), 870);
}

TEST(CheckLifetime, RefusesWhatIsTooShortForASlice) {
  EXPECT_TRUE(CheckLifetime(120).ok());
  EXPECT_EQ(CheckLifetime(119).code(), StatusCode::kFailedPrecondition);
}

TEST(FailWithoutCredentials, AtOnceUnlessTheStoreGaveSomeBefore) {
  ControllerOptions options;
  options.credentials_seconds = 600;
  const struct {
    const char* name;
    bool admitted;
    std::optional<double> refused_seconds_ago;
    std::string told;
    bool fails;
  } rows[] = {
      {"not refused", true, std::nullopt, "", false},
      {"refused", true, 0, "", true},
      {"refused, and its store is to be asked again", false, 0, "", false},
      {"refused after it had some", true, 599, kPerJobCredentials, false},
      {"refused for long after it had some", true, 600, kPerJobCredentials, true},
      {"refused after it had others", true, 0, kOperatorCredentials, true},
  };
  for (const auto& row : rows) {
    TestSnapshot snapshot;
    snapshot.options = &options;
    snapshot.now = Instant(FromSeconds(1000));
    snapshot.job.status.store_credentials = row.told;
    if (row.admitted) snapshot.remembered.admission = OkStatus();
    if (row.refused_seconds_ago.has_value()) {
      snapshot.remembered.credentials_refused = FailedPreconditionError("no credentials");
      snapshot.remembered.credentials_refused_since =
          snapshot.now - FromSeconds(*row.refused_seconds_ago);
    }
    const Decision decision = FailWithoutCredentials(snapshot);
    ASSERT_EQ(decision.has_value(), row.fails) << row.name;
    if (!row.fails) continue;
    const auto& write = std::get<WriteDecision>(decision->at(0));
    EXPECT_EQ(write.conditions.at(0).type, kConditionFailureTarget);
    EXPECT_EQ(write.conditions.at(0).reason, ReasonText(Reason::kNoJobCredentials));
  }
}

}  // namespace
}  // namespace lambdadnn
