// SPDX-License-Identifier: Apache-2.0
// The exporter in virtual time against collectors that take, refuse, delay and hang; and over real
// sockets against one.
#include "common/tracing/span_exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/simulation/sim_runtime.h"
#include "tests/simulation/sim_scheduler.h"
#include "tests/simulation/virtual_run.h"
#include "tests/support/raw_server.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

using simulation::SimProcess;
using simulation::SimScheduler;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Span Named(const std::string& name) {
  Span span;
  span.trace_id = TraceIdOf("trace");
  span.span_id = SpanIdOf(span.trace_id, name);
  span.name = name;
  return span;
}

std::vector<std::string> NamesIn(const std::string& body) {
  std::vector<std::string> names;
  const Json json = Json::parse(body);
  for (const Json& span : json["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
    names.push_back(span["name"]);
  }
  return names;
}

// What a collector does with a request; the last of a script is done again and again.
struct Answer {
  int status = 200;
  HttpFields fields = {};
  std::string body = "{}";
  double seconds = 0;  // before it comes
  Status error = OkStatus();
};

class Collector final : public HttpTransport {
 public:
  explicit Collector(Runtime& runtime) : runtime_(runtime) {}

  Result<HttpResponse> Send(const HttpRequest& request) override {
    times.push_back(ToSeconds(runtime_.clock.Now().time_since_epoch()));
    std::string body;
    for (const ByteView piece : request.body) body += AsText(piece);
    bodies.push_back(body);
    requests.push_back(request);
    const Answer answer = script.front();
    if (script.size() > 1) script.pop_front();
    const double until = std::min(answer.seconds, request.total_seconds);
    for (double waited = 0; waited < until; waited += 0.1) {
      if (request.cancellation->cancelled()) return CancelledError("cancelled");
      runtime_.clock.SleepFor(FromSeconds(0.1));
    }
    if (answer.seconds > request.total_seconds) return UnavailableError("no answer in time");
    LDNN_RETURN_IF_ERROR(answer.error);
    return HttpResponse{answer.status, answer.fields, ToBytes(answer.body)};
  }

  std::deque<Answer> script = {Answer{}};
  std::vector<double> times;  // of the requests, in seconds
  std::vector<std::string> bodies;
  std::vector<HttpRequest> requests;

 private:
  Runtime& runtime_;
};

class SpanExporterTest : public testing::Test {
 protected:
  void Start(std::deque<Answer> script = {Answer{}}) {
    collector_.script = std::move(script);
    InProcess([this] {
      exporter_ =
          std::make_unique<SpanExporter>(process_.runtime(), collector_,
                                         OtlpSettings{.url = "http://collector:4318/v1/traces",
                                                      .headers = {{"api-key", "k"}},
                                                      .timeout_seconds = 5,
                                                      .ca_file = "",
                                                      .resource = {{"service.name", "operator"}}},
                                         SpanScope{"scope", "1"}, &metrics_, options_);
    });
  }
  void Export(const std::vector<std::string>& names) {
    std::vector<Span> spans;
    for (const std::string& name : names) spans.push_back(Named(name));
    InProcess([&] {
      const Instant before = process_.runtime().clock.Now();
      exporter_->Export(std::move(spans));
      EXPECT_EQ(process_.runtime().clock.Now(), before) << "Export waited";
    });
  }
  void Stop() {
    InProcess([this] { exporter_.reset(); });
  }
  void InProcess(const std::function<void()>& body) {
    simulation::RunIn(scheduler_, process_, body);
  }
  void RunFor(double seconds) { simulation::RunAllFor(scheduler_, seconds); }
  double Seconds() const { return ToSeconds(scheduler_.Now().time_since_epoch()); }
  SpanExporter::Counts Counts() {
    SpanExporter::Counts counts;
    InProcess([&] { counts = exporter_->counts(); });
    return counts;
  }
  void ExpectCounts(int64_t exported, int64_t dropped) {
    const SpanExporter::Counts counts = Counts();
    EXPECT_EQ(counts.exported, exported);
    EXPECT_EQ(counts.dropped, dropped);
  }

  SimScheduler scheduler_{1};
  SimProcess& process_ = scheduler_.NewProcess("operator");
  Collector collector_{process_.runtime()};
  MetricsRegistry metrics_;
  SpanExporter::Options options_;
  std::unique_ptr<SpanExporter> exporter_;
};

TEST_F(SpanExporterTest, SendsWhatComesTogetherInOneRequest) {
  Start();
  Export({"a"});
  RunFor(1);
  EXPECT_THAT(collector_.bodies, IsEmpty());
  Export({"b", "c"});
  RunFor(2);
  ASSERT_THAT(collector_.bodies, SizeIs(1));
  EXPECT_THAT(NamesIn(collector_.bodies[0]), ElementsAre("a", "b", "c"));
  const HttpRequest& request = collector_.requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.url, "http://collector:4318/v1/traces");
  EXPECT_EQ(FindField(request.fields, "content-type"), "application/json");
  EXPECT_EQ(FindField(request.fields, "api-key"), "k");
  EXPECT_EQ(request.total_seconds, 5);
  ExpectCounts(3, 0);
  EXPECT_THAT(metrics_.Text(), HasSubstr("lambdadnn_spans_exported_total 3\n"));
  RunFor(100);
  EXPECT_THAT(collector_.bodies, SizeIs(1));
  Stop();
}

