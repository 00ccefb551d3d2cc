// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/report/report_html.h"

#include <algorithm>
#include <cmath>

#include "common/base/markup.h"
#include "common/json/dump_json.h"
#include "operator/cli/report/report_values.h"

namespace lambdadnn {
namespace {

// Colours differ in lightness as well as in hue, so that they stay apart for every reader.
constexpr const char* kStyle = R"css(
:root{--bg:#fbfbfa;--card:#fff;--ink:#1c2024;--soft:#60646c;--line:#e3e4e8;
--c1:#2463c5;--c2:#e39b2d;--c3:#1f8a70;--c4:#9aa3ad;--mark:#c8323c;--good:#1f7a4d;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--bg:#15171a;--card:#1d2024;--ink:#e9eaec;--soft:#a3a8b0;
--line:#33373d;--c1:#79a8f5;--c2:#f2b55c;--c3:#58c7a8;--c4:#6f7782;--mark:#ff7a80;--good:#66cf9a;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:24px;margin:0}h2{font-size:16px;margin:0 0 8px}
.sub{color:var(--soft);margin:2px 0 20px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:12px;margin-bottom:16px}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.tile .name{color:var(--soft);font-size:13px}.tile .value{font-size:20px;overflow-wrap:anywhere;font-weight:600;font-variant-numeric:tabular-nums}
.tile .note{color:var(--soft);font-size:13px}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:16px}
.wide{grid-column:1/-1}
.scroll{overflow-x:auto}
svg{display:block;width:100%;height:auto}.scroll svg{min-width:760px}
svg text{fill:var(--ink);font:12px system-ui,sans-serif}
svg .tick{fill:var(--soft);font-size:11px}svg .label{font-size:12px}svg .figure-title{font-size:13px;font-weight:600}
svg .grid{stroke:var(--line)}svg .axis{stroke:var(--soft)}
.line{fill:none;stroke-width:1.8}.series-1{stroke:var(--c1)}.series-2{stroke:var(--c2)}.series-3{stroke:var(--c3)}
.fill-series-1{fill:var(--c1)}.fill-series-2{fill:var(--c2)}.fill-series-3{fill:var(--c3)}.fill-series-4{fill:var(--c4)}
.fill-mark{fill:var(--mark)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:4px 8px;border-bottom:1px solid var(--line);white-space:nowrap}
.facts td+td{white-space:normal;overflow-wrap:anywhere}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:500}
.tag{display:inline-block;border:1px solid var(--line);border-radius:99px;padding:1px 9px;margin:0 4px 4px 0;font-size:13px}
.good{color:var(--good)}.bad{color:var(--bad)}
.key{color:var(--soft);font-size:13px;margin-top:6px}.key i{display:inline-block;width:11px;height:11px;border-radius:2px;margin:0 4px 0 12px;vertical-align:-1px}
)css";

std::string Tile(const std::string& name, const std::string& value, const std::string& note) {
  return "<div class=\"tile\"><div class=\"name\">" + EscapeMarkup(name) +
         "</div><div class=\"value\">" + EscapeMarkup(value) + "</div><div class=\"note\">" +
         EscapeMarkup(note) + "</div></div>";
}

// A figure in its card, or a sentence where there is nothing to draw.
std::string Card(const std::string& content, const std::string& missing, bool wide = false) {
  return std::string("<section class=\"card") + (wide ? " wide" : "") + "\">" +
         (content.empty() ? "<p class=\"sub\">" + EscapeMarkup(missing) + "</p>" : content) +
         "</section>";
}

