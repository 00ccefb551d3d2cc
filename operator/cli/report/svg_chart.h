// SPDX-License-Identifier: Apache-2.0
// Charts of the report page as self-contained SVG. Colours are CSS classes that the page defines
// for light and dark (report_html.cc), text is escaped, and every figure carries a title for
// readers that see none. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lambdadnn {

// A number for people: at most `digits` significant digits, thousands grouped ("12,345", "0.0213").
std::string FormatNumber(double value, int digits = 4);
// Round axis ticks that cover [low, high]: about `count` of them, ascending.
std::vector<double> AxisTicks(double low, double high, int count);

struct LineSeries {
  std::string name;
  std::string color_class;  // "series-1", ...
  std::vector<std::pair<double, double>> points;
  bool markers = false;  // for few points
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<LineSeries> series;
  std::optional<double> y_min;
  std::optional<double> y_max;
};
// An empty string when no series has a point.
std::string RenderLineChart(const LineChart& chart);

// One bar a row and side by side: predicted above actual, seconds.
struct PhaseBar {
  std::string name;
  std::optional<double> predicted;
  std::optional<double> actual;
};
std::string RenderPhaseBars(const std::string& title, const std::vector<PhaseBar>& bars);

// One row a function: coloured intervals on a common time axis.
struct TimelineInterval {
  double begin_seconds = 0;
  double end_seconds = 0;
  std::string color_class;
  std::string label;  // tooltip
};
struct TimelineRow {
  std::string name;
  std::vector<TimelineInterval> intervals;
  std::vector<std::pair<double, std::string>> marks;  // restarts and losses, with a tooltip
};
std::string RenderTimeline(const std::string& title, const std::vector<TimelineRow>& rows);

struct ScatterPoint {
  double x = 0;
  double y = 0;
  std::string label;
  bool chosen = false;
};
std::string RenderScatter(const std::string& title, const std::string& x_label,
                          const std::string& y_label, const std::vector<ScatterPoint>& points);

}  // namespace lambdadnn
