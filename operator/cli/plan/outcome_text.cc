// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/plan/outcome_text.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "common/base/statistics.h"
#include "common/base/text.h"
#include "common/plan/money.h"
#include "common/plan/prediction.h"
#include "operator/planner/wording.h"

namespace lambdadnn {
namespace {

constexpr int kBarColumns = 26;

[[gnu::format(printf, 1, 2)]] std::string Print(const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

std::string Repeat(const char* text, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) repeated += text;
  return repeated;
}

std::string Thousands(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<size_t>(i), ",");
  }
  return digits;
}

std::string Decimal(double value) {
  return value == std::floor(value) ? Thousands(static_cast<int64_t>(value)) : Print("%.1f", value);
}

std::string LayersOf(const AggregationPlan& plan) {
  std::vector<std::string> widths;
  for (const int width : plan.layers) widths.push_back(std::to_string(width));
  return "[" + Join(widths, ", ") + "]";
}

// Of a model that has one parameter server, and does not pay for it.
bool HasFreeServer(const PlanCandidate& candidate) {
  return candidate.aggregation.placement == Placement::kDedicated &&
         candidate.server_memory_mib == 0;
}

std::string ServersOf(const PlanCandidate& candidate) {
  if (candidate.aggregation.placement == Placement::kWorkers) return "among the functions";
  if (HasFreeServer(candidate)) return "beside the functions";
  return Print("%d x %s MiB", candidate.aggregation.server_functions(),
               Thousands(candidate.server_memory_mib).c_str());
}

std::string PlanLines(const PlanCandidate& candidate, const PlanningOutcome& outcome) {
  const Prediction& predicted = candidate.predicted;
  std::string text;
  text += Print("  functions    %-26s  servers     %s\n",
                Print("%d x %s MiB%s", candidate.functions, Thousands(candidate.memory_mib).c_str(),
                      candidate.gpu > 0 ? " and a GPU" : "")
                    .c_str(),
                ServersOf(candidate).c_str());
  std::string batch = Print("%s local, %d global", Decimal(candidate.local_batch_size).c_str(),
                            candidate.global_batch_size);
  if (candidate.aggregator_batch_size > 0) {
    batch = Print("%d, %s, %d global", candidate.aggregator_batch_size,
                  Decimal(candidate.local_batch_size).c_str(), candidate.global_batch_size);
  }
  text += Print("  batch        %-26s  iterations  %s\n", batch.c_str(),
                Decimal(candidate.iterations).c_str());
  std::string time = ShowSeconds(predicted.seconds);
  if (predicted.deviation > 0) {
    time += Print(" (p90 %s)", ShowSeconds(predicted.SecondsAt(NormalQuantile(0.9))).c_str());
  }
  text += Print("  time         %-26s  cost        %s\n", time.c_str(),
                ShowCost(candidate, outcome).c_str());
  text += "  aggregation  " + ShowAggregation(candidate) + "\n";
  if (candidate.sample_memory_mib > 0) {
    text += Print("  samples      streamed: %s of %s MiB are memory, the rest is read each epoch\n",
                  Thousands(candidate.sample_memory_mib).c_str(),
                  Thousands(std::llround(candidate.share_mib)).c_str());
  }
  return text;
}

// Where the time goes, one bar a phase.
std::string PhaseLines(const PlanCandidate& candidate) {
  const Prediction& predicted = candidate.predicted;
  std::string text = "\n  where the time goes\n";
  for (const TermKind& kind : kTermKinds) {
    const double seconds = predicted.TermSeconds(kind, candidate.iterations);
    if (seconds <= 0) continue;
    const double share = seconds / predicted.seconds;
    const int columns = static_cast<int>(std::lround(share * kBarColumns));
    const std::string bar = columns > 0 ? Repeat("█", columns) : "▏";
    const double deviation =
        predicted.DeviationOf(kind.term) * (kind.each_iteration ? candidate.iterations : 1);
    text += Print("    %-12s %12s", std::string(kind.label).c_str(), ShowSeconds(seconds).c_str()) +
            (deviation > 0 ? Print(" ± %-8s", ShowSeconds(deviation).c_str()) : "") +
            Print("  %5.1f %%  ", share * 100) + bar + "\n";
  }
  return text;
}

