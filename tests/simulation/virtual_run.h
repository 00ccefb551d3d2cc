// SPDX-License-Identifier: Apache-2.0
// What tests in virtual time do again and again. Header only.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "tests/simulation/sim_runtime.h"
#include "tests/simulation/sim_scheduler.h"

namespace lambdadnn::simulation {

// Runs `work` in the process, to its end.
inline void RunIn(SimScheduler& scheduler, SimProcess& process, const std::function<void()>& work) {
  bool done = false;
  (void)process.Spawn("test", [&] {
    work();
    done = true;
  });
  const Status ran = scheduler.Run([&] { return done; }, {});
  ASSERT_TRUE(ran.ok()) << ran.ToString();
}

// Lets all processes run for so long.
inline void RunAllFor(SimScheduler& scheduler, double seconds) {
  bool done = false;
  scheduler.At(scheduler.Now() + FromSeconds(seconds), [&] { done = true; });
  const Status ran = scheduler.Run([&] { return done; }, {});
  ASSERT_TRUE(ran.ok()) << ran.ToString();
}

}  // namespace lambdadnn::simulation
