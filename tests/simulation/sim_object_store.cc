// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_object_store.h"

#include <algorithm>

namespace lambdadnn::simulation {
namespace {

constexpr double kSlowRequests = 0.005;
constexpr double kSlowFactor = 10;

}  // namespace

Duration SimObjectStore::RequestTime() const {
  const StoreTiming& timing = bucket_.timing_;
  double seconds = timing.request_seconds;
  if (timing.jitter > 0) {
    Random& random = bucket_.scheduler_.random();
    seconds *= 1 + timing.jitter * random.Uniform();
    if (random.Uniform() < kSlowRequests) seconds *= kSlowFactor;
  }
  return FromSeconds(seconds);
}

void SimObjectStore::Tell(std::string_view operation, std::string_view key, ByteView bytes) const {
  if (bucket_.observer_) bucket_.observer_({operation, key, bytes, &process_, nullptr, false});
}

Status SimObjectStore::Before(const char* operation, bool writes) {
  ++bucket_.requests_;
  const FaultKinds kinds = Kind(FaultKind::kUnavailable) | (writes ? Kind(FaultKind::kFull) : 0);
  switch (bucket_.faults_.Draw(process_.role(), operation, FaultPoint::kBefore, kinds)) {
    case FaultKind::kCrash:
      process_.Kill();
      break;
    case FaultKind::kFull:
      process_.runtime().clock.SleepFor(RequestTime());
      return ResourceExhaustedError("sim: the store has no room left");
    case FaultKind::kUnavailable:
      process_.runtime().clock.SleepFor(RequestTime());
      return UnavailableError("sim: the store answers 503, slow down");
    default:
      break;
  }
  return OkStatus();
}

Status SimObjectStore::After(const char* operation, std::string_view key,
                             const std::function<void()>& repeat) {
  const FaultKinds kinds = Kind(FaultKind::kUnavailable) | (repeat ? Kind(FaultKind::kLate) : 0);
  switch (bucket_.faults_.Draw(process_.role(), operation, FaultPoint::kAfter, kinds)) {
    case FaultKind::kCrash:
      Tell("fault", key);
      process_.Kill();
      break;
    case FaultKind::kUnavailable:
      Tell("fault", key);
      return UnavailableError("sim: the connection ended before the reply");
    case FaultKind::kLate: {
      const double delay = bucket_.scheduler_.random().Uniform() * bucket_.timing_.late_seconds;
      bucket_.scheduler_.At(bucket_.scheduler_.Now() + FromSeconds(delay), repeat);
      break;
    }
    default:
      break;
  }
  return OkStatus();
}

Duration SimObjectStore::Transfer(Instant* free_at, size_t size) {
  const Instant now = bucket_.scheduler_.Now();
  *free_at = std::max(*free_at, now) +
             FromSeconds(static_cast<double>(size) / bucket_.timing_.bytes_per_second);
  return *free_at - now;
}

void SimObjectStore::Travel(Duration there, Duration back, std::function<void()> effect) {
  bucket_.scheduler_.At(bucket_.scheduler_.Now() + there, std::move(effect));
  process_.runtime().clock.SleepFor(there + std::max(back, Duration(1)));
}

Status SimObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                           const PutOptions& options) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  LDNN_RETURN_IF_ERROR(Before("put", true));
  size_t size = 0;
  for (const ByteView part : parts) size += part.size();
  auto bytes = std::make_shared<Bytes>();
  bytes->reserve(size);
  for (const ByteView part : parts) bytes->insert(bytes->end(), part.begin(), part.end());

  auto outcome = std::make_shared<Status>();
  const auto effect = [&bucket = bucket_, process = &process_, name = std::string(key), bytes,
                       if_absent = options.if_absent, outcome](bool repeated) {
    std::shared_ptr<const Bytes>& place = bucket.objects_[name];
    if (place != nullptr && if_absent) {
      *outcome = AlreadyExistsError("sim: " + name + " is there already");
      return;
    }
    const std::shared_ptr<const Bytes> replaced = std::exchange(place, bytes);
    if (bucket.scheduler_.tracing()) {
      bucket.scheduler_.Trace(process->name() + (repeated ? " late put " : " put ") + name);
    }
    if (bucket.observer_) {
      bucket.observer_({"put", name, *bytes, process, replaced.get(), repeated});
    }
  };
  const Duration transfer = Transfer(&up_free_at_, size);
  const Duration request = RequestTime();
  Travel(request / 2 + transfer, request / 2, [effect] { effect(false); });
  LDNN_RETURN_IF_ERROR(After("put", key, [effect] { effect(true); }));
  return *outcome;
}

