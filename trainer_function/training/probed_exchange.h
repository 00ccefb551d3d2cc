// SPDX-License-Identifier: Apache-2.0
// One function's exchange with itself, over a transport whose two ends it has: what role `profile`
// measures of a store and of connections. Of one task.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/transfer_pool.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// Who pushes and who pulls; the same for a store. All outlive what is given them.
struct ProbedEnds {
  const RoleContext& context;
  const TrainingEnvironment& environment;
  Transport& writer;
  Transport& reader;
};

// Of several exchanges at once. One after the other has the same name, so that its arrival is known
// as one in a training is.
inline ExchangeObjectName ProbeName(int stream) { return {ObjectKind::kGradient, 0, 0, stream, 0}; }

// What is exchanged: the gradient, or part of it. Enough to show what a byte costs; more shows
// nothing new.
std::vector<float> ProbedValues(std::span<const float> gradient);
// Whoever pulls has waited no longer when the object comes.
inline constexpr double kMostWaitSeconds = 0.2;

// Seconds of several exchanges.
struct HandOvers {
  std::vector<double> seconds;
  // By this function's CPU quota, nearly all of them: store and network may be faster.
  bool held_up = false;
};

// Seconds of exchanges. One that the quota held up tells of the quota, which is known.
class ExchangeTimes {
 public:
  void Add(double seconds, bool throttled) {
    all_.push_back(seconds);
    if (!throttled) unthrottled_.push_back(seconds);
  }
  double last() const { return all_.empty() ? 0 : all_.back(); }
  // Those that no quota held up; all of them where it lets too few through.
  HandOvers WithoutQuota(size_t fewest) const {
    const bool held_up = unthrottled_.size() < fewest;
    return {held_up ? all_ : unthrottled_, held_up};
  }

 private:
  std::vector<double> all_;
  std::vector<double> unthrottled_;
};

// A pull that waits for its object while a step and then the push of it run, as in training.
class ProbedExchange {
 public:
  // `payload` is pushed, and never changed for as long as the ends exist.
  ProbedExchange(const ProbedEnds& ends, std::span<const float> payload);

  const TransferMetadata& metadata() const { return metadata_; }
  // From the push's begin to the pull's end, of the last Run().
  double seconds() const { return seconds_; }

  Status Run(const ExchangeObjectName& name, const std::function<Status()>& step);
  // The parts of it, for several exchanges at once: from now on the pull waits.
  void Await(const ExchangeObjectName& name);
  void Push(const ExchangeObjectName& name);
  Status WaitArrived() { return pulls_.WaitIdle(); }
  Status CleanUp(const ExchangeObjectName& name);

 private:
  Clock& clock_;
  Transport& writer_;
  Transport& reader_;
  std::span<const float> payload_;
  TransferMetadata metadata_;
  std::vector<float> copy_;
  TransferPool pushes_;
  TransferPool pulls_;
  double seconds_ = 0;
};

// CPU seconds of one object, medians of so many exchanges.
struct TransferTimes {
  double push = 0;
  double pull = 0;     // with the wait for the object
  double discard = 0;  // alone
  int exchanges = 0;   // with those that warmed up
};
// Of objects that have this payload, which is as ProbedExchange's.
Result<TransferTimes> TimeTransfers(const ProbedEnds& ends, std::span<const float> payload);
// From the begin of a push to the end of the pull that waits for it.
struct HandOverTimes {
  double least_seconds = 0;            // mean, of next to nothing
  double deviation_seconds = 0;        // standard deviation
  double usual_deviation_seconds = 0;  // without what is rare (QuartileDeviation)
  double seconds_per_byte = 0;         // what the bytes add; 0 = not known
};
// Of all values, and of one.
Result<HandOverTimes> TimeHandOvers(const ProbedEnds& ends, std::span<const float> values);

}  // namespace lambdadnn
