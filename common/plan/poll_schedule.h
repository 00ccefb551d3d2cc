// SPDX-License-Identifier: Apache-2.0
// When to poll for an object that is not there yet: times since the objects of its iteration are
// waited for. Pure.
//
// Bounds, for any wait up to kMaxPollWait: at most kMaxMissesPerObject (collective_cost.h)
// requests miss, and an object is found at most kPollGrowth x (time waited) + kMinPollGap after it
// came, half of that on average. Both follow from gaps that are a fixed share of the time waited so
// far: ln(3600 s / 8 ms) / ln(1 + kPollGrowth) + 8 < 128.
//
// Iterations resemble each other, so the waits for the last objects of a writer predict the next:
// the first request is sent shortly before the earliest of them, and gaps are smaller around it.
// The earliest, not the mean: functions wait for each other in a circle, so that one which polls
// late after a single slow iteration would delay all others, which would then learn this delay.
//
// One that is there at the first request may have come at any time before, or its pull may have
// queued behind others. The first request for the next one is sent in half the time, once: where
// objects come earlier now, the halving finds out; where they do not, it costs a few misses.
//
// A request in vain is not free: it keeps this function and the store busy, and one that has used
// up its CPU quota by asking is late for what it asked for. Around the expected time e gaps are
// therefore a multiple of sqrt(e x what a miss takes), which balances the time lost by asking with
// the time lost by not asking.
//
// Where the store gives hints (ArrivalWatch), requests follow these, and the gaps between other
// requests double: they serve only objects that came without a hint. A false hint costs a miss as
// well, so after kMaxVainHints of them the wait ignores further hints.
//
// Where the writer is connected and rings once the object lies there, there is no question before:
// the first without a doorbell comes when twice the longest of the last waits has passed, and then
// gaps double. So an object costs no question in vain, and a lost doorbell at most as long again as
// the wait would have been.
#pragma once

#include <array>
#include <optional>

#include "common/base/clock.h"

namespace lambdadnn {

inline constexpr double kPollGrowth = 0.12;
inline constexpr Duration kMinPollGap = std::chrono::milliseconds(1);
inline constexpr Duration kMaxPollWait = std::chrono::seconds(3600);

// Estimates when the objects of one writer arrive. Not thread-safe.
class ArrivalEstimate {
 public:
  // The time of the first request; zero while too little is known.
  Duration FirstPoll() const;
  // The earliest of the last arrivals; zero while fewer than kLeastObserved are known.
  Duration expected() const;
  // The latest of them; zero while none is known.
  Duration latest() const;
  // An object was there at `hit`; `last_miss` = the last time it was not, if it was asked for.
  void Observe(std::optional<Duration> last_miss, Duration hit);

  static constexpr size_t kLeastObserved = 3;
  static constexpr size_t kWindow = 8;

 private:
  std::array<Duration, kWindow> arrivals_{};
  size_t observed_ = 0;
  bool at_once_ = false;  // the last one was there at the first request
};

// From a missed request at `waited` to the next one; `miss`: what a request in vain takes,
// where that is known.
Duration NextPollGap(Duration waited, Duration expected, Duration miss = {});

// How often an object is asked for in vain, on average, that comes after `expected_seconds`, give
// or take a standard deviation, by a request that takes `miss_seconds`: once before it and then in
// gaps of NextPollGap, from before the earliest of the last arrivals on. A longer wait of the same
// relative deviation never has fewer.
double ExpectedMisses(double expected_seconds, double deviation_seconds, double miss_seconds);

inline constexpr Duration kMinHintedGap = std::chrono::milliseconds(8);
inline constexpr int kMaxVainHints = 4;

// The same while hints are expected.
Duration NextHintedGap(Duration waited);

inline constexpr Duration kMinRungGap = std::chrono::milliseconds(100);

// While a connected writer rings: the time of the first request without a doorbell, when the last
// objects of this writer came at `latest` or before; and from a missed request to the next one.
Duration FirstRungPoll(Duration latest);
Duration NextRungGap(Duration waited);

}  // namespace lambdadnn