Result<Bytes> SimObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  LDNN_RETURN_IF_ERROR(Before("get", false));
  process_.runtime().clock.SleepFor(RequestTime());
  const auto found = bucket_.objects_.find(key);
  const std::shared_ptr<const Bytes> object =
      found == bucket_.objects_.end() ? nullptr : found->second;
  if (object != nullptr) {
    size_t begin = 0;
    size_t size = object->size();
    if (range.has_value()) {
      if (range->offset > object->size()) return OutOfRangeError("sim: range beyond the object");
      begin = range->offset;
      size = std::min<size_t>(range->length, object->size() - begin);
    }
    process_.runtime().clock.SleepFor(Transfer(&down_free_at_, size));
    LDNN_RETURN_IF_ERROR(After("get", key, nullptr));
    const auto first = object->begin() + static_cast<std::ptrdiff_t>(begin);
    Bytes bytes(first, first + static_cast<std::ptrdiff_t>(size));
    Tell("get", key, bytes);
    return bytes;
  }
  Tell("miss", key);
  LDNN_RETURN_IF_ERROR(After("get", key, nullptr));
  return NotFoundError("sim: no object " + std::string(key));
}

Result<ObjectInfo> SimObjectStore::Head(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  LDNN_RETURN_IF_ERROR(Before("head", false));
  process_.runtime().clock.SleepFor(RequestTime());
  LDNN_RETURN_IF_ERROR(After("head", key, nullptr));
  const auto found = bucket_.objects_.find(key);
  if (found == bucket_.objects_.end()) {
    return NotFoundError("sim: no object " + std::string(key));
  }
  return ObjectInfo{found->first, found->second->size()};
}

Status SimObjectStore::Delete(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  LDNN_RETURN_IF_ERROR(Before("delete", true));
  const auto effect = [&bucket = bucket_, process = &process_, name = std::string(key)] {
    if (bucket.scheduler_.tracing()) {
      bucket.scheduler_.Trace(process->name() + " delete " + name);
    }
    const auto found = bucket.objects_.find(name);
    if (found == bucket.objects_.end()) return;
    bucket.objects_.erase(found);
    if (bucket.observer_) bucket.observer_({"delete", name, {}, process, nullptr, false});
  };
  const Duration request = RequestTime();
  Travel(request / 2, request / 2, effect);
  return After("delete", key, effect);
}

Status SimObjectStore::DeleteMany(std::span<const std::string> keys) {
  for (const std::string& key : keys) LDNN_RETURN_IF_ERROR(ValidateKey(key));
  LDNN_RETURN_IF_ERROR(Before("delete_many", true));
  const auto effect = [&bucket = bucket_, process = &process_,
                       names = std::vector<std::string>(keys.begin(), keys.end())] {
    for (const std::string& name : names) {
      const auto found = bucket.objects_.find(name);
      if (found == bucket.objects_.end()) continue;
      if (bucket.scheduler_.tracing()) {
        bucket.scheduler_.Trace(process->name() + " delete " + name);
      }
      bucket.objects_.erase(found);
      if (bucket.observer_) bucket.observer_({"delete", name, {}, process, nullptr, false});
    }
  };
  const Duration request = RequestTime();
  Travel(request / 2, request / 2, effect);
  return After("delete_many", "", effect);
}

Result<ObjectList> SimObjectStore::List(std::string_view prefix, std::string_view start_after,
                                        int limit) {
  LDNN_RETURN_IF_ERROR(Before("list", false));
  process_.runtime().clock.SleepFor(RequestTime());
  LDNN_RETURN_IF_ERROR(After("list", "", nullptr));
  std::vector<ObjectInfo> found;
  for (const auto& [key, bytes] : bucket_.objects_) {
    if (key.starts_with(prefix) && key > start_after) found.push_back({key, bytes->size()});
  }
  std::sort(found.begin(), found.end(),
            [](const ObjectInfo& a, const ObjectInfo& b) { return a.key < b.key; });
  ObjectList list;
  if (found.size() > static_cast<size_t>(limit)) {
    found.resize(static_cast<size_t>(limit));
    list.next_start_after = found.back().key;
  }
  list.objects = std::move(found);
  return list;
}

}  // namespace lambdadnn::simulation
