// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/run_view.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "common/plan/money.h"
#include "operator/api/conditions.h"
#include "operator/api/job_summary.h"

namespace lambdadnn {
namespace {

constexpr size_t kLongestBar = 24;
constexpr size_t kShortestBar = 6;

template <typename... Values>
std::string Format(const char* format, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

std::string Text(const Json& event, const char* field) {
  const auto found = event.find(field);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

double Number(const Json& event, const char* field) {
  const auto found = event.find(field);
  return found != event.end() && found->is_number() ? found->get<double>() : 0;
}

// Of an event "evaluation".
TestMetrics MetricsOf(const Json& event) {
  const auto value = [&](const char* field) -> std::optional<double> {
    const auto found = event.find(field);
    if (found == event.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  return {value("loss"), value("accuracy"), value("top5Accuracy"), value("meanAbsoluteError")};
}

std::string Cut(const std::string& text, size_t columns) {
  std::string cut;
  size_t width = 0;
  for (size_t i = 0; i < text.size();) {
    size_t next = i + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0u) == 0x80u) ++next;
    if (++width > columns) break;
    cut.append(text, i, next - i);
    i = next;
  }
  return cut;
}

// A quarter of the line, within reason.
std::string Bar(int percentage, size_t columns) {
  const size_t width = std::clamp(columns / 4, kShortestBar, kLongestBar);
  const size_t filled = width * static_cast<size_t>(std::clamp(percentage, 0, 100)) / 100;
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
}

// Parts joined by two spaces, those that fit whole; the first always.
std::string JoinFitting(const std::vector<std::string>& parts, size_t columns) {
  std::string line;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    const size_t width = DisplayWidth(line) + (line.empty() ? 0 : 2) + DisplayWidth(part);
    if (!line.empty() && width > columns) continue;
    line += (line.empty() ? "" : "  ") + part;
  }
  return Cut(line, columns);
}

int64_t Epochs(const JobStatus& status) {
  return status.plan.has_value() ? status.plan->epochs() : 0;
}

std::vector<std::string> Measurements(const JobStatus& status) {
  const ProgressStatus& progress = status.progress;
  std::vector<std::string> parts;
  if (progress.loss.has_value()) parts.push_back("loss " + Format("%.4f", *progress.loss));
  const TestMetrics& test = progress.test;
  if (test.accuracy) parts.push_back("test " + Format("%.2f %%", 100 * *test.accuracy));
  if (test.top5_accuracy) parts.push_back("top-5 " + Format("%.2f %%", 100 * *test.top5_accuracy));
  if (test.mean_absolute_error) {
    parts.push_back("test MAE " + Format("%.4g", *test.mean_absolute_error));
  }
  if (progress.samples_per_second > 0) {
    parts.push_back(Format("%.0f samples/s", progress.samples_per_second));
  }
  if (progress.estimated_remaining_seconds.has_value() &&
      *progress.estimated_remaining_seconds > 0) {
    parts.push_back("ETA " + FormatShortDuration(*progress.estimated_remaining_seconds));
  }
  if (status.usage.cost > 0) {
    parts.push_back(WithCurrency(Format("%.6f", status.usage.cost), status.usage.currency));
  }
  return parts;
}

}  // namespace

size_t DisplayWidth(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u;
  }));
}

void ApplyEvent(const Json& event, RunView* view) {
  const std::string type = Text(event, "type");
  const std::string uid = Text(event, "uid");
  if (type == "function" && !uid.empty()) {
    FunctionView& function = view->functions[uid];
    if (function.name.empty()) function.name = Text(event, "group");
    function.state = Text(event, "state");
    function.detail = Text(event, "reason");
  } else if (type == "slice" && !uid.empty()) {
    FunctionView& function = view->functions[uid];
    function.name = Text(event, "role");
    const std::string outcome = Text(event, "outcome");
    if (function.state != "Gone") function.state = outcome == "Started" ? "Running" : outcome;
    function.detail = Text(event, "error");
  } else if (type == "event") {
    view->last_event = Text(event, "reason") + ": " + Text(event, "message");
  }
}