std::string Tiles(const Json& report) {
  const auto pair = [&](const std::string& name, const Compared& compared, const auto& format,
                        std::optional<double> p90 = std::nullopt) {
    const auto& [predicted, actual] = compared;
    return Tile(name, actual ? format(*actual) : "-",
                "predicted " + (predicted ? format(*predicted) : "-") +
                    (p90 ? " (p90 " + format(*p90) + ")" : "") + ", error " +
                    FormatError(predicted, actual));
  };
  std::string tiles = pair("Time", TimeOf(report), FormatSeconds, P90SecondsOf(report)) +
                      pair("Cost", CostOf(report), CostFormat(report));
  if (const auto accuracy = NumberAt(report, "metrics.testAccuracy")) {
    tiles +=
        Tile("Test accuracy", FormatNumber(100 * *accuracy, 4) + " %",
             "test loss " + FormatNumber(NumberAt(report, "metrics.testLoss").value_or(NAN), 3));
  }
  if (const auto top5 = NumberAt(report, "metrics.testTop5Accuracy")) {
    tiles += Tile("Top-5 accuracy", FormatNumber(100 * *top5, 4) + " %", "on the test set");
  }
  if (const auto error = NumberAt(report, "metrics.testMeanAbsoluteError")) {
    tiles +=
        Tile("Mean absolute error", FormatNumber(*error, 4),
             "test loss " + FormatNumber(NumberAt(report, "metrics.testLoss").value_or(NAN), 3));
  }
  if (const auto best = NumberAt(report, "model.best.value")) {
    tiles += Tile("Best model", TextAt(report, "model.best.metric") + " " + FormatNumber(*best, 4),
                  "after iteration " + TextAt(report, "model.best.iteration"));
  }
  tiles += Tile("Functions",
                FormatNumber(NumberAt(report, "plan.functions").value_or(0)) + " × " +
                    TextAt(report, "plan.memory"),
                "shards " + TextAt(report, "plan.aggregation.shards") + ", layers " +
                    TextAt(report, "plan.aggregation.layers"));
  if (const std::string exchange = DescribeExchange(report); !exchange.empty()) {
    tiles += Tile("Exchange", TextAt(report, "plan.aggregation.transport"), exchange);
  }
  tiles += Tile("Slices", TextAt(report, "slices"), "restarts " + TextAt(report, "restarts"));
  const std::string before = DescribeBeforePlan(report);
  return (before.empty() ? "" : "<p class=\"sub\">" + EscapeMarkup(before) + "</p>") +
         "<div class=\"tiles\">" + tiles + "</div>";
}

std::string LossChart(const Json& report) {
  LineChart chart{"Training loss", "iteration", "loss", {{"loss", "series-1", {}}}, {}, {}};
  for (const Json& point : ListAt(report, "curves.iterations")) {
    const auto loss = NumberAt(point, "loss");
    if (!loss || !std::isfinite(*loss)) continue;
    chart.series[0].points.emplace_back(NumberAt(point, "iteration").value_or(0), *loss);
  }
  return RenderLineChart(chart);
}

// Accuracy where there is one, else the mean absolute error.
std::string TestChart(const Json& report) {
  LineSeries accuracy{"accuracy", "series-3", {}, true};
  LineSeries top5{"top-5", "series-1", {}, true};
  LineSeries error{"error", "series-3", {}, true};
  for (const Json& point : ListAt(report, "curves.evaluations")) {
    const auto add = [&](LineSeries* series, const char* field, double factor) {
      const auto value = NumberAt(point, field);
      if (!value || !std::isfinite(*value)) return;
      // Epochs are counted from zero inside, and from one for people.
      series->points.emplace_back(NumberAt(point, "epoch").value_or(0) + 1, factor * *value);
    };
    add(&accuracy, "accuracy", 100);
    add(&top5, "top5Accuracy", 100);
    add(&error, "meanAbsoluteError", 1);
  }
  if (accuracy.points.empty()) {
    return RenderLineChart(
        {"Mean absolute error of the test set", "epoch", "error", {error}, {}, {}});
  }
  std::vector<LineSeries> series = {accuracy};
  if (!top5.points.empty()) series.push_back(top5);
  return RenderLineChart({"Test accuracy", "epoch", "per cent", series, {}, {}});
}

