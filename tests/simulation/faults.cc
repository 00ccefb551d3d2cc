// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/faults.h"

#include <cstdio>

#include "common/base/text.h"

namespace lambdadnn::simulation {
namespace {

// A world has thousands of reads and writes, but a few dozen requests for slices and few looks at
// whether an object is there.
constexpr double kRareFactor = 25;

const char* PointName(FaultPoint point) {
  return point == FaultPoint::kBefore ? "before" : "after";
}

}  // namespace

int64_t FaultLedger::TotalFaults() const {
  int64_t total = 0;
  for (const auto& [key, cell] : cells_) total += cell.faults();
  for (const auto& [what, count] : events_) total += count;
  return total;
}

void FaultLedger::Merge(const FaultLedger& other) {
  for (const auto& [key, cell] : other.cells_) {
    Cell& own = cells_[key];
    own.calls += cell.calls;
    own.crashes += cell.crashes;
    own.others += cell.others;
  }
  for (const auto& [what, count] : other.events_) events_[what] += count;
}

std::string FaultLedger::Serialize() const {
  std::string text;
  for (const auto& [key, cell] : cells_) {
    const auto& [role, operation, point] = key;
    text += "cell\t" + role + "\t" + operation + "\t" + PointName(point) + "\t" +
            std::to_string(cell.calls) + "\t" + std::to_string(cell.crashes) + "\t" +
            std::to_string(cell.others) + "\n";
  }
  for (const auto& [what, count] : events_) {
    text += "event\t" + what + "\t" + std::to_string(count) + "\n";
  }
  return text;
}

bool FaultLedger::MergeLine(const std::string& line) {
  const std::vector<std::string> parts = Split(line, '\t');
  if (parts.size() == 7 && parts[0] == "cell") {
    const FaultPoint point = parts[3] == "before" ? FaultPoint::kBefore : FaultPoint::kAfter;
    Cell& cell = cells_[{parts[1], parts[2], point}];
    cell.calls += ParseInteger(parts[4]).value_or(0);
    cell.crashes += ParseInteger(parts[5]).value_or(0);
    cell.others += ParseInteger(parts[6]).value_or(0);
    return true;
  }
  if (parts.size() == 3 && parts[0] == "event") {
    events_[parts[1]] += ParseInteger(parts[2]).value_or(0);
    return true;
  }
  return false;
}

std::string FaultLedger::Report() const {
  std::string text;
  char line[160];
  std::snprintf(line, sizeof line, "%-14s %-14s %-7s %12s %9s %9s\n", "role", "operation", "point",
                "calls", "crashes", "others");
  text += line;
  for (const auto& [key, cell] : cells_) {
    const auto& [role, operation, point] = key;
    std::snprintf(line, sizeof line, "%-14s %-14s %-7s %12lld %9lld %9lld%s\n", role.c_str(),
                  operation.c_str(), PointName(point), static_cast<long long>(cell.calls),
                  static_cast<long long>(cell.crashes), static_cast<long long>(cell.others),
                  cell.faults() == 0 ? "  NEVER STRUCK" : "");
    text += line;
  }
  for (const auto& [what, count] : events_) {
    std::snprintf(line, sizeof line, "%-37s %12lld\n", what.c_str(), static_cast<long long>(count));
    text += line;
  }
  return text;
}

int64_t FaultLedger::FaultsAt(const std::string& role, const std::string& operation,
                              FaultPoint point) const {
  const auto cell = cells_.find({role, operation, point});
  return cell == cells_.end() ? 0 : cell->second.faults();
}

std::vector<FaultLedger::Key> FaultLedger::Unstruck() const {
  std::vector<Key> keys;
  for (const auto& [key, cell] : cells_) {
    if (cell.calls > 0 && cell.faults() == 0) keys.push_back(key);
  }
  return keys;
}

FaultKind FaultInjector::Draw(const char* role, const char* operation, FaultPoint point,
                              FaultKinds kinds) {
  FaultLedger::Cell*& cell = cells_[{role, operation, point}];
  if (cell == nullptr) cell = &ledger_.At(role, operation, point);
  ++cell->calls;
  const FaultKind kind = Decide(role, operation, point, kinds);
  if (kind != FaultKind::kNone) ++(kind == FaultKind::kCrash ? cell->crashes : cell->others);
  return kind;
}

FaultKind FaultInjector::Decide(std::string_view role, std::string_view operation, FaultPoint point,
                                FaultKinds kinds) {
  if (calm_) return FaultKind::kNone;
  for (CrashAppointment& appointment : appointments_) {
    if (appointment.point != point || appointment.occurrence <= 0) continue;
    if (appointment.operation != operation || appointment.role != role) continue;
    if (--appointment.occurrence == 0) return FaultKind::kCrash;
  }
  double draw = random_.Uniform();
  const auto strikes = [&draw, kinds](FaultKind kind, double rate) {
    if ((kinds & Kind(kind)) == 0) return false;
    draw -= rate;
    return draw < 0;
  };
  if (point == FaultPoint::kAfter) {
    const double lost = operation == "head" ? kRareFactor : 1;
    if (strikes(FaultKind::kUnavailable, lost * rates_.lost_reply)) return FaultKind::kUnavailable;
    const double late = operation == "slice_start" ? kRareFactor : 1;
    if (strikes(FaultKind::kLate, late * rates_.late)) return FaultKind::kLate;
    return FaultKind::kNone;
  }
  if (strikes(FaultKind::kUnavailable, rates_.unavailable)) return FaultKind::kUnavailable;
  if (strikes(FaultKind::kFull, rates_.full)) return FaultKind::kFull;
  if (strikes(FaultKind::kConflict, rates_.conflict)) return FaultKind::kConflict;
  if (strikes(FaultKind::kGone, rates_.gone)) return FaultKind::kGone;
  return FaultKind::kNone;
}

}  // namespace lambdadnn::simulation
