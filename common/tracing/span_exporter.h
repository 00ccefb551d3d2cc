// SPDX-License-Identifier: Apache-2.0
// Sends spans to a collector by OTLP/HTTP, best effort: Export never blocks and never fails. Spans
// wait in a bounded queue, a task of its own sends them in batches, repeats what the specification
// calls retryable (429, 502, 503, 504, no answer) with growing waits or those that Retry-After
// names, and drops a batch that the collector refuses or has not taken for a minute.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/http/http_transport.h"
#include "common/telemetry/metrics.h"
#include "common/tracing/otlp_json.h"
#include "common/tracing/otlp_settings.h"
#include "common/tracing/span.h"

namespace lambdadnn {

class SpanExporter {
 public:
  struct Options {
    size_t queue_limit = 8192;  // spans; one has about a KiB
    size_t batch_limit = 512;
    double gather_seconds = 2;  // before a batch that is not full is sent
    double first_retry_seconds = 1;
    double most_retry_seconds = 30;
    double give_up_seconds = 60;  // after the first attempt with a batch
    double flush_seconds = 3;     // the longest wait of the destructor, for what is queued
  };

  // All outlive this. Null `metrics` = nothing is counted.
  SpanExporter(Runtime& runtime, HttpTransport& transport, OtlpSettings settings, SpanScope scope,
               MetricsRegistry* metrics)
      : SpanExporter(runtime, transport, std::move(settings), std::move(scope), metrics,
                     Options()) {}
  SpanExporter(Runtime& runtime, HttpTransport& transport, OtlpSettings settings, SpanScope scope,
               MetricsRegistry* metrics, Options options);
  // Sends what is queued, one attempt a batch, and drops the rest.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Thread-safe. Of what does not fit into the queue, all is dropped.
  void Export(std::vector<Span> spans);

  struct Counts {
    int64_t exported = 0;
    int64_t dropped = 0;
  };
  Counts counts() const;

 private:
  // Why spans are dropped: a label of the metric.
  enum class Drop { kQueueFull, kRefused, kGaveUp, kStopped };
  // How an attempt ended.
  struct Attempt {
    Status status;  // kUnavailable: it may be repeated
    std::optional<double> retry_after_seconds;
    PartialSuccess partial;
  };

  void Run();
  // Empty when there is nothing more and the process ends.
  std::vector<Span> NextBatch();
  void SendBatch(const std::vector<Span>& batch);
  Attempt SendOnce(const std::string& body);
  // False when the process ends.
  bool SleepUnlessStopped(double seconds);
  void CountDropped(Drop why, size_t spans);
  void CountExported(size_t spans);
  void Tell(const Status& outcome);

  Runtime& runtime_;
  HttpTransport& transport_;
  const OtlpSettings settings_;
  const SpanScope scope_;
  MetricsRegistry* const metrics_;
  const Options options_;
  const std::unique_ptr<Monitor> monitor_;
  const std::shared_ptr<HttpCancellation> cancellation_ = std::make_shared<HttpCancellation>();
  std::deque<Span> queue_;  // with the monitor
  bool stopping_ = false;   // with the monitor
  bool ended_ = false;      // with the monitor
  Counts counts_;           // with the monitor
  bool failing_ = false;    // of the task: the last batch did not arrive
  std::unique_ptr<Task> task_;
};

}  // namespace lambdadnn
