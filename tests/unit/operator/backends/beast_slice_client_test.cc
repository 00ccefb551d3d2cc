// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/beast_slice_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "common/base/text.h"
#include "common/http/http_server.h"
#include "common/http/pinned_certificate.h"
#include "common/protocol/slice_codec.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

// Answers slices from a script; each stream gives its pieces, then ends or hangs on.
class ScriptedFunction final : public HttpServerHandler {
 public:
  struct Answer {
    int status = 200;
    std::string body = {};                 // of another status than 200
    std::vector<std::string> pieces = {};  // of a stream
    bool hang = false;                     // neither ends nor says anything
    bool flood = false;                    // the last piece again and again, as fast as it is taken
  };

  explicit ScriptedFunction(Clock& clock) : clock_(clock) {}

  std::optional<HttpServerReply> Admit(const HttpServerRequest&) override { return std::nullopt; }
  HttpServerReply Handle(HttpServerRequest request) override {
    std::lock_guard lock(mutex_);
    requests_.push_back(request);
    HttpServerReply reply;
    if (request.method == "DELETE") return reply;
    if (answers_.empty()) return ErrorReply(InternalError("the script has ended"));
    Answer answer = std::move(answers_.front());
    answers_.pop_front();
    reply.status = answer.status;
    reply.body = answer.body;
    if (answer.status != 200) return reply;
    reply.stream = [this, answer = std::move(answer),
                    at = size_t{0}]() mutable -> std::optional<std::string> {
      if (answer.flood && at == answer.pieces.size()) return answer.pieces.back();
      if (at < answer.pieces.size()) return answer.pieces[at++];
      if (!answer.hang) return std::nullopt;
      clock_.SleepFor(FromSeconds(0.01));
      return std::string();
    };
    return reply;
  }

  void Then(Answer answer) {
    std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }
  std::vector<HttpServerRequest> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  Clock& clock_;
  std::mutex mutex_;
  std::deque<Answer> answers_;
  std::vector<HttpServerRequest> requests_;
};

std::string Progress(int64_t iteration) {
  ProgressLine line;
  line.iteration = iteration;
  return EncodeProgress(line) + "\n";
}

std::string Record(const std::string& invocation, int64_t next_iteration) {
  SliceRecord record;
  record.invocation = invocation;
  record.outcome = SliceOutcome::kStopped;
  record.next_iteration = next_iteration;
  return EncodeRecord(record) + "\n";
}

constexpr const char* kHeartbeat = "{\"type\":\"heartbeat\"}\n";

// Of a function of this version.
std::string Refusal(const std::string& why) {
  return Json{{"error", {{"message", why}}}, {"protocol", kProtocolVersion}}.dump();
}

// How the function is reached.
enum class Transport { kPlain, kTls };

std::string NameOf(const testing::TestParamInfo<Transport>& transport) {
  return transport.param == Transport::kTls ? "Tls" : "Plain";
}

const TlsIdentity& Identity() {
  static const TlsIdentity identity = MakeTlsIdentity("job-1").value();
  return identity;
}

class SliceClientTest : public testing::TestWithParam<Transport> {
 protected:
  SliceClientTest() {
    request_.invocation = "job-1.r1.i0.worker-0.f0.a1";
    request_.job = {"job-1", "default", "demo"};
    request_.plan.memory_mib = 128;
    request_.plan.server_memory_mib = 128;
    request_.plan.local_batch_size = 1;
    request_.plan.global_batch_size = 1;
    request_.plan.iterations = 1;
    request_.plan.iterations_per_epoch = 1;
    request_.plan.parameters = 1;
    auto server = HttpServer::ListenTcp(runtime_, function_, "127.0.0.1", 0, HttpServerLimits{},
                                        IsTls() ? std::optional(Identity()) : std::nullopt);
    EXPECT_TRUE(server.ok());
    server_ = *std::move(server);
    options_.silence_seconds = 0.5;
    client_ = std::make_unique<BeastSliceClient>(runtime_, options_);
  }

  static bool IsTls() { return GetParam() == Transport::kTls; }
  static Endpoint EndpointAt(int port) {
    return {.scheme = IsTls() ? "https" : "", .host = "127.0.0.1", .port = port};
  }
  Endpoint endpoint() const { return EndpointAt(server_->port()); }
  static FunctionAccess Access() {
    return {"key", IsTls() ? CertificateDigest(Identity().certificate).value() : ""};
  }
  void Start() { client_->Start("instance-1", endpoint(), request_, Access()); }

