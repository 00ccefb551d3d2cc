// SPDX-License-Identifier: Apache-2.0
// What the HTTP client sends and how it takes trouble; what it means is in the conformance suite.
#include "operator/kube/http_kube_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/files.h"
#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/object_metadata.h"
#include "tests/support/kube_http_facade.h"
#include "tests/support/paths.h"
#include "tests/support/virtual_runtime.h"
#include "tests/unit/operator/kube/kube_client_conformance.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

HttpResponse Answer(int status, const HttpFields& fields = {}, const std::string& body = "") {
  HttpResponse response;
  response.status = status;
  response.fields = fields;
  response.body = ToBytes(body);
  return response;
}

// The client before an in-memory server; every request is recorded and may be answered by `script`.
class HttpKubeClientTest : public testing::Test {
 protected:
  struct Seen {
    std::string method, url, token, agent, content_type, body;
    bool repeatable;
  };

  HttpKubeClientTest() : server_(server_runtime_) {
    server_.Define(ReadResourceDefinition(ConformanceCrd()).value());
    server_.Define(EventDefinition());
  }

  HttpKubeClient& Client(const KubeConnection& connection = {},
                         const HttpKubeClientOptions& options = {}) {
    return ClientOn(runtime_, connection, options);
  }
  HttpKubeClient& ClientOn(Runtime& runtime, KubeConnection connection = {},
                           const HttpKubeClientOptions& options = {}) {
    if (connection.server.empty()) connection.server = "https://api.test:6443";
    client_ = std::make_unique<HttpKubeClient>(
        connection, runtime, options,
        [this](const HttpTransportOptions& transport_options)
            -> Result<std::unique_ptr<HttpTransport>> {
          transports_.push_back(transport_options);
          auto facade = std::make_unique<KubeHttpFacade>(
              server_, std::vector<ResourceType>{WidgetType(), EventType()}, 1000);
          facade->intercept = [this](const HttpRequest& request) { return Intercept(request); };
          return std::unique_ptr<HttpTransport>(std::move(facade));
        });
    return *client_;
  }

  std::optional<Result<HttpResponse>> Intercept(const HttpRequest& request) {
    const auto field = [&](const char* name) {
      return std::string(FindField(request.fields, name));
    };
    seen_.push_back({request.method, request.url, field("Authorization"), field("User-Agent"),
                     field("Content-Type"),
                     request.body.empty() ? "" : std::string(AsText(request.body[0])),
                     request.repeatable});
    if (script_.empty()) return std::nullopt;
    Result<HttpResponse> answer = std::move(script_.front());
    script_.erase(script_.begin());
    return answer;
  }

  SystemClock system_clock_;
  ThreadExecutor system_executor_;
  SeededRandom random_{7};
  Runtime server_runtime_{system_clock_, system_executor_, random_};
  InMemoryApiServer server_;
  // The client's clock: virtual, so that no test waits.
  VirtualClock clock_;
  Runtime runtime_{clock_, system_executor_, random_};
  std::vector<HttpTransportOptions> transports_;
  std::vector<Result<HttpResponse>> script_;
  std::vector<Seen> seen_;
  std::unique_ptr<HttpKubeClient> client_;
};

