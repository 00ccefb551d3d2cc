// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/report/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/base/markup.h"

namespace lambdadnn {
namespace {

// Sizes in SVG units; the page scales a figure to its column.
constexpr double kWidth = 560;
constexpr double kHeight = 300;
constexpr double kLeft = 84;
constexpr double kRight = 16;
constexpr double kTop = 34;
constexpr double kBottom = 46;
constexpr double kRowHeight = 22;
// A timeline spans the whole page.
constexpr double kTimelineWidth = 1140;

std::string Coordinate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// A linear map from data to the drawing.
struct Scale {
  double low;
  double high;
  double begin;
  double end;
  double operator()(double value) const {
    if (high == low) return (begin + end) / 2;
    return begin + (value - low) / (high - low) * (end - begin);
  }
};

std::string Text(double x, double y, std::string_view anchor, std::string_view css_class,
                 std::string_view text) {
  return "<text x=\"" + Coordinate(x) + "\" y=\"" + Coordinate(y) + "\" text-anchor=\"" +
         std::string(anchor) + "\" class=\"" + std::string(css_class) + "\">" + EscapeMarkup(text) +
         "</text>";
}

std::string Line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  return "<line x1=\"" + Coordinate(x1) + "\" y1=\"" + Coordinate(y1) + "\" x2=\"" +
         Coordinate(x2) + "\" y2=\"" + Coordinate(y2) + "\" class=\"" + std::string(css_class) +
         "\"/>";
}

std::string Rect(double x, double y, double width, double height, std::string_view css_class,
                 std::string_view tooltip) {
  return "<rect x=\"" + Coordinate(x) + "\" y=\"" + Coordinate(y) + "\" width=\"" +
         Coordinate(std::max(width, 0.8)) + "\" height=\"" + Coordinate(height) +
         "\" rx=\"2\" class=\"" + std::string(css_class) + "\"><title>" + EscapeMarkup(tooltip) +
         "</title></rect>";
}

std::string Open(double width, double height, const std::string& title) {
  return "<svg viewBox=\"0 0 " + Coordinate(width) + " " + Coordinate(height) +
         "\" role=\"img\" aria-label=\"" + EscapeMarkup(title) + "\"><title>" +
         EscapeMarkup(title) + "</title>" + Text(0, 16, "start", "figure-title", title);
}

// Grid, tick labels and axis names of a plot with two numeric axes; `whole_x` leaves out fractions
// of iterations and epochs.
std::string Axes(const Scale& x, const Scale& y, const std::string& x_label,
                 const std::string& y_label, bool whole_x = false) {
  std::string svg;
  for (const double tick : AxisTicks(y.low, y.high, 5)) {
    svg += Line(kLeft, y(tick), kWidth - kRight, y(tick), "grid");
    svg += Text(kLeft - 8, y(tick) + 4, "end", "tick", FormatNumber(tick));
  }
  for (const double tick : AxisTicks(x.low, x.high, 6)) {
    if (whole_x && tick != std::floor(tick)) continue;
    svg += Line(x(tick), kHeight - kBottom, x(tick), kHeight - kBottom + 4, "axis");
    svg += Text(x(tick), kHeight - kBottom + 18, "middle", "tick", FormatNumber(tick));
  }
  svg += Line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "axis");
  svg += Text((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", "label", x_label);
  svg += "<g transform=\"rotate(-90)\">" +
         Text(-(kTop + kHeight - kBottom) / 2, 13, "middle", "label", y_label) + "</g>";
  return svg;
}

struct Extent {
  double low = INFINITY;
  double high = -INFINITY;
  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  // Room around the data; a single value gets an interval around it.
  void Pad(double share) {
    const double span = high > low ? high - low : std::max(std::abs(high), 1e-9);
    low -= span * share;
    high += span * share;
  }
};

std::string Legend(const std::vector<LineSeries>& series) {
  if (series.size() < 2) return "";
  std::string svg;
  double x = kWidth - kRight;
  for (auto it = series.rbegin(); it != series.rend(); ++it) {
    x -= 7.2 * static_cast<double>(it->name.size());
    svg += Text(x, 16, "start", "tick", it->name);
    x -= 16;
    svg += Rect(x, 8, 11, 9, "fill-" + it->color_class, it->name);
    x -= 12;
  }
  return svg;
}

}  // namespace

std::string FormatNumber(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  char text[48];
  if (std::abs(value) < 1000) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return text;
  }
  std::snprintf(text, sizeof text, "%.0f", value);
  std::string grouped = text;
  for (int i = static_cast<int>(grouped.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3) {
    grouped.insert(static_cast<size_t>(i), ",");
  }
  return grouped;
}

std::vector<double> AxisTicks(double low, double high, int count) {
  if (!(high > low) || count < 1) return {low};
  const double raw = (high - low) / count;
  const double magnitude = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * magnitude;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * magnitude >= raw * (1 - 1e-9)) {
      step = factor * magnitude;
      break;
    }
  }
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
    ticks.push_back(k * step);
  }
  return ticks;
}

