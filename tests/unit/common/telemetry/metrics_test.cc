// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <thread>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

// A strict reader of the text format: samples by "name{labels}", nullopt when the text breaks a
// rule (HELP and TYPE before samples, no family twice, numbers everywhere, newline at the end).
std::optional<std::map<std::string, double>> ParseMetrics(const std::string& text) {
  std::map<std::string, double> samples;
  std::set<std::string> families;
  std::string family;
  std::string type;
  if (!text.empty() && text.back() != '\n') return std::nullopt;
  for (const std::string& line :
       Split(text.substr(0, text.size() - (text.empty() ? 0 : 1)), '\n')) {
    const std::vector<std::string> words = Split(line, ' ');
    if (line.starts_with("# HELP ")) {
      family = words[2];
      type.clear();
      if (!families.insert(family).second) return std::nullopt;
    } else if (line.starts_with("# TYPE ")) {
      if (words.size() != 4 || words[2] != family) return std::nullopt;
      type = words[3];
    } else {
      const size_t space = line.rfind(' ');
      if (space == std::string::npos || type.empty() || !line.starts_with(family)) {
        return std::nullopt;
      }
      const std::optional<double> value = ParseDouble(line.substr(space + 1));
      if (!value || !samples.emplace(line.substr(0, space), *value).second) return std::nullopt;
    }
  }
  return samples;
}

TEST(MetricsRegistry, TextIsWhatPrometheusReads) {
  MetricsRegistry registry;
  registry.GetCounter("requests_total", "Requests.", {{"code", "200"}}).Add(3);
  registry.GetCounter("requests_total", "Requests.", {{"code", "500"}}).Add();
  registry.GetGauge("memory_bytes", "Two\nlines \\.").Set(1.5e9);
  Histogram& seconds = registry.GetHistogram("wait_seconds", "Wait.", {0.1, 1}, {{"a", "b"}});
  for (const double value : {0.05, 0.1, 0.5, 2.0}) seconds.Observe(value);
  const auto samples = ParseMetrics(registry.Text());
  ASSERT_TRUE(samples) << registry.Text();
  const std::map<std::string, double> expected = {{"requests_total{code=\"200\"}", 3},
                                                  {"requests_total{code=\"500\"}", 1},
                                                  {"memory_bytes", 1.5e9},
                                                  {"wait_seconds_bucket{a=\"b\",le=\"0.1\"}", 2},
                                                  {"wait_seconds_bucket{a=\"b\",le=\"1\"}", 3},
                                                  {"wait_seconds_bucket{a=\"b\",le=\"+Inf\"}", 4},
                                                  {"wait_seconds_sum{a=\"b\"}", 2.65},
                                                  {"wait_seconds_count{a=\"b\"}", 4}};
  EXPECT_EQ(samples->size(), expected.size());
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(samples->contains(name)) << name;
    EXPECT_DOUBLE_EQ(samples->at(name), value) << name;
  }
}

TEST(MetricsRegistry, EmptyIsEmpty) { EXPECT_EQ(MetricsRegistry().Text(), ""); }

TEST(MetricsRegistry, EscapesLabelValues) {
  MetricsRegistry registry;
  registry.GetGauge("g", "h", {{"label", "a\"b\\c\nd"}}).Set(1);
  EXPECT_NE(registry.Text().find("g{label=\"a\\\"b\\\\c\\nd\"} 1\n"), std::string::npos);
}

TEST(MetricsRegistry, GivesTheSameMetricAgain) {
  MetricsRegistry registry;
  Counter& counter = registry.GetCounter("c_total", "h", {{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(&counter, &registry.GetCounter("c_total", "h", {{"b", "2"}, {"a", "1"}}));
  EXPECT_NE(&counter, &registry.GetCounter("c_total", "h"));
}

TEST(MetricsRegistry, CountsFromManyThreads) {
  MetricsRegistry registry;
  constexpr int kThreads = 4;
  constexpr int kAdds = 10000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&registry] {
      for (int j = 0; j < kAdds; ++j) registry.GetCounter("c_total", "h").Add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registry.GetCounter("c_total", "h").value(), kThreads * kAdds);
}

TEST(MetricsRegistryDeathTest, RefusesNamesAndTypesThatClash) {
  MetricsRegistry registry;
  registry.GetGauge("g", "h");
  EXPECT_DEATH(registry.GetCounter("g", "h"), "already a gauge");
  EXPECT_DEATH(registry.GetGauge("1g", "h"), "1g");
  EXPECT_DEATH(registry.GetGauge("x", "h", {{"a-b", "c"}}), "a-b");
}

TEST(ResidentBytes, IsPlausible) {
  EXPECT_GT(ResidentBytes(), 1'000'000);
  EXPECT_LT(ResidentBytes(), 10'000'000'000);
}

}  // namespace
}  // namespace lambdadnn
