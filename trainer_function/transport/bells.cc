// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/bells.h"

namespace lambdadnn {

class RungNames::RingWatch final : public ArrivalWatch {
 public:
  RingWatch(RungNames& names, const ExchangeObjectName& name, int readers)
      : names_(names), key_(name.iteration, name), readers_(readers) {
    const MonitorLock lock(*names_.monitor_);
    Name& watched = names_.names_[key_];
    ++watched.watches;
    ++watched.watched;
    if (watched.rung == nullptr) watched.rung = names_.monitor_->NewCondition();
  }
  ~RingWatch() override {
    const MonitorLock lock(*names_.monitor_);
    const auto found = names_.names_.find(key_);
    // Whoever has watched it has it now, or does not want it any more.
    if (--found->second.watches == 0 && found->second.watched >= readers_) {
      names_.names_.erase(found);
    }
  }

  bool Wait(Duration at_most) override {
    const Instant end = names_.clock_.Now() + at_most;
    const MonitorLock lock(*names_.monitor_);
    const Name& name = names_.names_[key_];  // stays while it is watched
    for (;;) {
      if (std::exchange(heard_, name.rings) < name.rings) return true;
      if (names_.clock_.Now() >= end) return false;
      name.rung->WaitUntil(end);
    }
  }

 private:
  RungNames& names_;
  const Key key_;
  const int readers_;
  int64_t heard_ = 0;
};

void RungNames::Name::Ring() {
  ++rings;
  if (rung != nullptr) rung->NotifyAll();
}

RungNames::RungNames(Runtime& runtime)
    : clock_(runtime.clock), monitor_(runtime.executor.NewMonitor()) {}

void RungNames::Ring(const ExchangeObjectName& name) {
  const MonitorLock lock(*monitor_);
  names_[{name.iteration, name}].Ring();
  for (auto oldest = names_.begin(); names_.size() > kMostRung && oldest != names_.end();) {
    oldest = oldest->second.watches == 0 ? names_.erase(oldest) : std::next(oldest);
  }
}

void RungNames::Wake(const std::function<bool(const ExchangeObjectName&)>& which) {
  const MonitorLock lock(*monitor_);
  for (auto& [key, name] : names_) {
    if (name.watches > 0 && which(key.second)) name.Ring();
  }
}

std::unique_ptr<ArrivalWatch> RungNames::Watch(const ExchangeObjectName& name, int readers) {
  return std::make_unique<RingWatch>(*this, name, readers);
}

}  // namespace lambdadnn