// How long the whole job was expected to take: by each plan while it was in force, and by what was
// known at the time.
std::string ExpectedTimeChart(const Json& report) {
  LineSeries estimate{"estimated", "series-2", {}};
  for (const Json& point : ListAt(report, "curves.estimates")) {
    const auto time = NumberAt(point, "time");
    const auto seconds = NumberAt(point, "seconds");
    if (!time || !seconds) continue;
    estimate.points.emplace_back(*time, *seconds);
  }
  if (estimate.points.empty()) return "";
  LineSeries predicted{"predicted", "series-1", {}};
  LineSeries high{"p90", "series-3", {}};
  const Json& plans = ListAt(report, "plans");
  for (size_t i = 0; i < plans.size(); ++i) {
    const auto predicted_from = NumberAt(plans[i], "predictedFrom.seconds");
    const auto begin = predicted_from ? predicted_from : NumberAt(plans[i], "atSeconds");
    const auto end = i + 1 < plans.size() ? NumberAt(plans[i + 1], "atSeconds")
                                          : NumberAt(report, "actual.seconds");
    const auto seconds = NumberAt(plans[i], "predicted.seconds");
    if (!begin || !end || !seconds) continue;
    predicted.points.emplace_back(*begin, *seconds);
    predicted.points.emplace_back(*end, *seconds);
    // Only the plan in force has its deviation in the report.
    const auto p90 = NumberAt(report, "plan.predicted.p90Seconds");
    if (!p90 || i + 1 < plans.size()) continue;
    high.points.emplace_back(*begin, *p90);
    high.points.emplace_back(*end, *p90);
  }
  LineChart chart{"Expected time of the whole job",
                  "seconds of the job",
                  "seconds",
                  {predicted, estimate},
                  {},
                  {}};
  if (!high.points.empty()) chart.series.push_back(high);
  return RenderLineChart(chart);
}

std::string Timeline(const Json& report) {
  std::vector<TimelineRow> rows;
  for (const Json& function : ListAt(report, "timeline")) {
    TimelineRow row;
    row.name = TextAt(function, "role");
    if (row.name.empty()) row.name = TextAt(function, "group");
    const double created = NumberAt(function, "created").value_or(0);
    const auto ready = NumberAt(function, "ready");
    const auto gone = NumberAt(function, "gone");
    if (ready) {
      row.intervals.push_back(
          {created, *ready, "fill-series-2", "cold start: " + FormatSeconds(*ready - created)});
      if (gone) row.intervals.push_back({*ready, *gone, "fill-series-4", "idle"});
    }
    for (const Json& slice : ListAt(function, "slices")) {
      const double begin = NumberAt(slice, "start").value_or(0);
      row.intervals.push_back(
          {begin, NumberAt(slice, "end").value_or(begin), "fill-series-1",
           TextAt(slice, "role") + " from iteration " + TextAt(slice, "firstIteration") + " to " +
               TextAt(slice, "nextIteration") + ": " + TextAt(slice, "outcome")});
    }
    const std::string reason = TextAt(function, "reason");
    if (gone && !reason.empty() && reason != "Deleted") row.marks.emplace_back(*gone, reason);
    rows.push_back(std::move(row));
  }
  const std::string svg = RenderTimeline("Functions over time", rows);
  if (svg.empty()) return svg;
  return "<div class=\"scroll\">" + svg +
         "</div><div class=\"key\"><i style=\"background:var(--c2)\"></i>cold start<i "
         "style=\"background:var(--c1)\"></i>slice<i style=\"background:var(--c4)\"></i>idle<i "
         "style=\"background:var(--mark)\"></i>lost</div>";
}

std::string Pareto(const Json& report) {
  std::vector<ScatterPoint> points;
  const Json& list = ListAt(report, "pareto.points");
  const auto chosen = NumberAt(report, "pareto.chosen");
  const std::string currency = CostFormat(report).currency();
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& point = list[i];
    points.push_back({NumberAt(point, "seconds").value_or(0), NumberAt(point, "cost").value_or(0),
                      TextAt(point, "functions") + " × " + TextAt(point, "memory"),
                      chosen && static_cast<size_t>(*chosen) == i});
  }
  return RenderScatter("Time against cost: the best plans", "predicted seconds",
                       "predicted cost, " + (currency.empty() ? "$" : currency), points);
}