std::string RunnerUpLines(const PlanningOutcome& outcome) {
  if (outcome.runners_up.empty()) return "";
  std::string text = "\n  runners-up (best with another number of functions)\n";
  for (const PlanCandidate& candidate : outcome.runners_up) {
    text += Print("    %s  %12s  %10s  ", ShowFunctions(candidate).c_str(),
                  ShowSeconds(candidate.predicted.seconds).c_str(),
                  ShowCost(candidate, outcome).c_str());
    text += ShowAggregation(candidate) + "\n";
  }
  return text;
}

std::string BindingLines(const std::vector<Limit>& binding, bool feasible) {
  std::string text = "\n  binding limits\n";
  if (binding.empty()) text += "    nothing: no neighbouring limit would give a better plan\n";
  for (const Limit limit : binding) {
    text += Print("    %-24s  %s\n", std::string(LimitName(limit)).c_str(),
                  std::string(MeaningOf(limit, feasible)).c_str());
  }
  return text;
}

std::string CertificateLines(const PlanningOutcome& outcome) {
  const InfeasibilityCertificate& certificate = outcome.certificate;
  std::string text = WrapWords(ReasonOf(certificate));
  if (certificate.fastest) {
    const bool budget = certificate.kind == Infeasibility::kBudget;
    const bool both = certificate.kind == Infeasibility::kBoth;
    text += budget ? "\n  the cheapest plan\n\n"
            : both ? "\n  the fastest plan within the budget\n\n"
                   : "\n  the fastest plan\n\n";
    text += PlanLines(budget ? *certificate.cheapest : *certificate.fastest, outcome);
  }
  return text + BindingLines(certificate.binding, false);
}

std::string Counted(int64_t count, const char* what) {
  return Thousands(count) + " " + what + (count == 1 ? "" : "s");
}

// What the search did, and how good the plan is at least.
std::string SearchLines(const SearchSummary& search, double seconds) {
  std::string text = "\n" + WrapWords(Counted(search.evaluated, "prediction") + " evaluated in " +
                                      ShowSeconds(seconds) + ", of " +
                                      Counted(search.pairs, "pair") + " of functions and memory");
  if (search.pairs_left_out + search.candidates_left_out > 0) {
    text += "    left out, since they cannot be better: " + Counted(search.pairs_left_out, "pair") +
            ", " + Counted(search.candidates_left_out, "candidate") + "\n";
  }
  std::vector<std::string> refused;
  for (size_t i = 0; i < kObstacleCount; ++i) {
    if (search.refused[i] == 0) continue;
    refused.push_back(std::string(LimitName(static_cast<Limit>(i))) + " " +
                      Thousands(search.refused[i]));
  }
  if (!refused.empty()) text += "    candidates that cannot run: " + Join(refused, ", ") + "\n";
  if (search.gap && *search.gap > 0) {
    text += Print("    a plan may be up to %.1f %% better\n", 100 * *search.gap);
  } else if (search.gap) {
    text += "    no plan is better\n";
  }
  return text;
}

}  // namespace

std::string ShowSeconds(double seconds) {
  if (seconds < 0.01) return Print("%.1f ms", seconds * 1e3);
  if (seconds < 1) return Print("%.0f ms", seconds * 1e3);
  if (seconds < 119.95) return Print("%.1f s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 2 * 3600) {
    return Print("%lld min %02lld s", static_cast<long long>(whole / 60),
                 static_cast<long long>(whole % 60));
  }
  return Print("%lld h %02lld min", static_cast<long long>(whole / 3600),
               static_cast<long long>(whole % 3600 / 60));
}

std::string ShowMoney(double amount, std::string_view currency) {
  if (amount == 0) return WithCurrency("0", currency);
  if (amount >= 100) return WithCurrency(Print("%.0f", amount), currency);
  // Three significant digits, but always cents.
  return WithCurrency(Print("%.*f", PlacesOf(amount, 3, 2, 9), amount), currency);
}