TEST_F(HttpKubeClientTest, WritesAreStrictAndSigned) {
  HttpKubeClient& client = Client({.token = "secret"}, {.user_agent = "agent/1"});
  ASSERT_TRUE(client.Create(WidgetType(), MakeWidget("a")).ok());
  ASSERT_TRUE(client
                  .Patch(WidgetType(), {"default", "a"}, {{"status", {{"phase", "x"}}}},
                         Subresource::kStatus)
                  .ok());
  ASSERT_TRUE(client.Delete(WidgetType(), {"default", "a"}, "").ok());
  ASSERT_EQ(seen_.size(), 3u);
  const std::string root =
      "https://api.test:6443/apis/test.lambdadnn.io/v1/namespaces/default/widgets";
  EXPECT_EQ(seen_[0].url, root + "?fieldValidation=Strict&fieldManager=lambdadnn-operator");
  EXPECT_EQ(seen_[1].url,
            root + "/a/status?fieldValidation=Strict&fieldManager=lambdadnn-operator");
  EXPECT_EQ(seen_[1].content_type, "application/merge-patch+json");
  EXPECT_EQ(seen_[2].url, root + "/a");
  EXPECT_THAT(seen_[2].body, HasSubstr("\"propagationPolicy\":\"Background\""));
  for (const Seen& request : seen_) {
    EXPECT_EQ(request.token, "Bearer secret");
    EXPECT_EQ(request.agent, "agent/1");
    EXPECT_FALSE(request.repeatable) << request.method;
  }
  EXPECT_THAT((std::vector<std::string>{seen_[0].method, seen_[1].method, seen_[2].method}),
              ElementsAre("POST", "PATCH", "DELETE"));
}

TEST_F(HttpKubeClientTest, APodGetsTheGraceThatItsDeletionNames) {
  HttpKubeClient& client = Client();
  script_.push_back(Answer(200, {}, "{}"));
  ASSERT_TRUE(client.DeleteWithin(PodType(), {"team", "a"}, "uid-1", 5).ok());
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].url, "https://api.test:6443/api/v1/namespaces/team/pods/a");
  EXPECT_THAT(seen_[0].body, HasSubstr("\"gracePeriodSeconds\":5"));
  EXPECT_THAT(seen_[0].body, HasSubstr("\"uid\":\"uid-1\""));
}

TEST_F(HttpKubeClientTest, ALogIsTextAndNoJson) {
  HttpKubeClient& client = Client();
  script_.push_back(Answer(200, {}, "one\ntwo\n"));
  const auto log = [&](ContainerRun life) {
    return client.PodLog({"team", "a"}, "function", life, 20);
  };
  EXPECT_EQ(log(ContainerRun::kCurrent).value(), "one\ntwo\n");
  EXPECT_EQ(seen_[0].url,
            "https://api.test:6443/api/v1/namespaces/team/pods/a/log?container=function"
            "&tailLines=20");
  script_.push_back(Answer(200, {}, "last words\n"));
  EXPECT_EQ(log(ContainerRun::kPrevious).value(), "last words\n");
  EXPECT_THAT(seen_[1].url, testing::EndsWith("&tailLines=20&previous=true"));
  script_.push_back(Answer(404));
  EXPECT_EQ(log(ContainerRun::kCurrent).status().code(), StatusCode::kNotFound);
  script_.push_back(Answer(400, {},
                           R"({"kind":"Status","message":"previous terminated container )"
                           R"(\"function\" in pod \"a\" not found","reason":"BadRequest"})"));
  const Status none = log(ContainerRun::kPrevious).status();
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr("previous terminated container"));
}