  // Polls until the slice is in `phase`; collects its lines. The last view is returned either way.
  SliceView Await(SlicePhase phase) {
    SliceView view;
    for (int i = 0; i < 500; ++i) {
      const std::vector<SliceView> views = client_->Poll("job-1");
      if (views.size() == 1) view = views[0];
      for (const ProgressLine& line : view.new_lines) iterations_.push_back(line.iteration);
      if (views.size() == 1 && view.phase == phase) break;
      runtime_.clock.SleepFor(FromSeconds(0.01));
    }
    EXPECT_EQ(view.phase, phase) << view.error.ToString();
    return view;
  }

  static constexpr const char* kOneMore = "job-2.r1.i0.worker-0.f0.a1";

  // What the function was asked so far, and by the slice of another job, which it hears after all
  // that was sent before.
  std::vector<std::string> InvocationsHeardWithOneMore() {
    SliceRequest one_more = request_;
    one_more.invocation = kOneMore;
    one_more.job.uid = "job-2";
    function_.Then({.pieces = {Record(kOneMore, 1)}});
    client_->Start("instance-1", endpoint(), one_more, Access());
    const auto heard = [this] {
      const std::vector<SliceView> views = client_->Poll("job-2");
      return views.size() == 1 && views[0].phase == SlicePhase::kEnded;
    };
    for (int i = 0; i < 500 && !heard(); ++i) runtime_.clock.SleepFor(FromSeconds(0.01));
    std::vector<std::string> invocations;
    for (const HttpServerRequest& each : function_.requests()) {
      const auto slice = DecodeSliceRequest(each.body);
      EXPECT_TRUE(slice.ok()) << slice.status().ToString();
      if (slice.ok()) invocations.push_back(slice->invocation);
    }
    return invocations;
  }

  SystemRuntime runtime_;
  ScriptedFunction function_{runtime_.clock};
  std::unique_ptr<HttpServer> server_;
  BeastSliceClient::Options options_;
  std::unique_ptr<BeastSliceClient> client_;
  SliceRequest request_;
  std::vector<int64_t> iterations_;
};

TEST_P(SliceClientTest, AFunctionThatRefusesIsAskedOnce) {
  function_.Then({.status = 400, .body = Refusal("no")});
  Start();
  Await(SlicePhase::kRefused);
  EXPECT_EQ(function_.requests().size(), 1U);
}

TEST_P(SliceClientTest, ReadsLinesUpToTheRecord) {
  function_.Then({.pieces = {Progress(1), kHeartbeat, Progress(2) + Progress(3),
                             Record(request_.invocation, 3)}});
  Start();
  const SliceView view = Await(SlicePhase::kEnded);
  EXPECT_EQ(iterations_, (std::vector<int64_t>{1, 2, 3}));
  ASSERT_TRUE(view.record);
  EXPECT_EQ(view.record->next_iteration, 3);
  EXPECT_EQ(view.last->iteration, 3);
  const std::vector<HttpServerRequest> requests = function_.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].path, "/v1/slices");
  EXPECT_EQ(requests[0].authorization, "Bearer key");
  const auto sent = DecodeSliceRequest(requests[0].body);
  ASSERT_TRUE(sent.ok()) << sent.status().ToString();
  EXPECT_EQ(sent->invocation, request_.invocation);
}

TEST_P(SliceClientTest, APrefixOfPathsComesFirst) {
  function_.Then({.pieces = {Record(request_.invocation, 3)}});
  Endpoint gateway = endpoint();
  gateway.path = "/function/workers";
  client_->Start("instance-1", gateway, request_, Access());
  Await(SlicePhase::kEnded);
  ASSERT_EQ(function_.requests().size(), 1u);
  EXPECT_EQ(function_.requests()[0].path, "/function/workers/v1/slices");
}

TEST_P(SliceClientTest, ARecordEndsTheSliceEvenIfTheResponseNeverDoes) {
  function_.Then({.pieces = {Record(request_.invocation, 7)}, .hang = true});
  Start();
  EXPECT_EQ(Await(SlicePhase::kEnded).record->next_iteration, 7);
}