TEST_F(SpanExporterTest, AFullBatchIsNotWaitedWith) {
  options_.batch_limit = 2;
  Start();
  Export({"a", "b", "c"});
  RunFor(0.1);
  ASSERT_THAT(collector_.bodies, SizeIs(1));
  EXPECT_THAT(NamesIn(collector_.bodies[0]), ElementsAre("a", "b"));
  RunFor(3);
  ASSERT_THAT(collector_.bodies, SizeIs(2));
  EXPECT_THAT(NamesIn(collector_.bodies[1]), ElementsAre("c"));
  Stop();
}

TEST_F(SpanExporterTest, WhatIsRetryableIsRepeatedWithGrowingWaitsUntilItArrives) {
  for (const Answer& failure :
       {Answer{.status = 429}, Answer{.status = 502}, Answer{.status = 503}, Answer{.status = 504},
        Answer{.error = UnavailableError("refused")}, Answer{.seconds = 100}}) {
    const size_t before = collector_.times.size();
    Start({failure, failure, failure, Answer{}});
    Export({"a"});
    RunFor(60);
    ASSERT_EQ(collector_.times.size(), before + 4) << failure.status;
    ExpectCounts(1, 0);
    const double taken = failure.seconds > 0 ? 5 : 0;
    for (int i = 1; i <= 3; ++i) {
      const double wait = collector_.times[before + i] - collector_.times[before + i - 1] - taken;
      const double back_off = 1 << (i - 1);
      EXPECT_GE(wait, 0.5 * back_off - 0.01);
      EXPECT_LE(wait, back_off + 0.2);
      EXPECT_EQ(collector_.bodies[before + i], collector_.bodies[before]);
    }
    Stop();
  }
}

TEST_F(SpanExporterTest, WhatTheCollectorRefusesIsDroppedAtOnce) {
  for (const int status : {301, 400, 401, 403, 404, 413, 500, 501}) {
    const size_t before = collector_.times.size();
    Start({Answer{.status = status}, Answer{}});
    Export({"a", "b"});
    RunFor(3);
    ExpectCounts(0, 2);
    Export({"c"});
    RunFor(3);
    EXPECT_EQ(collector_.times.size(), before + 2) << status;
    ExpectCounts(1, 2);
    Stop();
  }
  EXPECT_THAT(metrics_.Text(), HasSubstr("lambdadnn_spans_dropped_total{reason=\"refused\"} 16\n"));
}

TEST_F(SpanExporterTest, RetryAfterIsHeededInSecondsAndAsADate) {
  Start({Answer{.status = 429, .fields = {{"retry-after", "17"}}}, Answer{}});
  Export({"a"});
  RunFor(30);
  ASSERT_THAT(collector_.times, SizeIs(2));
  EXPECT_NEAR(collector_.times[1] - collector_.times[0], 17, 0.01);
  Stop();
  // Virtual time began with 2026; half a minute of it has passed.
  Start({Answer{.status = 503, .fields = {{"Retry-After", "Thu, 01 Jan 2026 00:00:55 GMT"}}},
         Answer{}});
  Export({"b"});
  RunFor(40);
  ASSERT_THAT(collector_.times, SizeIs(4));
  EXPECT_NEAR(collector_.times[3], 55, 0.01);
  Stop();
  for (const char* odd : {"soon", "-5", "", "Thu, 01 Jan 1970 00:00:00 GMT"}) {
    Start({Answer{.status = 503, .fields = {{"Retry-After", odd}}}, Answer{}});
    Export({"c"});
    RunFor(4);
    ExpectCounts(1, 0);
    Stop();
  }
}