TEST_F(HttpKubeClientTest, TellsTheServersTimeOfEveryAnswerThatHasOne) {
  std::vector<WallTime> dates;
  HttpKubeClient& client =
      Client({}, {.on_date = [&](WallTime date, Instant sent, Instant received) {
               EXPECT_LE(sent, received);
               dates.push_back(date);
             }});
  script_.push_back(Answer(404, {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}}));
  script_.push_back(Answer(404, {{"Date", "yesterday"}}));
  script_.push_back(Answer(404));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(client.Get(WidgetType(), {"default", "a"}).ok());
  EXPECT_THAT(dates, ElementsAre(WallTime(std::chrono::seconds(1'369'353'600))));
}

TEST_F(HttpKubeClientTest, NamesNeverLeaveTheirPlaceInThePath) {
  EXPECT_EQ(Client().Get(WidgetType(), {"a/b", "../secrets?x"}).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(seen_[0].url,
            "https://api.test:6443/apis/test.lambdadnn.io/v1/namespaces/a%2Fb/widgets/"
            "..%2Fsecrets%3Fx");
  EXPECT_TRUE(seen_[0].repeatable);
}

TEST_F(HttpKubeClientTest, ABusyServerIsAskedAgainWhenItSays) {
  script_ = {Answer(429, {{"Retry-After", "2"}}), Answer(503, {{"Retry-After", "3"}})};
  const Instant begin = clock_.Now();
  EXPECT_TRUE(Client().Create(WidgetType(), MakeWidget("a")).ok());
  EXPECT_EQ(seen_.size(), 3u);
  EXPECT_EQ(clock_.Now() - begin, Duration(std::chrono::seconds(5)));
}

TEST_F(HttpKubeClientTest, PatienceEnds) {
  for (int i = 0; i < 9; ++i) script_.push_back(Answer(429, {{"Retry-After", "3600"}}));
  HttpKubeClientOptions options;
  const Instant begin = clock_.Now();
  EXPECT_EQ(Client().Get(WidgetType(), {"default", "a"}).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(seen_.size(), static_cast<size_t>(options.max_attempts));
  EXPECT_LE(clock_.Now() - begin,
            FromSeconds(options.max_retry_after_seconds) * (options.max_attempts - 1));
}

TEST_F(HttpKubeClientTest, RequestsBeyondTheBurstTakeTurns) {
  HttpKubeClient& client = Client({}, {.queries_per_second = 10, .burst = 5});
  const auto ask = [&](int times) {
    const Instant begin = clock_.Now();
    for (int i = 0; i < times; ++i) (void)client.Get(WidgetType(), {"default", "a"});
    return ToSeconds(clock_.Now() - begin);
  };
  EXPECT_EQ(ask(5), 0);
  EXPECT_NEAR(ask(20), 2, 1e-6);
  // What was not used does not add up beyond the burst.
  clock_.SleepFor(FromSeconds(60));
  EXPECT_NEAR(ask(6), 0.1, 1e-6);
}

TEST_F(HttpKubeClientTest, ByDefaultNothingIsHeldBack) {
  HttpKubeClient& client = Client();
  const Instant begin = clock_.Now();
  for (int i = 0; i < 300; ++i) (void)client.Get(WidgetType(), {"default", "a"});
  EXPECT_EQ(clock_.Now(), begin);
}

TEST_F(HttpKubeClientTest, OtherFailuresAreTheCallersToRepeat) {
  script_ = {Answer(500), Answer(503), UnavailableError("cut")};
  HttpKubeClient& client = Client();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.Create(WidgetType(), MakeWidget("a")).status().code(),
              StatusCode::kUnavailable);
  }
  EXPECT_EQ(seen_.size(), 3u);
}

TEST_F(HttpKubeClientTest, ANewTokenIsReadWhenTheOldOneIsRefused) {
  const std::string file = MakeTempDir() + "/token";
  ASSERT_TRUE(WriteFileAtomically(file, "old").ok());
  HttpKubeClient& client = Client({.token_file = file});
  ASSERT_TRUE(client.Create(WidgetType(), MakeWidget("a")).ok());
  ASSERT_TRUE(WriteFileAtomically(file, "new").ok());
  script_ = {Answer(401)};
  EXPECT_TRUE(client.Get(WidgetType(), {"default", "a"}).ok());
  EXPECT_EQ(seen_[1].token, "Bearer old");
  EXPECT_EQ(seen_[2].token, "Bearer new");
  // Once: a server that refuses the new one as well means it.
  script_ = {Answer(401), Answer(401), Answer(401)};
  EXPECT_EQ(client.Get(WidgetType(), {"default", "a"}).status().code(),
            StatusCode::kUnauthenticated);
  EXPECT_EQ(seen_.size(), 5u);
}

TEST_F(HttpKubeClientTest, TransportsAreMadeOnceFromTheConnection) {
  HttpKubeClient& client = Client({.ca_pem = "ca",
                                   .server_name = "name",
                                   .client_certificate_pem = "c",
                                   .client_key_pem = "k"});
  for (int i = 0; i < 3; ++i) (void)client.Get(WidgetType(), {"default", "a"});
  ASSERT_EQ(transports_.size(), 2u);  // calls, watches
  EXPECT_EQ(transports_[0].ca_pem, "ca");
  EXPECT_EQ(transports_[0].server_name, "name");
  EXPECT_EQ(transports_[0].client_certificate_pem, "c");
  EXPECT_GT(transports_[1].inactivity_seconds, 60) << "bookmarks come once a minute";
}

TEST_F(HttpKubeClientTest, TextThatIsNotUtf8IsRepairedAndSent) {
  script_ = {Answer(403)};
  const Json event = {{"metadata", {{"name", "e"}, {"namespace", "ns"}}}, {"note", "a \xFF b"}};
  EXPECT_EQ(Client().Create(EventType(), event).status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(seen_.at(0).body, HasSubstr("a \xEF\xBF\xBD b"));
}

TEST_F(HttpKubeClientTest, AnObjectOfAThousandLevelsIsCutAndHoldsUpNoOther) {
  std::string deep = std::string(1000, '[') + std::string(1000, ']');
  script_ = {Answer(200, {},
                    R"({"items":[{"metadata":{"name":"a"},"spec":{"affinity":)" + deep +
                        R"(}},{"metadata":{"name":"b"}}]})")};
  const Result<KubeList> list = Client().List({"", "v1", "pods", "Pod"}, "ns", "", 5, "");
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_TRUE(list->items[0]["spec"]["affinity"][0].is_array());
  EXPECT_EQ(list->items[1]["metadata"]["name"], "b");
  script_ = {Answer(403, {}, R"({"kind":"Status","message":)" + deep + "}")};
  EXPECT_EQ(Client().List({"", "v1", "pods", "Pod"}, "ns", "", 5, "").status().code(),
            StatusCode::kPermissionDenied);
}

TEST_F(HttpKubeClientTest, ItemsOfListsAreWholeObjects) {
  script_ = {Answer(200, {}, R"({"metadata":{"resourceVersion":"9"},"items":[{"metadata":{}}]})")};
  const Result<KubeList> list = Client().List({"", "v1", "pods", "Pod"}, "ns", "a=b,c", 5, "t/1");
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  EXPECT_EQ(list->items[0]["kind"], "Pod");
  EXPECT_EQ(list->items[0]["apiVersion"], "v1");
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(seen_[0].url,
            "https://api.test:6443/api/v1/namespaces/ns/pods?limit=5&labelSelector="
            "a%3Db%2Cc&continue=t%2F1");
}

TEST_F(HttpKubeClientTest, AnswersThatMakeNoSenseAreUnavailable) {
  script_ = {Answer(200, {}, "<html>"), Answer(200, {}, "{}"), Answer(200, {}, "{\"items\":1}")};
  HttpKubeClient& client = Client();
  EXPECT_EQ(client.Get(WidgetType(), {"d", "a"}).status().code(), StatusCode::kUnavailable);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.List(WidgetType(), "", "", 0, "").status().code(), StatusCode::kUnavailable);
  }
}

TEST_F(HttpKubeClientTest, WhatIsNoObjectIsNotTakenForOne) {
  HttpKubeClient& client = Client();
  const Json widget = {{"metadata", {{"name", "a"}, {"namespace", "d"}}}};
  for (const char* answer : {"[]", "5", "null", "\"text\"", "true"}) {
    const auto code = [&](const auto& call) {
      script_ = {Answer(200, {}, answer)};
      return call().code();
    };
    EXPECT_EQ(code([&] { return client.Get(WidgetType(), {"d", "a"}).status(); }),
              StatusCode::kUnavailable);
    EXPECT_EQ(code([&] { return client.Create(WidgetType(), widget).status(); }),
              StatusCode::kUnavailable);
    EXPECT_EQ(
        code([&] { return client.Update(WidgetType(), widget, Subresource::kNone).status(); }),
        StatusCode::kUnavailable);
    EXPECT_EQ(code([&] {
                return client.Patch(WidgetType(), {"d", "a"}, widget, Subresource::kNone).status();
              }),
              StatusCode::kUnavailable);
    EXPECT_EQ(code([&] { return client.Delete(WidgetType(), {"d", "a"}, "u"); }),
              StatusCode::kUnavailable);
    EXPECT_EQ(code([&] { return client.List(WidgetType(), "", "", 0, "").status(); }),
              StatusCode::kUnavailable);
  }
  script_ = {Answer(200, {}, R"({"items":[{"metadata":{}},5]})")};
  EXPECT_EQ(client.List(WidgetType(), "", "", 0, "").status().code(), StatusCode::kUnavailable);
}

TEST_F(HttpKubeClientTest, AnotherObjectIsNotTheOneAskedFor) {
  HttpKubeClient& client = Client();
  for (const char* answer :
       {"{}", R"({"metadata":[]})", R"({"metadata":{"name":5}})", R"({"metadata":{"name":"b"}})"}) {
    script_ = {Answer(200, {}, answer), Answer(200, {}, answer)};
    const Status got = client.Get(WidgetType(), {"d", "a"}).status();
    EXPECT_EQ(got.code(), StatusCode::kUnavailable) << answer;
    EXPECT_THAT(got.message(), HasSubstr("not the object that was asked for"));
    EXPECT_EQ(
        client.Patch(WidgetType(), {"d", "a"}, Json::object(), Subresource::kNone).status().code(),
        StatusCode::kUnavailable);
  }
}

TEST_F(HttpKubeClientTest, OurOwnLimitSpreadsRequests) {
  HttpKubeClient& client = Client({}, {.queries_per_second = 10, .burst = 5});
  const Instant begin = clock_.Now();
  for (int i = 0; i < 25; ++i) (void)client.Get(WidgetType(), {"default", "a"});
  EXPECT_GE(clock_.Now() - begin, FromSeconds(1.9));
  EXPECT_LE(clock_.Now() - begin, FromSeconds(2.1));
}

TEST_F(HttpKubeClientTest, WatchErrorsComeFromTheFirstNext) {
  script_ = {KubeRefusal(OutOfRangeError("too old resource version")),
             KubeRefusal(PermissionDeniedError("may not")), Answer(200, {}, "")};
  HttpKubeClient& client = ClientOn(server_runtime_);
  for (const StatusCode code :
       {StatusCode::kOutOfRange, StatusCode::kPermissionDenied, StatusCode::kUnavailable}) {
    const auto watch = client.StartWatch(WidgetType(), "", "", "1");
    ASSERT_TRUE(watch.ok());
    EXPECT_EQ((*watch)->Next(std::chrono::hours(1)).status().code(), code);
  }
  ASSERT_EQ(seen_.size(), 3u);
  EXPECT_THAT(seen_[0].url, HasSubstr("watch=1&allowWatchBookmarks=true&timeoutSeconds="));
  EXPECT_THAT(seen_[0].url, HasSubstr("&resourceVersion=1"));
}

TEST_F(HttpKubeClientTest, AWatchEndsWhenItIsNotWantedAnyMore) {
  HttpKubeClient& client = ClientOn(server_runtime_);
  for (int i = 0; i < 3000; ++i) {  // more than wait for Next
    ASSERT_TRUE(server_.Create(WidgetType(), MakeWidget("w" + std::to_string(i))).ok());
  }
  auto watch = client.StartWatch(WidgetType(), "", "", "");
  ASSERT_TRUE(watch.ok());
  EXPECT_EQ(NameOf((*watch)->Next(std::chrono::seconds(10))->object).name, "w0");
  watch->reset();  // returns
}

TEST_F(HttpKubeClientTest, EveryAnswerIsReported) {
  std::vector<std::string> told;
  HttpKubeClient& client =
      Client({}, {.on_request = [&](const std::string& method, int code, double) {
               told.push_back(method + " " + std::to_string(code));
             }});
  script_ = {Answer(429), UnavailableError("cut")};
  (void)client.Create(WidgetType(), MakeWidget("a"));
  EXPECT_THAT(told, ElementsAre("POST 429", "POST 0"));
}

}  // namespace
}  // namespace lambdadnn