TEST_P(SliceClientTest, TheListenerHearsOfEachPhaseAndNotOfLines) {
  std::mutex mutex;
  std::vector<std::string> told;
  client_->SetListener([&](const JobIdentity& job) {
    const std::lock_guard lock(mutex);
    told.push_back(job.namespace_name + "/" + job.name);
  });
  function_.Then({.pieces = {Progress(1), Progress(2), kHeartbeat, Progress(3),
                             Record(request_.invocation, 3)}});
  Start();
  Await(SlicePhase::kEnded);
  client_->SetListener(nullptr);
  const std::lock_guard lock(mutex);
  // It runs; it has ended. Where all comes at once, the first is passed over.
  EXPECT_GE(told.size(), 1u);
  EXPECT_LE(told.size(), 2u);
  EXPECT_EQ(told.front(), "default/demo");
}

TEST_P(SliceClientTest, PollShowsTheSlicesOfOneJob) {
  SliceRequest other = request_;
  other.invocation = "job-2.r1.i0.worker-0.f0.a1";
  other.job.uid = "job-2";
  function_.Then({.hang = true});
  function_.Then({.hang = true});
  Start();
  client_->Start("instance-2", endpoint(), other, Access());
  ASSERT_EQ(client_->Poll("job-1").size(), 1u);
  EXPECT_EQ(client_->Poll("job-1").front().invocation, request_.invocation);
  EXPECT_EQ(client_->Poll("job-2").size(), 1u);
  EXPECT_TRUE(client_->Poll("job-3").empty());
  client_->Forget(other.invocation);
  EXPECT_TRUE(client_->Poll("job-2").empty());
  EXPECT_EQ(client_->Poll("job-1").size(), 1u);
}

TEST_P(SliceClientTest, JoinsLinesThatComeInPieces) {
  const std::string line = Progress(5);
  function_.Then({.pieces = {line.substr(0, 4), line.substr(4), Record(request_.invocation, 5)}});
  Start();
  Await(SlicePhase::kEnded);
  EXPECT_EQ(iterations_, std::vector<int64_t>{5});
}

TEST_P(SliceClientTest, AStreamThatEndsWithoutARecordIsLost) {
  function_.Then({.pieces = {Progress(1)}});
  Start();
  const SliceView view = Await(SlicePhase::kLost);
  EXPECT_FALSE(view.record);
  EXPECT_EQ(view.error.code(), StatusCode::kUnavailable);
}

TEST_P(SliceClientTest, ACutRecordIsLost) {
  const std::string record = Record(request_.invocation, 3);
  function_.Then({.pieces = {record.substr(0, record.size() - 1)}});
  Start();
  EXPECT_FALSE(Await(SlicePhase::kLost).record);
}

TEST_P(SliceClientTest, ADamagedRecordIsLost) {
  std::string record = Record(request_.invocation, 3);
  const size_t digit = record.find("\"nextIteration\":3");
  ASSERT_NE(digit, std::string::npos) << record;
  record[digit + 16] = '4';
  function_.Then({.pieces = {record}});
  Start();
  EXPECT_EQ(Await(SlicePhase::kLost).error.code(), StatusCode::kDataLoss);
}

TEST_P(SliceClientTest, TheRecordOfAnotherSliceIsLost) {
  function_.Then({.pieces = {Record("other", 3)}});
  Start();
  EXPECT_EQ(Await(SlicePhase::kLost).error.code(), StatusCode::kDataLoss);
}

TEST_P(SliceClientTest, SilenceIsLost) {
  function_.Then({.pieces = {Progress(1)}, .hang = true});
  Start();
  EXPECT_NE(Await(SlicePhase::kLost).error.message().find("no sign of life"), std::string::npos);
}

TEST_P(SliceClientTest, AttachingGoesOnBehindTheLastLine) {
  function_.Then({.pieces = {Progress(1), kHeartbeat, Progress(2)}});
  function_.Then({.pieces = {Progress(3), Record(request_.invocation, 3)}});
  Start();
  Await(SlicePhase::kLost);
  Start();
  Await(SlicePhase::kEnded);
  EXPECT_EQ(iterations_, (std::vector<int64_t>{1, 2, 3}));
  ASSERT_EQ(function_.requests().size(), 2u);
  EXPECT_EQ(function_.requests()[0].query["from"], "0");
  EXPECT_EQ(function_.requests()[1].query["from"], "2");
}