std::string Requests(const Json& report) {
  const double iterations = NumberAt(report, "requests.iterations").value_or(0);
  const std::string live = TextAt(report, "store.liveObjectsMax");
  std::string rows;
  for (const auto& [name, key] : {std::pair{"PUT", "puts"},
                                  {"GET", "gets"},
                                  {"DELETE", "deletes"},
                                  {"bytes stored", "bytesIn"},
                                  {"bytes read", "bytesOut"}}) {
    const bool bytes = std::string_view(key).starts_with("bytes");
    const auto show = [&](std::optional<double> value) {
      if (!value) return std::string("-");
      return bytes ? FormatBytes(*value) : FormatNumber(*value, 7);
    };
    const auto formula = NumberAt(report, std::string("requests.predictedPerIteration.") + key);
    const auto total = NumberAt(report, std::string("requests.actual.") + key);
    rows += std::string("<tr><td>") + name + "</td><td>" + show(formula) + "</td><td>" +
            show(formula ? std::optional(*formula * iterations) : std::nullopt) + "</td><td>" +
            show(total) + "</td></tr>";
  }
  return "<h2>Store requests against the formulas</h2><div class=\"scroll\"><table><tr><th></th>"
         "<th>an iteration</th><th>" +
         FormatNumber(iterations, 7) + " iterations</th><th>counted</th></tr>" + rows +
         "</table></div><p class=\"key\">The first two columns are the formulas; counted includes "
         "checkpoints, data and records. Misses " +
         EscapeMarkup(TextAt(report, "store.misses")) + ", retries " +
         EscapeMarkup(TextAt(report, "store.retries")) +
         (live.empty() ? "" : ", most live objects " + EscapeMarkup(live)) + ".</p>";
}

// What the functions of both roles spent in each phase.
std::string Phases(const Json& report) {
  std::string rows;
  for (const auto& [role, name] :
       {std::pair{"workers", "worker"}, {"servers", "parameter server"}}) {
    for (const PhaseRow& row : PhaseRowsOf(report, role)) {
      rows += std::string("<tr><td>") + name + ": " + row.phase + "</td><td>" +
              FormatSeconds(row.wall_seconds) + "</td><td>" + FormatSeconds(row.cpu_seconds) +
              "</td><td>" + FormatSeconds(row.throttled_seconds) + "</td><td>" +
              FormatNumber(row.requests, 7) + "</td></tr>";
    }
  }
  if (rows.empty()) return "";
  const std::string latencies = DescribeLatencies(report);
  return "<h2>What functions spent, by phase</h2><div class=\"scroll\"><table><tr><th></th>"
         "<th>wall</th><th>CPU</th><th>throttled</th><th>requests</th></tr>" +
         rows +
         "</table></div><p class=\"key\">Seconds are means over the functions of a role, requests "
         "those of all. CPU is that of the whole process, transfers in the background included." +
         (latencies.empty() ? "" : " A request took in the mean: " + latencies + ".") + "</p>";
}

// The plans of a job that changed its objective on the way.
std::string Revisions(const Json& report) {
  const Json& plans = ListAt(report, "plans");
  if (plans.size() < 2) return "";
  std::string rows;
  for (const Json& plan : plans) {
    const auto show = [&](const char* path, const auto& format) {
      const auto value = NumberAt(plan, path);
      return "<td>" + (value ? EscapeMarkup(format(*value)) : "-") + "</td>";
    };
    rows += "<tr><td>" + EscapeMarkup(TextAt(plan, "revision")) + "</td><td>" +
            EscapeMarkup(TextAt(plan, "firstIteration")) + "</td><td>" +
            EscapeMarkup(TextAt(plan, "functions")) + " × " + EscapeMarkup(TextAt(plan, "memory")) +
            "</td>" + show("predicted.seconds", FormatSeconds) +
            show("predicted.cost", CostFormat(report)) + show("actual.seconds", FormatSeconds) +
            show("actual.cost", CostFormat(report)) + "</tr>";
  }
  return "<h2>Plan revisions</h2><div class=\"scroll\"><table><tr><th></th><th>from iteration</th>"
         "<th>functions</th><th>whole job, predicted</th><th></th><th>under this plan</th><th></th>"
         "</tr>" +
         rows + "</table></div>";
}

