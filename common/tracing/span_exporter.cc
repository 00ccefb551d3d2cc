// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/span_exporter.h"

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/text.h"
#include "common/http/http_date.h"
#include "common/json/dump_json.h"
#include "common/telemetry/log.h"

namespace lambdadnn {
namespace {

constexpr uint64_t kMaxAnswerBytes = uint64_t{64} << 10;

// The specification's list; everything else is final.
bool IsRetryable(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

std::optional<double> RetryAfterOf(const HttpFields& fields, WallTime now) {
  const std::string_view text = Trim(FindField(fields, "Retry-After"));
  if (text.empty()) return std::nullopt;
  if (const auto seconds = ParseInteger(text); seconds.has_value()) {
    return *seconds < 0 ? std::nullopt : std::optional<double>(static_cast<double>(*seconds));
  }
  WallTime date;
  if (!ParseHttpDate(text, &date)) return std::nullopt;
  return std::max(0.0, ToSeconds(date - now));
}

}  // namespace

SpanExporter::SpanExporter(Runtime& runtime, HttpTransport& transport, OtlpSettings settings,
                           SpanScope scope, MetricsRegistry* metrics, Options options)
    : runtime_(runtime),
      transport_(transport),
      settings_(std::move(settings)),
      scope_(std::move(scope)),
      metrics_(metrics),
      options_(options),
      monitor_(runtime.executor.NewMonitor()) {
  task_ = runtime.executor.Spawn("spans", [this] { Run(); });
}

SpanExporter::~SpanExporter() {
  {
    const Instant until = runtime_.clock.Now() + FromSeconds(options_.flush_seconds);
    const MonitorLock lock(*monitor_);
    stopping_ = true;
    monitor_->NotifyAll();
    while (!ended_ && runtime_.clock.Now() < until) monitor_->WaitUntil(until);
  }
  cancellation_->Cancel();
  task_->Join();
}

void SpanExporter::Export(std::vector<Span> spans) {
  if (spans.empty()) return;
  {
    const MonitorLock lock(*monitor_);
    if (queue_.size() + spans.size() <= options_.queue_limit) {
      std::move(spans.begin(), spans.end(), std::back_inserter(queue_));
      monitor_->NotifyAll();
      return;
    }
  }
  CountDropped(Drop::kQueueFull, spans.size());
}

SpanExporter::Counts SpanExporter::counts() const {
  const MonitorLock lock(*monitor_);
  return counts_;
}

void SpanExporter::CountDropped(Drop why, size_t spans) {
  static constexpr const char* kNames[] = {"queue_full", "refused", "gave_up", "stopped"};
  if (spans == 0) return;
  {
    const MonitorLock lock(*monitor_);
    counts_.dropped += static_cast<int64_t>(spans);
  }
  if (metrics_ == nullptr) return;
  metrics_
      ->GetCounter("lambdadnn_spans_dropped_total", "Spans that did not reach the collector.",
                   {{"reason", kNames[static_cast<int>(why)]}})
      .Add(static_cast<double>(spans));
}

void SpanExporter::CountExported(size_t spans) {
  {
    const MonitorLock lock(*monitor_);
    counts_.exported += static_cast<int64_t>(spans);
  }
  if (metrics_ == nullptr) return;
  metrics_->GetCounter("lambdadnn_spans_exported_total", "Spans that the collector took.")
      .Add(static_cast<double>(spans));
}

void SpanExporter::Run() {
  for (;;) {
    const std::vector<Span> batch = NextBatch();
    if (batch.empty()) break;
    SendBatch(batch);
  }
  const MonitorLock lock(*monitor_);
  ended_ = true;
  monitor_->NotifyAll();
}

std::vector<Span> SpanExporter::NextBatch() {
  const MonitorLock lock(*monitor_);
  while (queue_.empty() && !stopping_) monitor_->Wait();
  const Instant until = runtime_.clock.Now() + FromSeconds(options_.gather_seconds);
  while (queue_.size() < options_.batch_limit && !stopping_ && runtime_.clock.Now() < until) {
    monitor_->WaitUntil(until);
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(queue_.size(), options_.batch_limit));
  std::vector<Span> batch(std::make_move_iterator(queue_.begin()),
                          std::make_move_iterator(queue_.begin() + count));
  queue_.erase(queue_.begin(), queue_.begin() + count);
  return batch;
}

bool SpanExporter::SleepUnlessStopped(double seconds) {
  const Instant until = runtime_.clock.Now() + FromSeconds(seconds);
  const MonitorLock lock(*monitor_);
  while (!stopping_ && runtime_.clock.Now() < until) monitor_->WaitUntil(until);
  return !stopping_;
}

SpanExporter::Attempt SpanExporter::SendOnce(const std::string& body) {
  HttpRequest request;
  request.method = "POST";
  request.url = settings_.url;
  request.fields = settings_.headers;
  request.fields.emplace_back("Content-Type", "application/json");
  request.body = {AsBytes(body)};
  request.max_response_bytes = kMaxAnswerBytes;
  request.max_error_bytes = kMaxAnswerBytes;
  request.total_seconds = settings_.timeout_seconds;
  request.cancellation = cancellation_;
  const Result<HttpResponse> response = transport_.Send(request);
  if (!response.ok()) return {response.status(), {}, {}};
  if (response->status >= 200 && response->status < 300) {
    return {OkStatus(), {}, DecodePartialSuccess(AsText(response->body))};
  }
  const std::string said = "the collector answered " + std::to_string(response->status);
  if (!IsRetryable(response->status)) return {FailedPreconditionError(said), {}, {}};
  return {UnavailableError(said), RetryAfterOf(response->fields, runtime_.clock.Wall()), {}};
}

void SpanExporter::SendBatch(const std::vector<Span>& batch) {
  const std::string body = DumpJson(EncodeSpans(settings_.resource, scope_, batch));
  const Instant give_up = runtime_.clock.Now() + FromSeconds(options_.give_up_seconds);
  for (double back_off = options_.first_retry_seconds;;
       back_off = std::min(2 * back_off, options_.most_retry_seconds)) {
    const Attempt attempt = SendOnce(body);
    if (attempt.status.ok()) {
      const auto rejected = static_cast<size_t>(
          std::min(attempt.partial.rejected, static_cast<int64_t>(batch.size())));
      CountExported(batch.size() - rejected);
      CountDropped(Drop::kRefused, rejected);
      return Tell(rejected == 0 ? OkStatus()
                                : FailedPreconditionError("the collector rejected spans: " +
                                                          attempt.partial.message));
    }
    if (attempt.status.code() == StatusCode::kCancelled) {
      return CountDropped(Drop::kStopped, batch.size());
    }
    Tell(attempt.status);
    if (attempt.status.code() != StatusCode::kUnavailable) {
      return CountDropped(Drop::kRefused, batch.size());
    }
    // Between half and all of it, so that operators do not ask a collector all at once.
    const double wait = std::max(back_off * (0.5 + 0.5 * runtime_.random.Uniform()),
                                 attempt.retry_after_seconds.value_or(0));
    if (runtime_.clock.Now() + FromSeconds(std::min(wait, 2 * options_.give_up_seconds)) >
        give_up) {
      return CountDropped(Drop::kGaveUp, batch.size());
    }
    if (!SleepUnlessStopped(wait)) return CountDropped(Drop::kStopped, batch.size());
  }
}

// Once when it begins and once when it ends: a collector that is away fills no log.
void SpanExporter::Tell(const Status& outcome) {
  if (outcome.ok() == !failing_) return;
  failing_ = !outcome.ok();
  if (failing_) {
    LogWarning("tracing", "spans do not reach the collector: " + outcome.message(),
               {{"url", settings_.url}});
  } else {
    LogInfo("tracing", "spans reach the collector again", {{"url", settings_.url}});
  }
}

}  // namespace lambdadnn