TEST_P(SliceClientTest, WhatWasTakenIsNeverBegunAnewByWhateverAnswersThere) {
  function_.Then({.status = 502, .body = "EOF"});  // not taken yet
  function_.Then({.pieces = {kHeartbeat}});
  function_.Then({.status = 404, .body = Refusal("unknown")});
  function_.Then({.pieces = {kHeartbeat}});
  for (int i = 0; i < 3; ++i) {
    Start();
    Await(SlicePhase::kLost);
  }
  client_->Start("instance-2", endpoint(), request_, Access());
  Await(SlicePhase::kLost);
  ASSERT_EQ(function_.requests().size(), 4u);
  std::vector<bool> attaches;
  for (const HttpServerRequest& each : function_.requests()) {
    attaches.push_back(each.query.contains("attach"));
  }
  EXPECT_EQ(attaches, (std::vector<bool>{false, false, true, false}));
}

TEST_P(SliceClientTest, WhoAnswersForAnAbsentFunctionIsNotHeard) {
  size_t requests = 0;
  for (const int status : {404, 502, 503, 504}) {
    function_.Then({.pieces = {Progress(1)}});
    function_.Then({.status = status, .body = "not the function's"});
    Start();
    const Instant heard = Await(SlicePhase::kLost).last_heard;
    Start();
    const SliceView view = Await(SlicePhase::kLost);
    EXPECT_EQ(view.last_heard, heard) << status;
    EXPECT_EQ(function_.requests().size(), requests += 2) << status;
    client_->Forget(request_.invocation);
  }
}

TEST_P(SliceClientTest, WhatAFunctionSaysIsHeard) {
  function_.Then({.pieces = {Progress(1)}});
  Start();
  Instant heard = Await(SlicePhase::kLost).last_heard;
  for (const std::string& line : {std::string(kHeartbeat), Progress(2)}) {
    function_.Then({.pieces = {line}});
    Start();
    const Instant later = Await(SlicePhase::kLost).last_heard;
    EXPECT_GT(later, heard) << line;
    heard = later;
  }
}

TEST_P(SliceClientTest, StartingALiveSliceAgainDoesNothing) {
  function_.Then({.pieces = {Progress(1)}, .hang = true});
  Start();
  Await(SlicePhase::kRunning);
  Start();
  EXPECT_EQ(InvocationsHeardWithOneMore(),
            (std::vector<std::string>{request_.invocation, kOneMore}));
}

TEST_P(SliceClientTest, StartingAnEndedSliceAgainDoesNothing) {
  function_.Then({.pieces = {Record(request_.invocation, 3)}});
  Start();
  Await(SlicePhase::kEnded);
  Start();
  EXPECT_EQ(Await(SlicePhase::kEnded).record->next_iteration, 3);
  EXPECT_EQ(InvocationsHeardWithOneMore(),
            (std::vector<std::string>{request_.invocation, kOneMore}));
}

TEST_P(SliceClientTest, ABusyFunctionSaysWithWhat) {
  function_.Then({.status = 409, .body = "{\"running\": \"other-slice\"}"});
  Start();
  const SliceView view = Await(SlicePhase::kRefused);
  EXPECT_EQ(view.busy_with, "other-slice");
  EXPECT_EQ(view.error.code(), StatusCode::kAlreadyExists);
}

TEST_P(SliceClientTest, RefusalsKeepTheirCodeAndMessage) {
  const std::pair<int, StatusCode> cases[] = {{400, StatusCode::kInvalidArgument},
                                              {401, StatusCode::kUnauthenticated},
                                              {412, StatusCode::kFailedPrecondition},
                                              {500, StatusCode::kUnknown}};
  for (const auto& [status, code] : cases) {
    function_.Then({.status = status, .body = Refusal("because")});
    Start();
    const SliceView view = Await(SlicePhase::kRefused);
    EXPECT_EQ(view.error, Status(code, "because")) << status;
    client_->Forget(request_.invocation);
  }
}

TEST_P(SliceClientTest, NobodyListeningIsLost) {
  server_.reset();
  client_->Start("instance-1", EndpointAt(1), request_, Access());
  EXPECT_EQ(Await(SlicePhase::kLost).error.code(), StatusCode::kUnavailable);
  client_->Start("instance-2", Endpoint{}, request_, Access());
  EXPECT_EQ(Await(SlicePhase::kLost).error.code(), StatusCode::kInvalidArgument);
}

