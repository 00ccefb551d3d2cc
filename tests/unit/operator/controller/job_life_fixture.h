// SPDX-License-Identifier: Apache-2.0
// One job in a JobWorld, and what its tests ask again and again.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "operator/resources/function_groups.h"
#include "tests/support/job_world.h"

namespace lambdadnn {

class JobLifeTest : public testing::Test {
 protected:
  // What every ended job leaves behind: no function, no key, only results in the store.
  void ExpectNothingLeft() {
    EXPECT_THAT(world_.functions.Live(), testing::IsEmpty());
    EXPECT_THAT(world_.Keys(), testing::Each(testing::HasSubstr("/results/")));
    const auto secrets = world_.server.List(SecretType(), "", "", 100, "");
    ASSERT_TRUE(secrets.ok());
    EXPECT_THAT(secrets->items, testing::IsEmpty());
  }
  bool RunUntilIteration(int64_t iteration) {
    return world_.RunUntil([&] { return world_.Read().status.progress.iteration >= iteration; },
                           120);
  }
  Json Report() {
    for (const std::string& key : world_.Keys()) {
      if (!key.ends_with("/results/report.json")) continue;
      return *ParseJson(AsText(*world_.memory_store.Get(key, std::nullopt)));
    }
    return Json();
  }

  JobWorld world_;
};

}  // namespace lambdadnn
