// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/faults.h"

#include <cstdio>

#include "common/base/text.h"

namespace lambdadnn::simulation {
namespace {

// A world has thousands of reads and writes, but a few dozen requests for slices and writes to the
// API server, and few looks at whether an object is there.
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
    for (size_t kind = 0; kind < kFaultKinds; ++kind) own.struck[kind] += cell.struck[kind];
  }
  for (const auto& [what, count] : other.events_) events_[what] += count;
}

std::string FaultLedger::Serialize() const {
  std::string text;
  for (const auto& [key, cell] : cells_) {
    const auto& [role, operation, point] = key;
    text += "cell\t" + role + "\t" + operation + "\t" + PointName(point) + "\t" +
            std::to_string(cell.calls);
    for (const int64_t count : cell.struck) text += "\t" + std::to_string(count);
    text += "\n";
  }
  for (const auto& [what, count] : events_) {
    text += "event\t" + what + "\t" + std::to_string(count) + "\n";
  }
  return text;
}

bool FaultLedger::MergeLine(const std::string& line) {
  const std::vector<std::string> parts = Split(line, '\t');
  if (parts.size() == 5 + kFaultKinds && parts[0] == "cell") {
    const FaultPoint point = parts[3] == "before" ? FaultPoint::kBefore : FaultPoint::kAfter;
    Cell& cell = cells_[{parts[1], parts[2], point}];
    cell.calls += ParseInteger(parts[4]).value_or(0);
    for (size_t kind = 0; kind < kFaultKinds; ++kind) {
      cell.struck[kind] += ParseInteger(parts[5 + kind]).value_or(0);
    }
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
  std::snprintf(line, sizeof line, "%-12s %-15s %-6s %9s %8s %8s %6s %8s %6s %8s\n", "role",
                "operation", "point", "calls", "crashed", "unheard", "full", "conflict", "gone",
                "repeated");
  text += line;
  for (const auto& [key, counted] : cells_) {
    const auto& [role, operation, point] = key;
    const Cell& cell = counted;
    const auto count = [&cell](FaultKind kind) { return static_cast<long long>(cell.of(kind)); };
    std::snprintf(line, sizeof line,
                  "%-12s %-15s %-6s %9lld %8lld %8lld %6lld %8lld %6lld %8lld%s\n", role.c_str(),
                  operation.c_str(), PointName(point), static_cast<long long>(cell.calls),
                  count(FaultKind::kCrash), count(FaultKind::kUnavailable), count(FaultKind::kFull),
                  count(FaultKind::kConflict), count(FaultKind::kGone),
                  count(FaultKind::kLate) + count(FaultKind::kTwice),
                  cell.faults() == 0 ? "  NEVER STRUCK" : "");
    text += line;
  }
  for (const auto& [what, count] : events_) {
    std::snprintf(line, sizeof line, "%-37s %12lld\n", what.c_str(), static_cast<long long>(count));
    text += line;
  }
  return text;
}

FaultLedger::Cell FaultLedger::Count(const std::string& role, const std::string& operation,
                                     FaultPoint point) const {
  const auto cell = cells_.find({role, operation, point});
  return cell == cells_.end() ? Cell{} : cell->second;
}

std::vector<FaultLedger::Key> FaultLedger::Unstruck() const {
  std::vector<Key> keys;
  for (const auto& [key, cell] : cells_) {
    if (cell.calls > 0 && cell.faults() == 0) keys.push_back(key);
  }
  return keys;
}

FaultInjector::Place& FaultInjector::PlaceOf(const char* role, const char* operation,
                                             FaultPoint point) {
  const CellKey key = {role, operation, point};
  const size_t hash = CellHash()(key);
  Recent& recent = recent_[(hash ^ (hash >> 6)) % recent_.size()];
  if (recent.place != nullptr && recent.key == key) return *recent.place;
  Place& place = places_[key];
  recent = {key, &place};
  if (place.cell != nullptr) return place;
  place.cell = &ledger_.At(role, operation, point);
  for (CrashAppointment& appointment : appointments_) {
    if (appointment.point != point || appointment.occurrence <= 0) continue;
    if (appointment.operation != operation || appointment.role != role) continue;
    place.appointments.push_back(&appointment);
  }
  return place;
}

FaultKind FaultInjector::Draw(const char* role, const char* operation, FaultPoint point,
                              FaultKinds kinds) {
  Place& place = PlaceOf(role, operation, point);
  ++place.cell->calls;
  const FaultKind kind = Decide(place, operation, point, kinds);
  if (kind != FaultKind::kNone) ++place.cell->of(kind);
  return kind;
}

FaultKind FaultInjector::Decide(const Place& place, std::string_view operation, FaultPoint point,
                                FaultKinds kinds) {
  if (calm_) return FaultKind::kNone;
  for (CrashAppointment* appointment : place.appointments) {
    if (appointment->occurrence <= 0) continue;
    if (--appointment->occurrence == 0) return FaultKind::kCrash;
  }
  double draw = random_.Uniform();
  const auto strikes = [&draw, kinds](FaultKind kind, double rate) {
    if ((kinds & Kind(kind)) == 0) return false;
    draw -= rate;
    return draw < 0;
  };
  const bool api_write = (kinds & Kind(FaultKind::kTwice)) != 0;
  if (point == FaultPoint::kAfter) {
    const double lost = operation == "head" || api_write ? kRareFactor : 1;
    if (strikes(FaultKind::kUnavailable, lost * rates_.lost_reply)) return FaultKind::kUnavailable;
    const bool rare = operation == "slice_start" || api_write;
    const double late = rare ? kRareFactor * rates_.late : rates_.late;
    if (strikes(FaultKind::kLate, late)) return FaultKind::kLate;
    if (strikes(FaultKind::kTwice, late)) return FaultKind::kTwice;
    return FaultKind::kNone;
  }
  if (strikes(FaultKind::kUnavailable, rates_.unavailable)) return FaultKind::kUnavailable;
  if (strikes(FaultKind::kFull, rates_.full)) return FaultKind::kFull;
  if (strikes(FaultKind::kConflict, kRareFactor * rates_.conflict)) return FaultKind::kConflict;
  if (strikes(FaultKind::kGone, rates_.gone)) return FaultKind::kGone;
  return FaultKind::kNone;
}

}  // namespace lambdadnn::simulation
