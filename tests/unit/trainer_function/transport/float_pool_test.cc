// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/float_pool.h"

#include <gtest/gtest.h>

#include <optional>

namespace lambdadnn {
namespace {

TEST(FloatPool, AVectorIsUsedAgainOnceNobodyHoldsIt) {
  FloatPool pool;
  auto first = pool.Take(3);
  EXPECT_EQ(*first, std::vector<float>(3, 0.0F));
  first->back() = 2;
  SharedView view = ViewOf(first, 1, 2);
  const std::vector<float>* const where = first.get();
  first.reset();
  const auto second = pool.Take(3);
  EXPECT_NE(second.get(), where) << "the view holds it";
  EXPECT_EQ(view.bytes.data(), AsBytes(std::span(*where)).data() + sizeof(float));
  EXPECT_EQ(view.bytes.size(), 2 * sizeof(float));
  view = {};
  const auto third = pool.Take(3);
  EXPECT_EQ(third.get(), where);
  EXPECT_EQ(third->back(), 2.0F) << "what it was";
}

TEST(FloatPool, WhatIsUnusedMayBeFreed) {
  FloatPool pool;
  auto held = pool.Take(1);
  held->back() = 2;
  *pool.Take(1) = {3};
  pool.FreeUnused();
  EXPECT_EQ(pool.Take(1)->back(), 0.0F) << "another one";
  held.reset();
  EXPECT_EQ(pool.Take(1)->back(), 2.0F) << "it was not freed";
}

TEST(FloatPool, MayGoBeforeItsVectors) {
  std::optional<FloatPool> pool(std::in_place);
  const auto vector = pool->Take(2);
  pool.reset();
  EXPECT_EQ(vector->size(), 2U);
}

}  // namespace
}  // namespace lambdadnn
