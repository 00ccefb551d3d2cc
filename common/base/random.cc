// SPDX-License-Identifier: Apache-2.0
#include "common/base/random.h"

#include <sys/random.h>

#include <cstdio>

#include "common/base/check.h"

namespace lambdadnn {
namespace {

uint64_t Finalize(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

uint64_t SystemRandom::Next() {
  uint64_t value = 0;
  const ssize_t got = getrandom(&value, sizeof value, 0);
  LDNN_CHECK(got == static_cast<ssize_t>(sizeof value), "getrandom gave too few bytes");
  return value;
}

uint64_t MixSeed(std::initializer_list<uint64_t> words) {
  uint64_t state = 0x9e3779b97f4a7c15ULL;
  for (const uint64_t word : words)
    state = Finalize(state ^ Finalize(word + 0x9e3779b97f4a7c15ULL));
  return state;
}

uint64_t SeededRandom::Next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  return Finalize(state_);
}

std::string MakeUuid(Random& random) {
  uint64_t high = random.Next();
  uint64_t low = random.Next();
  high = (high & ~0xf000ULL) | 0x4000ULL;
  low = (low & ~(3ULL << 62)) | (2ULL << 62);
  char text[37];
  std::snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>((high >> 16) & 0xffff), static_cast<unsigned>(high & 0xffff),
                static_cast<unsigned>(low >> 48),
                static_cast<unsigned long long>(low & 0xffffffffffffULL));
  return text;
}

}  // namespace lambdadnn
