// SPDX-License-Identifier: Apache-2.0
// One suite for every ObjectStore: a test program links object_store_conformance_test.cc and
// instantiates it with the stores it has.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "common/objectstore/object_store.h"

namespace lambdadnn {

struct StoreUnderTest {
  std::string name;
  // An empty store of the test's own, which may share a server with those of other tests.
  std::function<std::unique_ptr<ObjectStore>()> open;
  // Where stores have buckets: one on a bucket that does not exist.
  std::function<std::unique_ptr<ObjectStore>()> open_missing_bucket = {};
  // Objects larger than this go up in parts.
  uint64_t part_bytes = 0;
  // Whether "a" and "a/b" may both be objects. MinIO does not list the second, versitygw refuses
  // it.
  bool key_below_key = true;
  // How often callers at once may be told to try again. versitygw keeps objects as files, and loses
  // races for their folders.
  int most_races_lost = 0;
};

// What test logs show.
inline void PrintTo(const StoreUnderTest& store, std::ostream* out) { *out << store.name; }

class ObjectStoreConformance : public testing::TestWithParam<StoreUnderTest> {};

inline std::string StoreName(const testing::TestParamInfo<StoreUnderTest>& param) {
  return param.param.name;
}

}  // namespace lambdadnn
