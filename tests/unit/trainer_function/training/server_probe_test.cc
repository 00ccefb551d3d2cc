// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/server_probe.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

constexpr ServerCpu kCpu = {.iteration_seconds = 4e-4,
                            .shard_seconds = 1e-4,
                            .child_seconds = 3e-5,
                            .seconds_per_byte = 1e-9,
                            .child_seconds_per_byte = 3e-10};

double Seconds(const ServerCpu& cpu, int shards, int children, double bytes) {
  return cpu.iteration_seconds + shards * (cpu.shard_seconds + children * cpu.child_seconds) +
         bytes * (cpu.seconds_per_byte + children * cpu.child_seconds_per_byte);
}

// Waiting for a child costs kWait, whatever it sends.
constexpr double kWait = 2e-5;

ServerTimes TimesOf(const ServerCpu& cpu) {
  ServerCpu there = cpu;
  there.child_seconds -= kWait;
  ServerTimes times;
  times.shards_bytes = 262144;
  times.whole_bytes = 2e6;
  times.waiting = Seconds(cpu, 1, 1, 0);
  times.waiting_children = Seconds(cpu, 1, kProbedChildren, 0);
  times.least = Seconds(there, 1, 1, 0);
  times.children = Seconds(there, 1, kProbedChildren, 0);
  times.shards = Seconds(there, kProbedShards, 1, times.shards_bytes);
  times.bytes = Seconds(there, 1, 1, times.whole_bytes);
  times.children_bytes = Seconds(there, 1, kProbedChildren, times.whole_bytes);
  return times;
}

TEST(PartsOf, AreThoseThatTheTimesAreMadeOf) {
  const ServerCpu parts = PartsOf(TimesOf(kCpu));
  EXPECT_NEAR(parts.iteration_seconds, kCpu.iteration_seconds, 1e-12);
  EXPECT_NEAR(parts.shard_seconds, kCpu.shard_seconds, 1e-12);
  EXPECT_NEAR(parts.child_seconds, kCpu.child_seconds, 1e-12);
  EXPECT_NEAR(parts.seconds_per_byte, kCpu.seconds_per_byte, 1e-16);
  EXPECT_NEAR(parts.child_seconds_per_byte, kCpu.child_seconds_per_byte, 1e-16);
}

// Where noise is larger than a part, that part is nothing and not less.
TEST(PartsOf, AreNeverNegative) {
  ServerTimes times = TimesOf(kCpu);
  times.waiting_children = times.waiting / 2;
  times.shards = times.children_bytes = 0;
  const ServerCpu parts = PartsOf(times);
  EXPECT_EQ(parts.child_seconds, 0);
  EXPECT_EQ(parts.shard_seconds, 0);
  EXPECT_EQ(parts.child_seconds_per_byte, 0);
  EXPECT_NEAR(parts.iteration_seconds, times.waiting, 1e-12);
  EXPECT_NEAR(parts.seconds_per_byte, (times.bytes - times.least) / times.whole_bytes, 1e-16);
}

}  // namespace
}  // namespace lambdadnn
