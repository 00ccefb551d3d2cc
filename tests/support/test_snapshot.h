// SPDX-License-Identifier: Apache-2.0
// A snapshot whose observations and memo a test may change. Copies share them.
#pragma once

#include <memory>
#include <utility>

#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

struct TestSnapshot : JobSnapshot {
  TestSnapshot() : TestSnapshot(std::make_shared<Observations>(), std::make_shared<Memo>()) {}

  Observations& observed;
  Memo& remembered;

 private:
  TestSnapshot(std::shared_ptr<Observations> seen, std::shared_ptr<Memo> done)
      : observed(*seen), remembered(*done) {
    observations = std::move(seen);
    memo = std::move(done);
  }
};

}  // namespace lambdadnn
