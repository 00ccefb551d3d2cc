// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "operator/cli/plan/outcome_text.h"

namespace lambdadnn {
namespace {

constexpr int kColumns = 58;
constexpr int kRows = 11;

// A logarithmic axis when the values span more than this factor.
constexpr double kLogarithmic = 8;

class Axis {
 public:
  Axis(double low, double high, int cells) : low_(low), high_(high), cells_(cells) {
    logarithmic_ = low > 0 && high / low > kLogarithmic;
  }
  int Cell(double value) const {
    const double from = Scaled(low_);
    const double span = Scaled(high_) - from;
    if (span <= 0) return 0;
    const double share = (Scaled(value) - from) / span;
    return std::clamp(static_cast<int>(std::lround(share * (cells_ - 1))), 0, cells_ - 1);
  }
  double At(double share) const {
    if (!logarithmic_) return low_ + share * (high_ - low_);
    return low_ * std::pow(high_ / low_, share);
  }

 private:
  double Scaled(double value) const { return logarithmic_ ? std::log(value) : value; }
  double low_;
  double high_;
  int cells_;
  bool logarithmic_ = false;
};

std::string Padded(const std::string& text, size_t columns, bool right) {
  const std::string space(text.size() < columns ? columns - text.size() : 0, ' ');
  return right ? space + text : text + space;
}

}  // namespace

std::string FormatParetoPlot(const PlanningOutcome& outcome) {
  const std::vector<ParetoPoint>& front = outcome.pareto_front;
  if (front.size() < 2) return "";
  const auto cost_of = [&](const ParetoPoint& point) {
    return ComparedCost(point.candidate, outcome.measure);
  };
  const Axis time(front.front().seconds, front.back().seconds, kColumns);
  const Axis cost(cost_of(front.back()), cost_of(front.front()), kRows);

  enum Mark { kEmpty, kPoint, kChosen };
  std::vector<std::vector<Mark>> cells(kRows, std::vector<Mark>(kColumns, kEmpty));
  for (const ParetoPoint& point : front) {
    Mark& cell = cells[static_cast<size_t>(cost.Cell(cost_of(point)))]
                      [static_cast<size_t>(time.Cell(point.seconds))];
    cell = std::max(cell, point.chosen ? kChosen : kPoint);
  }

  std::string text = "\n  cost against time of the " + std::to_string(front.size()) +
                     " plans that no other beats in both (◆ = chosen)\n\n";
  for (int row = kRows - 1; row >= 0; --row) {
    const bool labelled = row % 5 == 0;
    const std::string label = labelled ? ShowCost(cost.At(static_cast<double>(row) / (kRows - 1)),
                                                  outcome.measure, outcome.currency)
                                       : "";
    text += "  " + Padded(label, 11, true) + (labelled ? " ┤" : " │");
    std::string line;
    std::string blanks;
    for (const Mark mark : cells[static_cast<size_t>(row)]) {
      if (mark == kEmpty) {
        blanks += ' ';
        continue;
      }
      line += blanks + (mark == kChosen ? "◆" : "•");
      blanks.clear();
    }
    text += line + "\n";
  }
  text += "  " + std::string(12, ' ') + "└";
  for (int column = 0; column < kColumns; ++column) {
    text += column % (kColumns / 2) == kColumns / 2 - 1 ? "┬" : "─";
  }
  const std::string left = ShowSeconds(time.At(0));
  const std::string middle = ShowSeconds(time.At(0.5));
  const std::string right = ShowSeconds(time.At(1));
  const size_t half = kColumns / 2;
  text += "\n  " + std::string(13, ' ') + Padded(left, half - middle.size() / 2 - 1, false) +
          Padded(middle, middle.size(), false);
  const size_t used = std::max(left.size(), half - middle.size() / 2 - 1) + middle.size();
  text += Padded(right, kColumns > used ? kColumns - used : 0, true) + "\n";
  return text;
}

}  // namespace lambdadnn