TEST_F(SpanExporterTest, ACollectorThatIsAwayCostsABatchAMinuteAndNoMore) {
  for (const Answer& failure : {Answer{.error = UnavailableError("refused")},
                                Answer{.status = 503, .fields = {{"Retry-After", "86400"}}}}) {
    Start({failure});
    Export({"a"});
    RunFor(64);
    ExpectCounts(0, 1);
    collector_.script = {Answer{}};
    Export({"b"});
    RunFor(3);
    ExpectCounts(1, 1);
    Stop();
  }
  EXPECT_THAT(metrics_.Text(), HasSubstr("lambdadnn_spans_dropped_total{reason=\"gave_up\"} 2\n"));
}

TEST_F(SpanExporterTest, ACollectorThatHangsDelaysNobodyAndTheQueueStaysBounded) {
  options_.queue_limit = 10;
  Start({Answer{.seconds = 1e6}});
  Export({"a"});
  RunFor(3);
  for (int i = 0; i < 100; ++i) Export({"b", "c", "d"});  // which checks that it does not wait
  ExpectCounts(0, 97 * 3);
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("lambdadnn_spans_dropped_total{reason=\"queue_full\"} 291\n"));
  const double before = Seconds();
  Stop();
  EXPECT_LE(Seconds() - before, options_.flush_seconds + 0.2);
}

TEST_F(SpanExporterTest, TheEndSendsWhatIsQueued) {
  options_.batch_limit = 2;
  Start();
  Export({"a", "b", "c"});
  Stop();
  EXPECT_THAT(collector_.bodies, SizeIs(2));
  EXPECT_LE(Seconds(), 0.1);
  EXPECT_THAT(metrics_.Text(), HasSubstr("lambdadnn_spans_exported_total 3\n"));
}

TEST_F(SpanExporterTest, TheEndWaitsForNoRetry) {
  Start({Answer{.status = 503, .fields = {{"Retry-After", "30"}}}});
  Export({"a"});
  RunFor(3);
  Export({"b"});
  const double before = Seconds();
  Stop();
  EXPECT_LE(Seconds() - before, 0.1);
  EXPECT_THAT(metrics_.Text(), HasSubstr("lambdadnn_spans_dropped_total{reason=\"stopped\"} 2\n"));
}

TEST_F(SpanExporterTest, RejectedSpansOfAPartialSuccessCountAsDropped) {
  Start({Answer{.body = R"({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "no"}})"},
         Answer{.body = R"({"partialSuccess": {"rejectedSpans": "2000"}})"},
         Answer{.body = "<html>"}});
  Export({"a", "b", "c"});
  RunFor(3);
  ExpectCounts(1, 2);
  Export({"d"});
  RunFor(3);
  ExpectCounts(1, 3);
  Export({"e"});
  RunFor(3);
  ExpectCounts(2, 3);
  EXPECT_THAT(collector_.bodies, SizeIs(3));
  Stop();
}

// Over sockets, with the transport that the operator has.
TEST(SpanExporter, ReachesACollector) {
  std::string seen;
  RawServer server({[&](int fd) {
    seen = ReadRequest(fd);
    Write(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  }});
  SystemRuntime runtime;
  const auto transport = NewHttpTransport({});
  ASSERT_TRUE(transport.ok());
  MetricsRegistry metrics;
  {
    SpanExporter exporter(runtime, **transport,
                          OtlpSettings{.url = server.Url("/v1/traces"),
                                       .headers = {{"Authorization", "Bearer t"}},
                                       .timeout_seconds = 10,
                                       .ca_file = "",
                                       .resource = {}},
                          {"scope", "1"}, &metrics, {});
    exporter.Export({Named("a")});
  }
  EXPECT_THAT(metrics.Text(), HasSubstr("lambdadnn_spans_exported_total 1\n"));
  EXPECT_TRUE(seen.starts_with("POST /v1/traces HTTP/1.1\r\n")) << seen;
  EXPECT_THAT(seen, AllOf(HasSubstr("Authorization:Bearer t\r\n"),
                          HasSubstr("Content-Type:application/json\r\n")));
  EXPECT_THAT(NamesIn(seen.substr(seen.find("\r\n\r\n") + 4)), ElementsAre("a"));
}

}  // namespace
}  // namespace lambdadnn