std::string RenderLineChart(const LineChart& chart) {
  Extent xs;
  Extent ys;
  for (const LineSeries& series : chart.series) {
    for (const auto& [x, y] : series.points) {
      xs.Add(x);
      ys.Add(y);
    }
  }
  if (xs.empty()) return "";
  ys.Pad(0.05);
  if (xs.low == xs.high) xs.Pad(0.5);
  const Scale x{xs.low, xs.high, kLeft, kWidth - kRight};
  const Scale y{chart.y_min.value_or(ys.low), chart.y_max.value_or(ys.high), kHeight - kBottom,
                kTop};
  std::string svg = Open(kWidth, kHeight, chart.title) + Legend(chart.series) +
                    Axes(x, y, chart.x_label, chart.y_label, /*whole_x=*/true);
  for (const LineSeries& series : chart.series) {
    std::string path;
    for (const auto& [px, py] : series.points) {
      path += (path.empty() ? "" : " ") + Coordinate(x(px)) + "," + Coordinate(y(py));
    }
    svg += "<polyline points=\"" + path + "\" class=\"line " + series.color_class + "\"/>";
    if (!series.markers) continue;
    for (const auto& [px, py] : series.points) {
      svg += "<circle cx=\"" + Coordinate(x(px)) + "\" cy=\"" + Coordinate(y(py)) +
             "\" r=\"4\" class=\"fill-" + series.color_class + "\"><title>" + FormatNumber(px) +
             ": " + FormatNumber(py) + "</title></circle>";
    }
  }
  return svg + "</svg>";
}

std::string RenderPhaseBars(const std::string& title, const std::vector<PhaseBar>& bars) {
  constexpr double kLabelWidth = 120;
  constexpr double kBarHeight = 12;
  constexpr double kGroupHeight = 40;
  Extent extent;
  extent.Add(0);
  for (const PhaseBar& bar : bars) {
    if (bar.predicted) extent.Add(*bar.predicted);
    if (bar.actual) extent.Add(*bar.actual);
  }
  if (bars.empty()) return "";
  if (extent.high <= 0) extent.high = 1;
  const double height = kTop + kGroupHeight * static_cast<double>(bars.size()) + 8;
  const Scale x{0, extent.high, kLabelWidth, kWidth - 80};
  std::string svg = Open(kWidth, height, title);
  svg += Legend({{"predicted", "series-2", {}}, {"actual", "series-1", {}}});
  double top = kTop;
  for (const PhaseBar& bar : bars) {
    svg += Text(kLabelWidth - 10, top + 19, "end", "label", bar.name);
    double y = top + 2;
    for (const auto& [value, color] :
         {std::pair{bar.predicted, "fill-series-2"}, std::pair{bar.actual, "fill-series-1"}}) {
      if (value) {
        svg += Rect(kLabelWidth, y, x(*value) - kLabelWidth, kBarHeight, color,
                    bar.name + ": " + FormatNumber(*value) + " s");
        svg += Text(x(*value) + 6, y + 10, "start", "tick", FormatNumber(*value, 3) + " s");
      } else {
        svg += Text(kLabelWidth + 4, y + 10, "start", "tick", "not modelled");
      }
      y += kBarHeight + 3;
    }
    top += kGroupHeight;
  }
  return svg + "</svg>";
}

