// SPDX-License-Identifier: Apache-2.0
// What a process may keep of what it saw and did, once a decision was written: a new plan or
// another start of the clock makes part of it void. Pure.
#pragma once

#include "operator/controller/decide/action.h"
#include "operator/controller/observe/memo.h"
#include "operator/controller/observe/observations.h"

namespace lambdadnn {

// What changed with a decision that was written.
struct WrittenDecision {
  const Job& before;
  const Job& after;
  const WriteDecision& decision;

  // A round was given up: its successor has another incarnation.
  bool falls_back() const;
  // A role of the round was given to another function, which goes on in it.
  bool rejoins() const;
  // Also the first plan.
  bool has_other_plan() const;
};

void ForgetOutdated(const WrittenDecision& written, Instant now, Observations* observed,
                    Memo* memo);

}  // namespace lambdadnn
