// SPDX-License-Identifier: Apache-2.0
// Whose credentials the functions of a job get for its store, when these are renewed, and when a
// job fails because it gets none (docs/design/016-credentials-of-a-job.md). Pure: the credential
// broker asks the store and does what is decided here.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "operator/controller/decide/policies.h"

namespace lambdadnn {

// What the choice depends on.
struct CredentialSituation {
  // The store may give credentials for one job: it is an S3 store, and this process may ask it.
  bool can_issue = false;
  // A policy can be written that allows the job's objects and no others; else why not.
  Status policy;
  bool has_secret = false;         // the spec names a Secret with credentials
  bool may_use_operators = false;  // functions may get the operator's own credentials
  bool started = false;
  std::string told;    // status.objectStore.credentials; "" = nothing
  std::string chosen;  // by this process; "" = nothing yet
  // Trying writes an object, which a job that was never accepted must not leave behind.
  bool may_try = false;
  // What trying them out showed, for this job or for another one of the same store and Secret;
  // absent = not tried.
  std::optional<Status> trial;
};

enum class CredentialStep {
  kKeep,         // as chosen before, or there is nothing to choose
  kAwaitAccept,  // they are to be tried out once the job is accepted
  kTryOut,       // the store is asked for some, and what they allow is tried
  kAskAgain,     // the store did not answer, and the job may have no others
  kPerJob,       // each slice brings credentials for this job alone
  kSecret,       // functions have the Secret's in their environment
  kOperator,     // functions have the operator's in their environment
  kRefuse,       // functions get none
};

struct CredentialChoice {
  CredentialStep step = CredentialStep::kKeep;
  // Of kAskAgain, kSecret, kOperator and kRefuse: why there are none for this job alone.
  Status why;
  friend bool operator==(const CredentialChoice&, const CredentialChoice&) = default;
};

// Whether what a trial showed holds for every job of that store and Secret: the store answered.
bool HoldsForOtherJobs(const Status& trial);

// Once a job, when it is accepted.
CredentialChoice ChooseCredentials(const CredentialSituation& situation);
// Of a job that had its own, once the store gave no new ones for a slice.
CredentialChoice ChooseAfterRefusal(const CredentialSituation& situation, const Status& refusal);

// Of credentials that the store gave for one job.
struct CredentialLife {
  double left_seconds = 0;
  double lifetime_seconds = 0;  // when they were given
};
// For how long new credentials are asked for, for a slice of this budget (0 = not limited);
// nullopt = those at hand will do.
std::optional<double> RenewalSeconds(const std::optional<CredentialLife>& at_hand,
                                     double budget_seconds);
// Of a slice that ends before its credentials do.
double BudgetWithin(const CredentialLife& life, double budget_seconds);
// kFailedPrecondition: too short for any slice.
Status CheckLifetime(double lifetime_seconds);

// Fails a job that gets no credentials, at once or, if its store has given some before, after a
// while.
Decision FailWithoutCredentials(const JobSnapshot& snapshot);

}  // namespace lambdadnn
