// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/store_host.h"

namespace lambdadnn::simulation {

StoreHost::StoreHost(uint64_t seed)
    : random_(MixSeed({seed, 0xd15c})), disk_(random_), store_("/store", &disk_) {}

void StoreHost::Observe(const StoreEffect& effect) {
  const std::string key(effect.key);
  if (effect.operation == "put") {
    present_.insert(key);
    came_back_.erase(key);
    cut_.erase(key);
    if (effect.ephemeral) {
      stored_.erase(key);
    } else {
      stored_[key] = Xxh3(effect.bytes);
    }
  } else if (effect.operation == "delete") {
    present_.erase(key);
    came_back_.erase(key);
    stored_.erase(key);
  } else if (effect.operation == "cut") {
    const auto old = stored_.find(key);
    // Of what was not stored for good, any version may come back.
    if (!effect.ephemeral && (old != stored_.end() || !present_.contains(key))) {
      std::set<uint64_t>& contents = cut_[key];
      contents.insert(Xxh3(effect.bytes));
      if (old != stored_.end()) contents.insert(old->second);
    }
    if (old != stored_.end()) stored_.erase(old);
  }
}

std::vector<std::string> StoreHost::CutPower() {
  disk_.CutPower();
  disk_.Restart();
  std::vector<std::string> violations;
  for (const auto& [key, content] : stored_) {
    const Result<Bytes> found = store_.Get(key);
    if (found.ok() && Xxh3(*found) == content) continue;
    violations.push_back("durability: " + key + " was stored before the power failed, and is " +
                         (found.ok() ? "spoiled" : "gone") + " after it");
  }
  for (const auto& [key, contents] : cut_) {
    const Result<Bytes> found = store_.Get(key);
    if (!found.ok()) continue;
    stored_[key] = Xxh3(*found);
    if (contents.contains(stored_[key])) continue;
    violations.push_back("durability: " + key +
                         ", whose write the power cut ended, is there and spoiled");
  }
  cut_.clear();
  const auto listed = ListAll(store_, "");
  LDNN_CHECK(listed.ok(), "the simulated disk cannot be listed: " + listed.status().ToString());
  for (const ObjectInfo& object : *listed) {
    if (present_.insert(object.key).second) came_back_.insert(object.key);
  }
  return violations;
}

}  // namespace lambdadnn::simulation
