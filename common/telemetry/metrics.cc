// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "common/base/check.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

void AtomicAdd(std::atomic<double>& target, double amount) {
  target.fetch_add(amount, std::memory_order_relaxed);
}

bool IsMetricName(std::string_view name, bool colon_allowed) {
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [colon_allowed](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (c == ':' && colon_allowed);
  });
}

std::string Escape(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && quotes)
      out += "\\\"";
    else
      out.push_back(c);
  }
  return out;
}

// {a="x",b="y"}; `extra` is a last, already formatted pair.
std::string FormatLabels(const MetricLabels& labels, const std::string& extra = {}) {
  std::vector<std::string> pairs;
  for (const auto& [name, value] : labels) {
    pairs.push_back(name + "=\"" + Escape(value, true) + "\"");
  }
  if (!extra.empty()) pairs.push_back(extra);
  std::string text;
  if (pairs.empty()) return text;
  text += '{';
  text += Join(pairs, ",");
  text += '}';
  return text;
}

}  // namespace

struct MetricsRegistry::Family {
  std::string help;
  std::string type;
  std::map<MetricLabels, std::unique_ptr<Counter>> counters;
  std::map<MetricLabels, std::unique_ptr<Gauge>> gauges;
  std::map<MetricLabels, std::unique_ptr<Histogram>> histograms;
};

void Counter::Add(double amount) {
  LDNN_CHECK(amount >= 0, "a counter never falls");
  AtomicAdd(value_, amount);
}

void Gauge::Add(double amount) { AtomicAdd(value_, amount); }

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  LDNN_CHECK(std::is_sorted(bounds_.begin(), bounds_.end()), "histogram bounds must ascend");
}

void Histogram::Observe(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  counts_[static_cast<size_t>(bound - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  AtomicAdd(sum_, value);
}

MetricsRegistry::MetricsRegistry() = default;
MetricsRegistry::~MetricsRegistry() = default;

MetricsRegistry::Family& MetricsRegistry::FamilyOf(const std::string& name, const std::string& help,
                                                   const char* type) {
  LDNN_CHECK(IsMetricName(name, true), "not a Prometheus metric name: " + name);
  std::unique_ptr<Family>& family = families_[name];
  if (family == nullptr) {
    family = std::make_unique<Family>();
    family->help = help;
    family->type = type;
  }
  LDNN_CHECK(family->type == type, "metric " + name + " is already a " + family->type);
  return *family;
}

namespace {

template <typename Metric, typename... Arguments>
Metric& FindOrMake(std::map<MetricLabels, std::unique_ptr<Metric>>& metrics,
                   const MetricLabels& labels, Arguments&&... arguments) {
  for (const auto& [name, value] : labels) {
    LDNN_CHECK(IsMetricName(name, false), "not a Prometheus label name: " + name);
  }
  std::unique_ptr<Metric>& metric = metrics[labels];
  if (metric == nullptr) metric = std::make_unique<Metric>(std::forward<Arguments>(arguments)...);
  return *metric;
}

}  // namespace

Counter& MetricsRegistry::GetCounter(const std::string& name, const std::string& help,
                                     const MetricLabels& labels) {
  std::lock_guard lock(mutex_);
  return FindOrMake(FamilyOf(name, help, "counter").counters, labels);
}

Gauge& MetricsRegistry::GetGauge(const std::string& name, const std::string& help,
                                 const MetricLabels& labels) {
  std::lock_guard lock(mutex_);
  return FindOrMake(FamilyOf(name, help, "gauge").gauges, labels);
}

Histogram& MetricsRegistry::GetHistogram(const std::string& name, const std::string& help,
                                         std::vector<double> bounds, const MetricLabels& labels) {
  std::lock_guard lock(mutex_);
  return FindOrMake(FamilyOf(name, help, "histogram").histograms, labels, std::move(bounds));
}

std::string MetricsRegistry::Text() const {
  std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [name, family] : families_) {
    text += MetricHeader(name, family->help, family->type);
    for (const auto& [labels, counter] : family->counters) {
      text += MetricLine(name, FormatLabels(labels), counter->value());
    }
    for (const auto& [labels, gauge] : family->gauges) {
      text += MetricLine(name, FormatLabels(labels), gauge->value());
    }
    for (const auto& [labels, histogram] : family->histograms) {
      // Cumulative counts from one pass, so that +Inf equals _count even while values come in.
      double total = 0;
      for (size_t i = 0; i < histogram->counts_.size(); ++i) {
        total += static_cast<double>(histogram->counts_[i].load(std::memory_order_relaxed));
        const std::string bound =
            i < histogram->bounds_.size() ? FormatDouble(histogram->bounds_[i]) : "+Inf";
        text += MetricLine(name + "_bucket", FormatLabels(labels, "le=\"" + bound + "\""), total);
      }
      text += MetricLine(name + "_sum", FormatLabels(labels), histogram->sum_.load());
      text += MetricLine(name + "_count", FormatLabels(labels), total);
    }
  }
  return text;
}

std::string MetricLabelText(const MetricLabels& labels) { return FormatLabels(labels); }

std::string MetricHeader(const std::string& name, const std::string& help,
                         const std::string& type) {
  return "# HELP " + name + " " + Escape(help, false) + "\n# TYPE " + name + " " + type + "\n";
}

std::string MetricLine(const std::string& name, const std::string& labels, double value) {
  return name + labels + " " + FormatDouble(value) + "\n";
}

int64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long long total_pages = 0;
  long long resident_pages = 0;
  const int fields = std::fscanf(file, "%lld %lld", &total_pages, &resident_pages);
  std::fclose(file);
  return fields == 2 ? resident_pages * ::sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace lambdadnn
