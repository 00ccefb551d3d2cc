// SPDX-License-Identifier: Apache-2.0
// How a writer tells readers that an object lies in the store, and how they wait for that. Hints
// alone: an object may come without one, and a ring may be late, lost, or heard twice. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "trainer_function/peer/frame.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

class Bells {
 public:
  virtual ~Bells() = default;
  // The object lies in the store. Does not wait for anybody.
  virtual void Ring(const ExchangeObjectName& name) = 0;
  // Whether its writer will ring, as far as is known.
  virtual bool Expects(const ExchangeObjectName& name) const = 0;
  // Ends its waits when the name is rung, or its writer will not ring any more; once for each role
  // of this function that reads the object. Must not outlive this.
  virtual std::unique_ptr<ArrivalWatch> Watch(const ExchangeObjectName& name) = 0;
};

// Remembered of what was rung and not waited for yet; the oldest iterations go first.
inline constexpr size_t kMostRung = 4096;

// What was rung, and who waits for it.
class RungNames {
 public:
  explicit RungNames(Runtime& runtime);

  void Ring(const ExchangeObjectName& name);
  // Ends a wait for each of these that is waited for.
  void Wake(const std::function<bool(const ExchangeObjectName&)>& which);
  // One of `readers` that will watch this. Must not outlive this.
  std::unique_ptr<ArrivalWatch> Watch(const ExchangeObjectName& name, int readers = 1);

 private:
  class RingWatch;
  struct Name {
    int watches = 0;  // that there are
    int watched = 0;  // that there ever were
    int64_t rings = 0;
    std::unique_ptr<MonitorCondition> rung = {};  // where anybody has watched

    void Ring();
  };
  // The iteration first, so that the oldest is at the begin.
  using Key = std::pair<int64_t, ExchangeObjectName>;

  Clock& clock_;
  const std::unique_ptr<Monitor> monitor_;
  std::map<Key, Name> names_;  // under the monitor
};

// Of writers and readers in one process.
class LocalBells final : public Bells {
 public:
  explicit LocalBells(Runtime& runtime) : names_(runtime) {}
  void Ring(const ExchangeObjectName& name) override { names_.Ring(name); }
  bool Expects(const ExchangeObjectName&) const override { return true; }
  std::unique_ptr<ArrivalWatch> Watch(const ExchangeObjectName& name) override {
    return names_.Watch(name);
  }

 private:
  RungNames names_;
};

}  // namespace lambdadnn