TEST_P(SliceClientTest, StopAsksTheFunction) {
  function_.Then({.pieces = {Progress(1)}, .hang = true});
  Start();
  Await(SlicePhase::kRunning);
  client_->Stop(request_.invocation, true);
  client_->Stop(request_.invocation, false);
  client_->Stop("unknown", true);
  for (int i = 0; i < 500 && function_.requests().size() < 3; ++i) {
    runtime_.clock.SleepFor(FromSeconds(0.01));
  }
  const std::vector<HttpServerRequest> requests = function_.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].path, "/v1/slices/" + request_.invocation);
  EXPECT_EQ(requests[1].authorization, "Bearer key");
  // Each goes over a connection of its own, so that either may be the first to arrive.
  EXPECT_NE(requests[1].query.at("graceful"), requests[2].query.at("graceful"));
}

TEST_P(SliceClientTest, ForgottenSlicesAreNotPolledAndMayStartAnew) {
  function_.Then({.pieces = {Progress(1)}, .hang = true});
  Start();
  Await(SlicePhase::kRunning);
  client_->Forget(request_.invocation);
  EXPECT_TRUE(client_->Poll("job-1").empty());
  function_.Then({.pieces = {Record(request_.invocation, 1)}});
  Start();
  Await(SlicePhase::kEnded);
  EXPECT_TRUE(client_->Poll("job-2").empty());
}

TEST_P(SliceClientTest, AnotherInstanceIsReadFromItsBegin) {
  function_.Then({.pieces = {Progress(1)}});
  function_.Then({.pieces = {Progress(1), Record(request_.invocation, 1)}});
  Start();
  Await(SlicePhase::kLost);
  client_->Start("instance-2", endpoint(), request_, Access());
  EXPECT_EQ(Await(SlicePhase::kEnded).instance_uid, "instance-2");
  EXPECT_EQ(function_.requests()[1].query["from"], "0");
}

INSTANTIATE_TEST_SUITE_P(Over, SliceClientTest, testing::Values(Transport::kPlain, Transport::kTls),
                         NameOf);

// Asks until an answer is there, as the controller does.
class FingerprintQueryTest : public SliceClientTest {
 protected:
  // Errors on the way are in errors_.
  std::optional<NumericsFingerprint> Ask(int most_attempts = 10) {
    for (int i = 0; i < most_attempts * 20; ++i) {
      if (i % 20 == 0) client_->AskFingerprint(request_.job, "instance-1", endpoint_, Access());
      EXPECT_TRUE(client_->TakeFingerprints("job-2").empty());
      for (const FingerprintAnswer& answer : client_->TakeFingerprints("job-1")) {
        EXPECT_EQ(answer.instance_uid, "instance-1");
        if (answer.error.ok()) return answer.fingerprint;
        errors_.push_back(answer.error.message());
      }
      runtime_.clock.SleepFor(FromSeconds(0.01));
    }
    return std::nullopt;
  }

  const Endpoint endpoint_ = endpoint();  // also once the server is gone
  std::vector<std::string> errors_;
};

INSTANTIATE_TEST_SUITE_P(Over, FingerprintQueryTest,
                         testing::Values(Transport::kPlain, Transport::kTls), NameOf);

TEST_P(FingerprintQueryTest, AFunctionSaysWhatItComputesWith) {
  const NumericsFingerprint fingerprint = {"avx2", "1.0, built in"};
  function_.Then({.pieces = {EncodeFingerprint(fingerprint)}});
  EXPECT_EQ(Ask(), fingerprint);
  const auto requests = function_.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].method, "GET");
  EXPECT_EQ(requests[0].path, "/readyz");
  EXPECT_TRUE(client_->TakeFingerprints("job-1").empty()) << "it was taken";
}

TEST_P(FingerprintQueryTest, AnAnswerThatNeverEndsIsOne) {
  const std::string text = EncodeFingerprint({"avx2", "1.0"});
  function_.Then({.pieces = {text.substr(0, 7), text.substr(7)}, .hang = true});
  EXPECT_EQ(Ask()->libtorch, "1.0");
}

TEST_P(FingerprintQueryTest, AnOlderFunctionSaysNothing) {
  function_.Then({.pieces = {"ok\n"}});
  EXPECT_EQ(Ask(), NumericsFingerprint{});
}

TEST_P(FingerprintQueryTest, WhoIsNotReadyOrNotThereIsAskedAgain) {
  function_.Then({.status = 503, .body = "draining\n"});
  function_.Then({.status = 404, .body = Refusal("a proxy")});
  function_.Then({.pieces = {EncodeFingerprint({"avx2", "1.0"})}});
  EXPECT_EQ(Ask()->isa, "avx2");
  EXPECT_EQ(function_.requests().size(), 3u);
  EXPECT_THAT(Join(errors_, " "), testing::MatchesRegex(".*HTTP 503 .*HTTP 404"));
  server_.reset();
  EXPECT_EQ(Ask(2), std::nullopt);
  EXPECT_THAT(errors_.back(), testing::MatchesRegex("connecting to 127.0.0.1.*refused"));
}

