// SPDX-License-Identifier: Apache-2.0
// Counters of requests to an object store: successful ones by verb, their payload bytes, and misses
// and retries apart. They go from the store's meter to the completion record and the report, where
// they are compared with the planner's formulas (docs/ARCHITECTURE.md, guarantee 5). In = into the
// store, out = out of it.
#pragma once

#include <cstdint>

namespace lambdadnn {

struct StoreCounters {
  int64_t puts = 0;
  int64_t gets = 0;
  int64_t heads = 0;
  int64_t deletes = 0;    // objects; a DeleteMany of n counts n
  int64_t lists = 0;      // pages
  int64_t misses = 0;     // Get or Head answered "not there (yet)"
  int64_t retries = 0;    // attempts after the first
  int64_t bytes_in = 0;   // payload put into the store (as plan/collective_cost.h counts)
  int64_t bytes_out = 0;  // payload read from it

  // All requests that were answered; a DeleteMany counts as many as it has objects.
  int64_t Requests() const { return puts + gets + heads + deletes + lists + misses; }
  // Those that stores charge for, by price: docs/formats.md, "Platform file".
  int64_t PricedPuts() const { return puts + lists; }
  int64_t PricedGets() const { return gets + heads + misses; }

  StoreCounters& operator+=(const StoreCounters& other) {
    puts += other.puts;
    gets += other.gets;
    heads += other.heads;
    deletes += other.deletes;
    lists += other.lists;
    misses += other.misses;
    retries += other.retries;
    bytes_in += other.bytes_in;
    bytes_out += other.bytes_out;
    return *this;
  }
  friend bool operator==(const StoreCounters&, const StoreCounters&) = default;
};

// Below zero for a role that deletes what others put.
inline int64_t ObjectsAdded(const StoreCounters& counts) { return counts.puts - counts.deletes; }

}  // namespace lambdadnn
