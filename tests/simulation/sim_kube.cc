// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_kube.h"

#include <algorithm>

namespace lambdadnn::simulation {

class SimWatch final : public Watch {
 public:
  SimWatch(SimKubeClient& client, std::unique_ptr<Watch> inner)
      : client_(client), inner_(std::move(inner)) {}

  Result<WatchEvent> Next(Duration timeout) override {
    LDNN_RETURN_IF_ERROR(client_.Before("watch", false));
    Runtime& runtime = client_.process_.runtime();
    const Instant now = runtime.clock.Now();
    if (now < client_.frozen_until_) runtime.clock.SleepFor(client_.frozen_until_ - now);
    Result<WatchEvent> event = inner_->Next(timeout);
    if (event.ok() && !client_.faults_.calm()) {
      const double lag = client_.timing_.watch_lag_seconds;
      runtime.clock.SleepFor(FromSeconds(lag * runtime.random.Uniform()));
    }
    LDNN_RETURN_IF_ERROR(client_.After("watch"));
    return event;
  }

 private:
  SimKubeClient& client_;
  std::unique_ptr<Watch> inner_;
};

Duration SimKubeClient::OneWay() const {
  return FromSeconds(timing_.request_seconds * (0.25 + 0.5 * process_.runtime().random.Uniform()));
}

Status SimKubeClient::Before(const char* operation, bool writes) {
  const bool history = std::string_view(operation) == "watch";
  const FaultKinds kinds = Kind(FaultKind::kUnavailable) |
                           (writes ? Kind(FaultKind::kConflict) : 0) |
                           (history ? Kind(FaultKind::kGone) : 0);
  switch (faults_.Draw(role(), operation, FaultPoint::kBefore, kinds)) {
    case FaultKind::kCrash:
      process_.Kill();
      break;
    case FaultKind::kNone:
      break;
    case FaultKind::kConflict:
      return AbortedError("sim: the object has been modified; read it again");
    case FaultKind::kGone:
      return OutOfRangeError("sim: 410 Gone; list again");
    default:
      return UnavailableError("sim: the API server does not answer");
  }
  return OkStatus();
}

Status SimKubeClient::After(const char* operation) {
  switch (faults_.Draw(role(), operation, FaultPoint::kAfter, Kind(FaultKind::kUnavailable))) {
    case FaultKind::kCrash:
      process_.Kill();
      break;
    case FaultKind::kUnavailable:
      return UnavailableError("sim: the API server's reply was lost");
    default:
      break;
  }
  return OkStatus();
}

Status SimKubeClient::Go(Duration one_way, const std::function<void()>& arrive) {
  SimScheduler& scheduler = process_.scheduler();
  const Duration patience = FromSeconds(timing_.call_seconds);
  const Duration waits = hangs_until_ - scheduler.Now();
  if (waits <= Duration::zero() || patience == Duration::zero() || waits <= patience) {
    process_.runtime().clock.SleepFor(std::max(waits, Duration::zero()) + one_way);
    return OkStatus();
  }
  if (arrive && scheduler.random().Uniform() < 0.5) scheduler.At(hangs_until_ + one_way, arrive);
  process_.runtime().clock.SleepFor(patience);
  return UnavailableError("sim: no answer in time");
}

template <typename T, typename F>
Result<T> SimKubeClient::Read(const char* operation, F call) {
  Clock& clock = process_.runtime().clock;
  const Duration one_way = OneWay();
  LDNN_RETURN_IF_ERROR(Before(operation, false));
  LDNN_RETURN_IF_ERROR(Go(one_way, nullptr));
  Result<T> result = call();
  clock.SleepFor(one_way);
  LDNN_RETURN_IF_ERROR(After(operation));
  return result;
}

template <typename T, typename F>
Result<T> SimKubeClient::Write(const char* operation, const F& call) {
  Clock& clock = process_.runtime().clock;
  const Duration one_way = OneWay();
  LDNN_RETURN_IF_ERROR(Before(operation, true));
  LDNN_RETURN_IF_ERROR(Go(one_way, [call] { (void)call(); }));
  Result<T> result = call();
  clock.SleepFor(one_way);
  const FaultKinds kinds =
      Kind(FaultKind::kUnavailable) | Kind(FaultKind::kLate) | Kind(FaultKind::kTwice);
  switch (faults_.Draw(role(), operation, FaultPoint::kAfter, kinds)) {
    case FaultKind::kCrash:
      process_.Kill();
      break;
    case FaultKind::kUnavailable:
      return UnavailableError("sim: the API server's reply was lost");
    case FaultKind::kTwice:
      clock.SleepFor(one_way);
      result = call();
      clock.SleepFor(one_way);
      break;
    case FaultKind::kLate: {
      SimScheduler& scheduler = process_.scheduler();
      const double delay = scheduler.random().Uniform() * timing_.late_seconds;
      const bool heard = scheduler.random().Uniform() < 0.5;
      scheduler.At(scheduler.Now() + FromSeconds(delay), [call] { (void)call(); });
      if (!heard) return UnavailableError("sim: the connection ended before the reply");
      break;
    }
    default:
      break;
  }
  return result;
}

Result<Json> SimKubeClient::Get(const ResourceType& type, const ObjectName& name) {
  return Read<Json>("kube_get", [&] { return server_.Get(type, name); });
}

Result<KubeList> SimKubeClient::List(const ResourceType& type, const std::string& namespace_name,
                                     const std::string& label_selector, int limit,
                                     const std::string& continue_token) {
  return Read<KubeList>("kube_list", [&] {
    return server_.List(type, namespace_name, label_selector, limit, continue_token);
  });
}

Result<Json> SimKubeClient::Create(const ResourceType& type, const Json& object) {
  return Write<Json>("kube_create", [this, type, object] { return server_.Create(type, object); });
}

Result<Json> SimKubeClient::Update(const ResourceType& type, const Json& object,
                                   Subresource subresource) {
  return Write<Json>("kube_update", [this, type, object, subresource] {
    return server_.Update(type, object, subresource);
  });
}

Result<Json> SimKubeClient::Patch(const ResourceType& type, const ObjectName& name,
                                  const Json& merge_patch, Subresource subresource) {
  return Write<Json>("kube_patch", [this, type, name, merge_patch, subresource] {
    return PatchNow(type, name, merge_patch, subresource);
  });
}

Result<Json> SimKubeClient::PatchNow(const ResourceType& type, const ObjectName& name,
                                     const Json& merge_patch, Subresource subresource) {
  if (subresource != Subresource::kStatus || !on_status_write_) {
    return server_.Patch(type, name, merge_patch, subresource);
  }
  const std::shared_ptr<const Json> before = server_.Peek(type, name);
  Result<Json> written = server_.Patch(type, name, merge_patch, subresource);
  if (written.ok() && before != nullptr) on_status_write_(*before);
  return written;
}

Status SimKubeClient::Delete(const ResourceType& type, const ObjectName& name,
                             const std::string& uid_precondition) {
  struct Done {};
  return Write<Done>("kube_delete",
                     [this, type, name, uid_precondition]() -> Result<Done> {
                       LDNN_RETURN_IF_ERROR(server_.Delete(type, name, uid_precondition));
                       return Done{};
                     })
      .status();
}

Result<std::unique_ptr<Watch>> SimKubeClient::StartWatch(const ResourceType& type,
                                                         const std::string& namespace_name,
                                                         const std::string& label_selector,
                                                         const std::string& resource_version) {
  return Read<std::unique_ptr<Watch>>("start_watch", [&]() -> Result<std::unique_ptr<Watch>> {
    LDNN_ASSIGN_OR_RETURN(
        auto watch, server_.StartWatch(type, namespace_name, label_selector, resource_version));
    return std::unique_ptr<Watch>(std::make_unique<SimWatch>(*this, std::move(watch)));
  });
}

}  // namespace lambdadnn::simulation
