// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/store_transport.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

namespace lambdadnn {
namespace {

constexpr Duration kWrongFetchPause = std::chrono::milliseconds(10);

std::string Seconds(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", ToSeconds(duration));
  return text;
}

std::string KeyOf(const ExchangeScope& scope, const ExchangeObjectName& name) {
  switch (name.kind) {
    case ObjectKind::kWeights:
      return WeightsKey(scope, name.iteration, name.shard);
    case ObjectKind::kNorms:
      return NormsKey(scope, name.iteration, name.shard);
    default:
      return GradientKey(scope, name.iteration, name.layer, name.shard, name.index);
  }
}

}  // namespace

// A pull's question: as many at once as transfers, whatever waits.
class StoreTransport::Turn {
 public:
  explicit Turn(StoreTransport& transport) : transport_(transport) {
    const MonitorLock lock(*transport_.turns_);
    while (transport_.turns_left_ == 0) transport_.turns_->Wait();
    --transport_.turns_left_;
  }
  ~Turn() {
    const MonitorLock lock(*transport_.turns_);
    ++transport_.turns_left_;
    transport_.turns_->NotifyOne();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  StoreTransport& transport_;
};

StoreTransport::StoreTransport(Runtime& runtime, ObjectStore& store, Interrupt& interrupt,
                               ExchangeScope scope, const std::string& job_uid,
                               int64_t block_elements, Bells* bells)
    : runtime_(runtime),
      store_(store),
      interrupt_(interrupt),
      scope_(std::move(scope)),
      codec_(scope_, job_uid, block_elements),
      bells_(bells),
      turns_(runtime.executor.NewMonitor()),
      turns_left_(kTransferThreads) {}

StoreTransport::StoreTransport(const RoleContext& context)
    : StoreTransport(context.runtime, context.store, context.interrupt, context.scope(),
                     context.request.job.uid, context.request.plan.block_elements, context.bells) {}

Result<ReceivedObject> StoreTransport::PullOnce(const ExchangeObjectName& name, Range elements) {
  LDNN_ASSIGN_OR_RETURN(Bytes bytes, store_.Get(KeyOf(scope_, name), std::nullopt));
  return codec_.Verify(name, elements, SharedView::Of(std::move(bytes)));
}

Duration StoreTransport::CountMiss(Duration took) {
  constexpr double kWeight = 0.1;
  const double seconds = ToSeconds(took);
  const std::lock_guard lock(mutex_);
  miss_seconds_ += (miss_seconds_ > 0 ? kWeight : 1) * (seconds - miss_seconds_);
  return FromSeconds(miss_seconds_);
}

Status StoreTransport::Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
                            const SharedView& payload) {
  const Bytes header = codec_.EncodedHeaderOf(name, metadata, payload.bytes);
  const std::array<ByteView, 2> parts = {ByteView(header), payload.bytes};
  return PutObject(name, parts);
}

Status StoreTransport::PutObject(const ExchangeObjectName& name, std::span<const ByteView> parts) {
  // Training never resumes from exchanged objects: after a power failure it resumes from the
  // checkpoint.
  LDNN_RETURN_IF_ERROR(store_.Put(KeyOf(scope_, name), parts, PutOptions{.ephemeral = true})
                           .WithContext("pushing the " + name.Brief()));
  if (bells_ != nullptr) bells_->Ring(name);
  return OkStatus();
}

Result<ReceivedObject> StoreTransport::Pull(const ExchangeObjectName& name, Range elements) {
  const auto awaited = [&]() -> Awaited& { return awaited_[{name.kind, name.layer}]; };
  Instant since;
  {
    const std::lock_guard lock(mutex_);
    Awaited& group = awaited();
    if (group.iteration != name.iteration || group.pulls == 0) {
      group.iteration = name.iteration;
      group.since = runtime_.clock.Now();
    }
    ++group.pulls;
    since = group.since;
  }
  Result<ReceivedObject> received = PullSince(since, name, elements);
  const std::lock_guard lock(mutex_);
  --awaited().pulls;
  return received;
}

Instant StoreTransport::FirstQuestion(Instant since, const ExchangeObjectName& name,
                                      const ArrivalEstimate& estimate, bool store_hints) const {
  const Instant now = runtime_.clock.Now();
  if (store_hints) return now;
  const bool rung = bells_ != nullptr && bells_->Expects(name);
  return std::max(now, since + (rung ? FirstRungPoll(estimate.latest()) : estimate.FirstPoll()));
}

Duration StoreTransport::GapAfterMiss(const ExchangeObjectName& name, Duration waited,
                                      const ArrivalEstimate& estimate, Duration miss,
                                      bool store_hints) const {
  if (store_hints) return NextHintedGap(waited);
  const bool rung = bells_ != nullptr && bells_->Expects(name);
  return rung ? NextRungGap(waited) : NextPollGap(waited, estimate.expected(), miss);
}

Result<ReceivedObject> StoreTransport::PullSince(Instant since, const ExchangeObjectName& name,
                                                 Range elements) {
  const std::string key = KeyOf(scope_, name);
  const Instant start = runtime_.clock.Now();
  // Made before the first question, so that no object slips between question and wait.
  std::unique_ptr<ArrivalWatch> watch = store_.Watch(key);
  bool store_hints = watch != nullptr;
  if (bells_ != nullptr && (!store_hints || bells_->Expects(name))) {
    watch = bells_->Watch(name);
    store_hints = false;
  }
  ArrivalEstimate estimate;
  {
    const std::lock_guard lock(mutex_);
    estimate = awaited_[{name.kind, name.layer}].arrivals[{name.shard, name.index}];
  }
  Instant next = FirstQuestion(since, name, estimate, store_hints);
  std::optional<Duration> last_miss;
  int wrong = 0;
  int vain_hints = 0;
  for (;;) {
    const Status status =
        watch == nullptr ? interrupt_.SleepUntil(next) : interrupt_.SleepUntil(next, *watch);
    const bool hinted = watch != nullptr && runtime_.clock.Now() < next;
    if (!status.ok()) {
      return Status(status.code(), "waited " + Seconds(runtime_.clock.Now() - start) +
                                       " in vain for the " + name.Brief() + " (" + key +
                                       "): " + status.message());
    }
    std::optional<Turn> turn(std::in_place, *this);
    const Duration asked = runtime_.clock.Now() - since;
    auto received = PullOnce(name, elements);
    turn.reset();
    if (received.ok()) {
      estimate.Observe(last_miss, asked);
      const std::lock_guard lock(mutex_);
      awaited_[{name.kind, name.layer}].arrivals[{name.shard, name.index}] = estimate;
      return received;
    }
    const StatusCode code = received.status().code();
    if (code == StatusCode::kNotFound) {
      last_miss = asked;
      const Duration miss = CountMiss(runtime_.clock.Now() - since - asked);
      if (hinted && ++vain_hints == kMaxVainHints) {
        watch.reset();
        store_hints = false;
      }
      next = runtime_.clock.Now() + GapAfterMiss(name, asked, estimate, miss, store_hints);
    } else if (code == StatusCode::kDataLoss && ++wrong < kMaxWrongFetches) {
      next = runtime_.clock.Now() + kWrongFetchPause * (1 << wrong);
    } else {
      return received.status().WithContext("pulling the " + name.Brief() + " (" + key + ")");
    }
  }
}

Result<std::set<WeightsShard>> StoreTransport::FindWeights() {
  LDNN_ASSIGN_OR_RETURN(const std::vector<ObjectInfo> objects,
                        ListAll(store_, ExchangeScopePrefix(scope_)));
  std::set<WeightsShard> found;
  for (const ObjectInfo& object : objects) {
    if (const auto weights = WeightsOfKey(scope_, object.key)) found.insert(*weights);
  }
  return found;
}

Status StoreTransport::Discard(std::span<const ExchangeObjectName> names) {
  std::vector<std::string> keys;
  for (const ExchangeObjectName& name : names) keys.push_back(KeyOf(scope_, name));
  return store_.DeleteMany(keys).WithContext("deleting exchanged objects");
}

}  // namespace lambdadnn