std::string PlanCard(const Json& report) {
  std::string binding;
  for (const Json& name : ListAt(report, "binding")) {
    binding += "<span class=\"tag\">" +
               EscapeMarkup(name.is_string() ? name.get<std::string>() : DumpJson(name)) +
               "</span>";
  }
  std::string rows;
  for (const auto& [name, path] : {std::pair{"workers", "plan.functions"},
                                   {"memory of a worker", "plan.memory"},
                                   {"memory of a server", "plan.serverMemory"},
                                   {"global batch", "plan.globalBatchSize"},
                                   {"iterations", "plan.iterations"},
                                   {"shards", "plan.aggregation.shards"},
                                   {"layers", "plan.aggregation.layers"},
                                   {"spread", "plan.aggregation.spread"},
                                   {"checkpoint every", "plan.checkpointEvery"},
                                   {"threads", "plan.threads"},
                                   {"instruction set", "plan.isa"},
                                   {"LibTorch", "plan.libtorch"},
                                   {"isolation", "isolation"},
                                   {"model digest", "model.digest"},
                                   {"parameters", "model.parameters"}}) {
    const std::string value = TextAt(report, path);
    if (value.empty()) continue;
    rows += std::string("<tr><td>") + name + "</td><td>" + EscapeMarkup(value) + "</td></tr>";
  }
  for (const auto& [role, name] :
       {std::pair{"workers", "a worker used"}, {"servers", "a server used"}}) {
    const Compared memory = MemoryOf(report, role);
    if (!memory.actual) continue;
    rows += std::string("<tr><td>") + name + "</td><td>" + FormatMemory(*memory.actual) +
            (memory.predicted ? ", " + FormatMemory(*memory.predicted) + " predicted" : "") +
            "</td></tr>";
  }
  return "<h2>The plan and its binding limits</h2><p>" +
         (binding.empty() ? "no limit binds" : binding) + "</p><table class=\"facts\">" + rows +
         "</table>" + Revisions(report);
}

}  // namespace

std::string RenderReportHtml(const Json& report) {
  const std::string name = TextAt(report, "job.name");
  std::string outcome = TextAt(report, "outcome");
  if (outcome.empty()) outcome = "Complete";
  const std::string message = TextAt(report, "message");
  std::string html =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light "
      "dark\"><link rel=\"icon\" href=\"data:,\"><title>" +
      EscapeMarkup(name) + " - run report</title><style>" + kStyle +
      "</style></head><body><main><h1>" + EscapeMarkup(name) +
      "</h1><p class=\"sub\"><span class=\"" + (outcome == "Complete" ? "good" : "bad") + "\">" +
      EscapeMarkup(outcome) + "</span> " + EscapeMarkup(message) + "</p>";
  html += Tiles(report) + "<div class=\"grid\">";
  html += Card(LossChart(report), "No iteration was completed.");
  html += Card(TestChart(report), "No test set was evaluated.");
  html += Card(RenderPhaseBars("Predicted and actual time by phase, seconds", PhasesOf(report)),
               "No phase was measured.");
  html += Card(Pareto(report), "The planner compared no other plans.");
  html += Card(ExpectedTimeChart(report), "Nothing was estimated while the job ran.");
  html += Card(Timeline(report), "No function was started.", true);
  html += Card(Phases(report), "No function told what it spent.", true);
  html += Card(Requests(report), "");
  html += Card(PlanCard(report), "");
  return html + "</div></main></body></html>\n";
}

}  // namespace lambdadnn
