// SPDX-License-Identifier: Apache-2.0
// Which faults strike a simulated world, and the count of those that did. A world has two sources:
// rates (any call may be refused, lose its reply, be slow, be repeated late) and appointments (the
// N-th call of one operation by one role ends the process before or after the effect), which reach
// rare calls as often as frequent ones.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "common/base/random.h"

namespace lambdadnn::simulation {

enum class FaultPoint { kBefore, kAfter };

enum class FaultKind {
  kNone,
  kCrash,        // the process dies at this instruction
  kUnavailable,  // before: refused without an effect; after: the effect happened, the reply is lost
  kFull,         // before: no room
  kConflict,     // before: another writer was faster (API server)
  kGone,         // before: 410, history is no longer there (API server)
  kLate,         // after: the effect is repeated later, when nobody expects it
  kTwice,        // after: the request is made again at once, and its second reply is the answer
};
inline constexpr size_t kFaultKinds = 8;

// Which kinds a call can suffer: those of which it makes something. A crash strikes every call.
using FaultKinds = unsigned;
constexpr FaultKinds Kind(FaultKind kind) { return 1u << static_cast<unsigned>(kind); }

struct FaultRates {
  double unavailable = 0;
  double lost_reply = 0;
  double late = 0;
  double full = 0;
  double conflict = 0;
  double gone = 0;
};

// The `occurrence`-th call (from 1) of `operation` by `role` kills the caller at `point`.
struct CrashAppointment {
  std::string role;
  std::string operation;
  FaultPoint point = FaultPoint::kBefore;
  int64_t occurrence = 1;
};

// Calls and faults per (role, operation, point).
class FaultLedger {
 public:
  struct Cell {
    int64_t calls = 0;
    std::array<int64_t, kFaultKinds> struck{};  // by FaultKind
    int64_t& of(FaultKind kind) { return struck[static_cast<size_t>(kind)]; }
    int64_t of(FaultKind kind) const { return struck[static_cast<size_t>(kind)]; }
    int64_t faults() const { return std::accumulate(struck.begin(), struck.end(), int64_t{0}); }
  };
  using Key = std::tuple<std::string, std::string, FaultPoint>;

  // The cell stays where it is.
  Cell& At(const std::string& role, const std::string& operation, FaultPoint point) {
    return cells_[{role, operation, point}];
  }
  // Faults that belong to no call: kills at random moments, cut streams, partitions.
  void CountEvent(const std::string& what) { ++events_[what]; }
  int64_t TotalFaults() const;

  void Merge(const FaultLedger& other);
  // Lines "cell\trole\toperation\tbefore|after\tcalls\t" with the numbers of each kind, and
  // "event\twhat\tcount"; MergeLine reads one back and is false for anything else.
  std::string Serialize() const;
  bool MergeLine(const std::string& line);
  // A table for people; cells that were called but never struck end in "NEVER STRUCK".
  std::string Report() const;
  // A copy of a cell; all zeros when it was never called.
  Cell Count(const std::string& role, const std::string& operation, FaultPoint point) const;
  // Cells that were called and never struck.
  std::vector<Key> Unstruck() const;

 private:
  std::map<Key, Cell> cells_;
  std::map<std::string, int64_t> events_;
};

class FaultInjector {
 public:
  // `random` outlives this.
  FaultInjector(Random& random, FaultRates rates, std::vector<CrashAppointment> appointments)
      : random_(random), rates_(rates), appointments_(std::move(appointments)) {}

  // What strikes this call at this point; counted.
  FaultKind Draw(const char* role, const char* operation, FaultPoint point, FaultKinds kinds);
  // Nothing strikes any more (the end of a world is given time to settle).
  void Calm() { calm_ = true; }
  bool calm() const { return calm_; }
  FaultLedger& ledger() { return ledger_; }

 private:
  // Literals by address: a simulated request is too short for comparing names.
  struct CellKey {
    const void* role;
    const void* operation;
    FaultPoint point;
    bool operator==(const CellKey&) const = default;
  };
  struct CellHash {
    size_t operator()(const CellKey& key) const {
      return reinterpret_cast<size_t>(key.role) * 31 + reinterpret_cast<size_t>(key.operation) * 7 +
             static_cast<size_t>(key.point);
    }
  };
  // One place in the code: where its calls are counted, and who has an appointment there.
  struct Place {
    FaultLedger::Cell* cell = nullptr;
    std::vector<CrashAppointment*> appointments;
  };
  Place& PlaceOf(const char* role, const char* operation, FaultPoint point);
  FaultKind Decide(const Place& place, std::string_view operation, FaultPoint point,
                   FaultKinds kinds);

  Random& random_;
  const FaultRates rates_;
  std::vector<CrashAppointment> appointments_;
  bool calm_ = false;
  FaultLedger ledger_;
  std::unordered_map<CellKey, Place, CellHash> places_;
  // Those asked for lately, by their hash: no division, and mostly one look.
  struct Recent {
    CellKey key{};
    Place* place = nullptr;
  };
  std::array<Recent, 64> recent_;
};

}  // namespace lambdadnn::simulation
