// SPDX-License-Identifier: Apache-2.0
// Counters, gauges and histograms in the text format that Prometheus reads (version 0.0.4).
//
// Names are "lambdadnn_<what>_<unit>", counters end in "_total". A metric lives as long as its
// registry; look it up once and keep the reference. Updates are lock-free and thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lambdadnn {

// Sorted by name, so that the same labels are the same metric.
using MetricLabels = std::map<std::string, std::string>;

class Counter {
 public:
  // `amount` >= 0.
  void Add(double amount = 1);
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double amount);
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  // Ascending upper bounds; +Inf is added.
  explicit Histogram(std::vector<double> bounds);
  void Observe(double value);

 private:
  friend class MetricsRegistry;
  const std::vector<double> bounds_;
  std::vector<std::atomic<int64_t>> counts_;  // not cumulative; the last is +Inf's
  std::atomic<double> sum_{0};
};

class MetricsRegistry {
 public:
  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // The same name and labels give the same metric again. A name that breaks Prometheus' rules, or
  // that is already of another type, is a bug (LDNN_CHECK).
  Counter& GetCounter(const std::string& name, const std::string& help,
                      const MetricLabels& labels = {});
  Gauge& GetGauge(const std::string& name, const std::string& help,
                  const MetricLabels& labels = {});
  Histogram& GetHistogram(const std::string& name, const std::string& help,
                          std::vector<double> bounds, const MetricLabels& labels = {});

  // Families by name, metrics by labels: the same values give the same text.
  std::string Text() const;
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Family;
  Family& FamilyOf(const std::string& name, const std::string& help, const char* type);
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Family>> families_;
};

// Parts of that text, for series that no registry holds. {a="x",b="y"}; "" for no labels.
std::string MetricLabelText(const MetricLabels& labels);
// The lines before a family's series. `type`: counter or gauge.
std::string MetricHeader(const std::string& name, const std::string& help, const std::string& type);
// `labels`: as MetricLabelText makes them.
std::string MetricLine(const std::string& name, const std::string& labels, double value);

// Resident set size of this process now, in bytes; 0 where /proc is missing.
int64_t ResidentBytes();

}  // namespace lambdadnn