std::vector<std::string> RenderLive(const RunView& view, int columns, int rows) {
  const size_t width = static_cast<size_t>(std::max(columns, 1));
  const size_t height = static_cast<size_t>(std::max(rows, 1));
  const JobStatus& status = view.status;
  const ProgressStatus& progress = status.progress;
  std::vector<std::string> lines;
  std::vector<std::string> head = {view.name, status.phase.empty() ? "Pending" : status.phase};
  if (status.plan.has_value()) {
    head.push_back(Bar(progress.progress_percentage, width) +
                   Format(" %d %%", progress.progress_percentage));
    head.push_back(Format("epoch %lld/%lld", static_cast<long long>(progress.epoch),
                          static_cast<long long>(Epochs(status))));
    head.push_back(Format("iteration %lld/%lld", static_cast<long long>(progress.iteration),
                          static_cast<long long>(progress.iterations)));
  } else {
    head.push_back(Format("%.0f s", view.seconds));
  }
  lines.push_back(JoinFitting(head, width));
  const std::vector<std::string> measurements = Measurements(status);
  if (!measurements.empty()) lines.push_back(JoinFitting(measurements, width));

  std::vector<std::string> functions;
  for (const auto& [uid, function] : view.functions) {
    if (function.state == "Gone" && function.detail.empty()) continue;
    functions.push_back(
        Cut("  " + Format("%-12s %-9s ", function.name.c_str(), function.state.c_str()) +
                function.detail,
            width));
  }
  std::sort(functions.begin(), functions.end());
  for (const std::string& line : functions) {
    if (lines.size() + 1 >= height && lines.size() + 1 < functions.size() + 2) {
      lines.push_back(Cut(Format("  ... %zu functions in all", functions.size()), width));
      break;
    }
    lines.push_back(line);
  }
  if (lines.size() > height) lines.resize(height);
  if (lines.size() < height && !view.last_event.empty()) {
    lines.push_back(Cut(view.last_event, width));
  }
  return lines;
}

std::string RenderProgressLine(const RunView& view) {
  const JobStatus& status = view.status;
  const ProgressStatus& progress = status.progress;
  std::string line = Format(
      "%7.1f s  epoch %lld/%lld  iteration %lld/%lld", view.seconds,
      static_cast<long long>(progress.epoch), static_cast<long long>(Epochs(status)),
      static_cast<long long>(progress.iteration), static_cast<long long>(progress.iterations));
  for (const std::string& part : Measurements(status)) line += "  " + part;
  return line;
}

std::string RenderEventLine(const Json& event) {
  const std::string type = Text(event, "type");
  const std::string when = Format("%7.1f s  ", Number(event, "time"));
  if (type == "event") {
    const std::string condition = Text(event, "condition");
    // What the others say again.
    static constexpr std::string_view kSaidByOthers[] = {
        kConditionRunning, kConditionReady, kConditionSuccessCriteriaMet, kConditionFailureTarget,
        kConditionStalled};
    if (std::count(std::begin(kSaidByOthers), std::end(kSaidByOthers), condition) > 0) return "";
    const bool off = Text(event, "status") != "True" && condition != "Accepted" &&
                     condition != "Degraded" && condition != "Suspended";
    return off ? "" : when + Text(event, "reason") + ": " + Text(event, "message");
  }
  if (type == "evaluation") {
    return when + Format("epoch %.0f done: ", Number(event, "epoch") + 1) +
           MetricsOf(event).Brief();
  }
  if (type == "function" && Text(event, "state") == "Gone" && !Text(event, "reason").empty()) {
    return when + "function of " + Text(event, "group") + " is gone: " + Text(event, "reason");
  }
  if (type == "slice" && Text(event, "outcome") == "Failed") {
    return when + Text(event, "role") + " failed: " + Text(event, "error");
  }
  return "";
}

}  // namespace lambdadnn