std::string RenderTimeline(const std::string& title, const std::vector<TimelineRow>& rows) {
  constexpr double kLabelWidth = 120;
  Extent extent;
  extent.Add(0);
  for (const TimelineRow& row : rows) {
    for (const TimelineInterval& interval : row.intervals) extent.Add(interval.end_seconds);
  }
  if (rows.empty() || extent.high <= 0) return "";
  const double bottom = kTop + kRowHeight * static_cast<double>(rows.size());
  const Scale x{0, extent.high, kLabelWidth, kTimelineWidth - kRight};
  std::string svg = Open(kTimelineWidth, bottom + kBottom, title);
  for (const double tick : AxisTicks(0, extent.high, 12)) {
    svg += Line(x(tick), kTop, x(tick), bottom, "grid");
    svg += Text(x(tick), bottom + 18, "middle", "tick", FormatNumber(tick));
  }
  svg += Text((kLabelWidth + kTimelineWidth - kRight) / 2, bottom + 38, "middle", "label",
              "seconds since the start");
  double y = kTop;
  for (const TimelineRow& row : rows) {
    svg += Text(kLabelWidth - 10, y + 15, "end", "label", row.name);
    for (const TimelineInterval& interval : row.intervals) {
      svg += Rect(x(interval.begin_seconds), y + 3,
                  x(interval.end_seconds) - x(interval.begin_seconds), kRowHeight - 6,
                  interval.color_class, interval.label);
    }
    for (const auto& [time, label] : row.marks) {
      svg += "<path d=\"M" + Coordinate(x(time)) + " " + Coordinate(y + 1) +
             "l5 10l-5 10l-5 -10z\" class=\"fill-mark\"><title>" + EscapeMarkup(label) +
             "</title></path>";
    }
    y += kRowHeight;
  }
  return svg + "</svg>";
}

std::string RenderScatter(const std::string& title, const std::string& x_label,
                          const std::string& y_label, const std::vector<ScatterPoint>& points) {
  Extent xs;
  Extent ys;
  for (const ScatterPoint& point : points) {
    xs.Add(point.x);
    ys.Add(point.y);
  }
  if (xs.empty()) return "";
  xs.Pad(0.08);
  ys.Pad(0.12);
  const Scale x{xs.low, xs.high, kLeft, kWidth - kRight};
  const Scale y{ys.low, ys.high, kHeight - kBottom, kTop};
  std::string svg = Open(kWidth, kHeight, title) + Axes(x, y, x_label, y_label);
  for (const bool chosen : {false, true}) {  // the chosen point is drawn last, on top
    for (const ScatterPoint& point : points) {
      if (point.chosen != chosen) continue;
      svg += "<circle cx=\"" + Coordinate(x(point.x)) + "\" cy=\"" + Coordinate(y(point.y)) +
             "\" r=\"" + (chosen ? "8" : "4.5") + "\" class=\"" +
             (chosen ? "fill-mark" : "fill-series-1") + "\"><title>" + EscapeMarkup(point.label) +
             "</title></circle>";
      if (!chosen) continue;
      const bool right = x(point.x) < kWidth / 2;
      const bool at_the_axis = y(point.y) > kHeight - kBottom - 30;
      svg += Text(x(point.x) + (right ? 12 : -12), y(point.y) + (at_the_axis ? -12 : 20),
                  right ? "start" : "end", "label", "chosen: " + point.label);
    }
  }
  return svg + "</svg>";
}

}  // namespace lambdadnn
