// SPDX-License-Identifier: Apache-2.0
// The machine that a simulated file store is on: its disk, the production store over it, and what a
// power cut must leave of what was written.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/objectstore/filesystem_object_store.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/sim_object_store.h"

namespace lambdadnn::simulation {

class StoreHost {
 public:
  explicit StoreHost(uint64_t seed);

  ObjectStore& store() { return store_; }
  SimDisk& disk() { return disk_; }
  // Is shown all that takes effect in the store.
  void Observe(const StoreEffect& effect);
  // The power fails and comes back. Returns what is wrong then: of an object that was stored for
  // good anything else than its content, of one whose write was cut anything but all or nothing.
  std::vector<std::string> CutPower();
  // Whether the object is there only because its deletion was undone.
  bool CameBack(std::string_view key) const { return came_back_.contains(key); }

 private:
  SeededRandom random_;
  SimDisk disk_;
  FilesystemObjectStore store_;
  std::set<std::string, std::less<>> present_;
  std::set<std::string, std::less<>> came_back_;
  KeyMap<uint64_t> stored_;         // for good: digests of the contents
  KeyMap<std::set<uint64_t>> cut_;  // digests that may be there, or nothing
};

}  // namespace lambdadnn::simulation
