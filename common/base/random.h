// SPDX-License-Identifier: Apache-2.0
// Randomness as an interface, and the counter-based generator that every reproducible draw uses.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace lambdadnn {

// Thread-safe.
class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t Next() = 0;
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  // Uniform in [0, bound); bound > 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
};

// Unpredictable numbers from the operating system.
class SystemRandom final : public Random {
 public:
  uint64_t Next() override;
};

// H(words...): a 64-bit hash that is the same on every machine and release. All seeded draws of
// training (data order, initialisation, dropout) start from it, so it must never change.
uint64_t MixSeed(std::initializer_list<uint64_t> words);

// SplitMix64 from a seed. Deterministic; not thread-safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next() override;

 private:
  uint64_t state_;
};

// Random (version 4) UUID, lower case.
std::string MakeUuid(Random& random);

}  // namespace lambdadnn