std::string ShowCost(double cost, CostMeasure measure, std::string_view currency) {
  switch (measure) {
    case CostMeasure::kPrices:
      return ShowMoney(cost, currency);
    case CostMeasure::kCoreSeconds:
      return Print("%.4g core-s", cost);
    case CostMeasure::kGibSeconds:
      break;
  }
  return Print("%.4g GiB-s", cost);
}

std::string ShowCost(const PlanCandidate& candidate, const PlanningOutcome& outcome) {
  return ShowCost(ComparedCost(candidate, outcome.measure), outcome.measure, outcome.currency);
}

std::string ShowFunctions(const PlanCandidate& candidate) {
  return Print("%4d x %6s MiB", candidate.functions, Thousands(candidate.memory_mib).c_str());
}

std::string ShowAggregation(const PlanCandidate& candidate) {
  const AggregationPlan& plan = candidate.aggregation;
  if (HasFreeServer(candidate)) return "one parameter server";
  std::string text =
      LayersOf(plan) + Print(", %d shard%s", plan.shards, plan.shards > 1 ? "s" : "");
  if (plan.spread > 1) text += Print(", spread %d", plan.spread);
  if (plan.transport == TransportKind::kDirect) text += ", direct";
  return text;
}

std::string WrapWords(const std::string& sentence, size_t indent) {
  constexpr size_t kColumns = 78;
  const std::string margin(indent, ' ');
  std::string text;
  std::string line;
  for (const std::string& word : Split(sentence, ' ')) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > kColumns) {
      text += margin + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return text + margin + line + "\n";
}

std::string FormatOutcome(const std::string& title, const PlanningOutcome& outcome,
                          double search_seconds) {
  std::string text = title + "\n\n";
  if (!outcome.feasible) {
    text += CertificateLines(outcome);
  } else {
    if (outcome.best_effort) {
      text += WrapWords("best effort: " + ReasonOf(outcome.certificate)) +
              WrapWords("this is the fastest plan within the budget") + "\n";
    }
    text += PlanLines(outcome.chosen, outcome) + PhaseLines(outcome.chosen) +
            BindingLines(outcome.binding, true) + RunnerUpLines(outcome);
  }
  text += FormatParetoPlot(outcome);
  if (outcome.measure != CostMeasure::kPrices) {
    text += "\n" + WrapWords(std::string(CheapestMeans(outcome.measure)));
  }
  return text + SearchLines(outcome.search, search_seconds);
}

std::string FormatDeadlines(const std::string& title,
                            const std::vector<DeadlineOutcome>& outcomes) {
  std::string text = title + "\n\n";
  text += Print("  %12s  %-16s  %12s  %10s  %s\n", "deadline", "functions", "time", "cost",
                "aggregation");
  for (const DeadlineOutcome& entry : outcomes) {
    text += Print("  %12s  ", ShowSeconds(entry.deadline_seconds).c_str());
    if (!entry.outcome.feasible) {
      const InfeasibilityCertificate& certificate = entry.outcome.certificate;
      text += certificate.fastest ? "infeasible: the fastest plan takes " +
                                        ShowSeconds(certificate.fastest_seconds) + "\n"
                                  : "infeasible: no plan can run\n";
      continue;
    }
    const PlanCandidate& chosen = entry.outcome.chosen;
    text += Print("%s  %12s  %10s  ", ShowFunctions(chosen).c_str(),
                  ShowSeconds(chosen.predicted.seconds).c_str(),
                  ShowCost(chosen, entry.outcome).c_str()) +
            ShowAggregation(chosen) + "\n";
  }
  if (!outcomes.empty() && outcomes.front().outcome.measure != CostMeasure::kPrices) {
    text += "\n" + WrapWords(std::string(CheapestMeans(outcomes.front().outcome.measure)));
  }
  return text;
}

}  // namespace lambdadnn
