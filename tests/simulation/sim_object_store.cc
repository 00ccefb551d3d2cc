// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_object_store.h"

#include <algorithm>

namespace lambdadnn::simulation {
namespace {

constexpr double kSlowRequests = 0.005;
constexpr double kSlowFactor = 10;

bool IsCheckpointPart(std::string_view key) {
  return key.find("/checkpoints/") != std::string_view::npos && !key.ends_with(".json");
}

}  // namespace

Status SimBucket::Put(const Write& write, bool repeated) {
  if (files_ != nullptr) {
    const ByteView whole(*write.bytes);
    Status done = files_->Put(write.key, std::span(&whole, 1), write.options);
    if (!done.ok()) {
      if (observer_)
        observer_({"cut", write.key, whole, write.process, repeated, write.options.ephemeral});
      return done;
    }
  } else {
    std::shared_ptr<const Bytes>& place = objects_[write.key];
    if (place != nullptr && write.options.if_absent) {
      return AlreadyExistsError("sim: " + write.key + " is there already");
    }
    place = write.bytes;
  }
  if (scheduler_.tracing()) {
    scheduler_.Trace(write.process->name() + (repeated ? " late put " : " put ") + write.key);
  }
  if (observer_) {
    observer_({"put", write.key, *write.bytes, write.process, repeated, write.options.ephemeral});
  }
  return OkStatus();
}

Result<std::shared_ptr<const Bytes>> SimBucket::Get(std::string_view key) const {
  if (files_ != nullptr) {
    LDNN_ASSIGN_OR_RETURN(Bytes bytes, files_->Get(key));
    return std::make_shared<const Bytes>(std::move(bytes));
  }
  const auto found = objects_.find(key);
  if (found == objects_.end()) return NotFoundError("sim: no object " + std::string(key));
  return found->second;
}

void SimBucket::Delete(const std::string& key, const SimProcess* process) {
  if (scheduler_.tracing()) scheduler_.Trace(process->name() + " delete " + key);
  if (files_ != nullptr) {
    if (!files_->Head(key).ok()) return;
    if (!files_->Delete(key).ok()) {
      if (observer_) observer_({"cut", key, {}, process});
      return;
    }
  } else if (objects_.erase(key) == 0) {
    return;
  }
  if (observer_) observer_({"delete", key, {}, process});
}

Result<ObjectList> SimBucket::List(std::string_view prefix, std::string_view start_after,
                                   int limit) const {
  if (files_ != nullptr) return files_->List(prefix, start_after, limit);
  std::vector<ObjectInfo> found;
  for (const auto& [key, bytes] : objects_) {
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

std::map<std::string, std::shared_ptr<const Bytes>> SimBucket::objects() const {
  if (files_ == nullptr) return {objects_.begin(), objects_.end()};
  std::map<std::string, std::shared_ptr<const Bytes>> all;
  const auto listed = ListAll(*files_, "");
  LDNN_CHECK(listed.ok(), "the simulated disk cannot be listed: " + listed.status().ToString());
  for (const ObjectInfo& object : *listed) all[object.key] = *Get(object.key);
  return all;
}

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
  if (bucket_.observer_) bucket_.observer_({operation, key, bytes, &process_});
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
      return ResourceExhaustedError("sim: the store has no capacity left");
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
      bucket_.scheduler_.At(bucket_.scheduler_.Now() + FromSeconds(delay), Effect(repeat));
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

std::function<void()> SimObjectStore::Effect(std::function<void()> effect) const {
  return [&bucket = bucket_, generation = bucket_.generation_, effect = std::move(effect)] {
    if (bucket.generation_ == generation) effect();
  };
}

void SimObjectStore::Travel(Duration there, Duration back, std::function<void()> effect) {
  bucket_.scheduler_.At(bucket_.scheduler_.Now() + there, Effect(std::move(effect)));
  process_.runtime().clock.SleepFor(there + std::max(back, Duration(1)));
}

Status SimObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                           const PutOptions& options) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  LDNN_RETURN_IF_ERROR(Before("put", true));
  const double slow = bucket_.timing_.checkpoint_seconds;
  if (slow > 0 && IsCheckpointPart(key)) {
    process_.runtime().clock.SleepFor(FromSeconds(slow * bucket_.scheduler_.random().Uniform()));
  }
  size_t size = 0;
  for (const ByteView part : parts) size += part.size();
  auto bytes = std::make_shared<Bytes>();
  bytes->reserve(size);
  for (const ByteView part : parts) bytes->insert(bytes->end(), part.begin(), part.end());

  auto outcome = std::make_shared<Status>();
  const auto write = std::make_shared<const SimBucket::Write>(
      SimBucket::Write{std::string(key), std::move(bytes), options, &process_});
  const auto effect = [&bucket = bucket_, write, outcome](bool repeated) {
    *outcome = bucket.Put(*write, repeated);
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
  const Result<std::shared_ptr<const Bytes>> object = bucket_.Get(key);
  if (object.ok()) {
    const Bytes& whole = **object;
    size_t begin = 0;
    size_t size = whole.size();
    if (range.has_value()) {
      if (range->offset > whole.size()) return OutOfRangeError("sim: range beyond the object");
      begin = range->offset;
      size = std::min<size_t>(range->length, whole.size() - begin);
    }
    process_.runtime().clock.SleepFor(Transfer(&down_free_at_, size));
    LDNN_RETURN_IF_ERROR(After("get", key, nullptr));
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(begin);
    Bytes bytes(first, first + static_cast<std::ptrdiff_t>(size));
    Tell("get", key, bytes);
    return bytes;
  }
  Tell("miss", key);
  LDNN_RETURN_IF_ERROR(After("get", key, nullptr));
  return object.status();
}

Result<ObjectInfo> SimObjectStore::Head(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  LDNN_RETURN_IF_ERROR(Before("head", false));
  process_.runtime().clock.SleepFor(RequestTime());
  LDNN_RETURN_IF_ERROR(After("head", key, nullptr));
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<const Bytes> object, bucket_.Get(key));
  return ObjectInfo{std::string(key), object->size()};
}

Status SimObjectStore::Delete(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  LDNN_RETURN_IF_ERROR(Before("delete", true));
  const auto effect = [&bucket = bucket_, process = &process_, name = std::string(key)] {
    bucket.Delete(name, process);
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
    for (const std::string& name : names) bucket.Delete(name, process);
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
  return bucket_.List(prefix, start_after, limit);
}

}  // namespace lambdadnn::simulation