TEST_P(FingerprintQueryTest, WhileItIsAskedASecondQuestionDoesNothing) {
  function_.Then({.pieces = {"{"}, .hang = true});
  EXPECT_EQ(Ask(3), std::nullopt);
  EXPECT_EQ(function_.requests().size(), 1u);
}

TEST_P(FingerprintQueryTest, TheListenerHearsOfAnAnswer) {
  std::atomic<int> told{0};
  client_->SetListener([&](const JobIdentity& job) {
    EXPECT_EQ(job.name, "demo");
    ++told;
  });
  function_.Then({.pieces = {EncodeFingerprint({"avx2", "1.0"})}});
  EXPECT_TRUE(Ask().has_value());
  for (int i = 0; i < 500 && told == 0; ++i) runtime_.clock.SleepFor(FromSeconds(0.01));
  client_->SetListener(nullptr);
  EXPECT_EQ(told, 1);
}

TEST_P(SliceClientTest, AFunctionThatFloodsIsReadAtTheRateOfItsJobAndDelaysNoOther) {
  options_.rates = {
      .job_bytes_per_second = 64 * 1024, .stream_bytes_per_second = 0, .burst_seconds = 1};
  client_ = std::make_unique<BeastSliceClient>(runtime_, options_);
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += Progress(i);
  function_.Then({.pieces = {lines}, .flood = true});
  const Instant begin = runtime_.clock.Now();
  Start();
  size_t bytes = 0;
  const auto read = [&] {
    for (const SliceView& view : client_->Poll("job-1")) {
      bytes += view.new_lines.size() * lines.size() / 100;
    }
  };
  while (bytes < 64 * 1024 && runtime_.clock.Now() - begin < FromSeconds(10)) {
    read();
    runtime_.clock.SleepFor(FromSeconds(0.01));
  }
  EXPECT_GE(bytes, 64 * 1024u);
  EXPECT_EQ(InvocationsHeardWithOneMore().size(), 2u);
  runtime_.clock.SleepFor(FromSeconds(0.5));
  read();
  // The rate, what may come at once, and what had been read when that was used up.
  const double most = (ToSeconds(runtime_.clock.Now() - begin) + 1) * 64 * 1024 + 128 * 1024;
  EXPECT_LE(static_cast<double>(bytes), most);
}

TEST_P(SliceClientTest, OfMoreLinesThanAreKeptTheNewestAreThere) {
  options_.max_unread_lines = 10;
  client_ = std::make_unique<BeastSliceClient>(runtime_, options_);
  std::string lines;
  for (int i = 1; i <= 25; ++i) lines += Progress(i);
  std::atomic<int> told = 0;
  client_->SetListener([&](const JobIdentity&) { ++told; });
  function_.Then({.pieces = {lines + Record(request_.invocation, 25)}});
  Start();
  for (int i = 0; i < 500 && told == 0; ++i) runtime_.clock.SleepFor(FromSeconds(0.01));
  runtime_.clock.SleepFor(FromSeconds(0.1));
  client_->SetListener(nullptr);
  Await(SlicePhase::kEnded);
  EXPECT_LE(iterations_.size(), 10u);
  EXPECT_EQ(iterations_.back(), 25);
  EXPECT_TRUE(std::is_sorted(iterations_.begin(), iterations_.end()));
}

TEST_P(SliceClientTest, ReadsManyStreamsAtOnce) {
  constexpr int kStreams = 12;
  for (int i = 0; i < kStreams; ++i) function_.Then({.pieces = {Progress(1)}, .hang = true});
  for (int i = 0; i < kStreams; ++i) {
    request_.invocation = "slice-" + std::to_string(i);
    Start();
  }
  size_t running = 0;
  for (int i = 0; i < 500 && running < kStreams; ++i) {
    runtime_.clock.SleepFor(FromSeconds(0.01));
    for (const SliceView& view : client_->Poll("job-1")) running += view.new_lines.size();
  }
  EXPECT_EQ(running, size_t{kStreams});
}

}  // namespace
}  // namespace lambdadnn
