// SPDX-License-Identifier: Apache-2.0
// A gateway of OpenFaaS with its provider, on an in-memory API server: answers as a gateway 0.25.4
// with faas-netes does, word for word where the words count. A deleted function is listed until
// Reconcile has taken its pods away. Thread-safe as far as the tests need it: one task.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/base64.h"
#include "common/base/text.h"
#include "common/http/http_transport.h"
#include "common/json/dump_json.h"
#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/openfaas_function.h"

namespace lambdadnn {

class OpenFaasStandIn {
 public:
  static constexpr const char* kNamespace = "openfaas-fn";
  struct Function {
    Json request;
    std::string created_at;
    bool deleted = false;
    int64_t available = 0;
  };

  explicit OpenFaasStandIn(InMemoryApiServer& server) : server_(server) {}

  // A transport to it, which may be one of several and outlives it not.
  std::unique_ptr<HttpTransport> Connect() { return std::make_unique<Connection>(*this); }

  // What Kubernetes would do next: pods for functions, none for those that are deleted.
  void Reconcile() {
    std::erase_if(functions, [this](const auto& entry) {
      if (!entry.second.deleted) return false;
      for (const Json& pod : PodsOf(entry.first)) {
        static_cast<void>(server_.Delete(PodType(), lambdadnn::NameOf(pod), ""));
      }
      return true;
    });
    for (const auto& [name, function] : functions) {
      if (PodsOf(name).empty()) MakePod(name, function);
    }
  }
  void MakeAllReady() {
    for (auto& [name, function] : functions) {
      function.available = 1;
      for (const Json& pod : PodsOf(name)) SetReady(pod, name);
    }
  }
  std::vector<Json> PodsOf(const std::string& function) {
    return server_
        .List(PodType(), kNamespace, std::string(kOpenFaasFunctionLabel) + "=" + function, 100, "")
        .value()
        .items;
  }
  void Put(const std::string& name, const Json& labels) {
    functions[name] = {
        {{"service", name}, {"image", "user:1"}, {"labels", labels}}, NextTime(), false, 1};
  }

  std::map<std::string, Function> functions;
  std::map<std::string, std::string> secrets;
  std::set<std::string> other_objects;  // Deployments of these names that are no functions
  std::string credentials;              // "user:password"; empty = none are wanted
  std::string info =
      R"({"provider":{"provider":"faas-netes-ce","version":{"sha":"","release":"dev"},"orchestration":"kubernetes"},"version":{"sha":"","release":"0.25.4"},"arch":"x86_64"})";
  bool away = false;                  // nobody answers
  int most_functions = 0;             // of a later community edition
  bool refuses_images = false;        // as it does those that nobody else can pull
  std::set<std::string> undeletable;  // functions and secrets
  int requests = 0;
  std::vector<std::string> calls;  // "POST /system/functions", in their order

 private:
  class Connection final : public HttpTransport {
   public:
    explicit Connection(OpenFaasStandIn& gateway) : gateway_(gateway) {}
    Result<HttpResponse> Send(const HttpRequest& request) override {
      return gateway_.Answer(request);
    }

   private:
    OpenFaasStandIn& gateway_;
  };

  static HttpResponse Say(int status, const std::string& text = "") {
    HttpResponse response;
    response.status = status;
    response.body.resize(text.size());
    std::copy(text.begin(), text.end(), reinterpret_cast<char*>(response.body.data()));
    return response;
  }

  Result<HttpResponse> Answer(const HttpRequest& request) {
    ++requests;
    if (away) return UnavailableError("connecting to gateway: connection refused");
    const size_t host = request.url.find("://");
    const std::string path = request.url.substr(request.url.find('/', host + 3));
    const std::string route = path.substr(0, path.find('?'));
    calls.push_back(request.method + " " + route);
    if (!credentials.empty() &&
        FindField(request.fields, "Authorization") != "Basic " + EncodeBase64(credentials)) {
      return Say(401, "invalid credentials\n");
    }
    Json body;
    if (!request.body.empty())
      body = ParseJson(std::string(AsText(request.body.front())), {}).value();
    if (route == "/system/info") return Say(200, info);
    if (route == "/system/functions") return OfFunctions(request.method, body);
    if (route == "/system/secrets") return OfSecrets(request.method, body);
    return Say(404, "404 page not found\n");
  }

  HttpResponse OfFunctions(const std::string& method, const Json& body) {
    if (method == "GET") return Say(200, DumpJson(Listed()));
    if (method == "DELETE") {
      const std::string name = body.at("functionName");
      if (undeletable.contains(name)) return Say(500, "no\n");
      if (!functions.contains(name)) {
        return Say(404, "deployments.apps \"" + name + "\" not found");
      }
      functions[name].deleted = true;
      return Say(202);
    }
    const std::string name = body.at("service");
    if (body.value("namespace", kNamespace) != kNamespace) {
      return Say(400, std::string("valid namespaces are: ") + kNamespace + "\n");
    }
    for (const Json& secret : body.value("secrets", Json::array())) {
      if (!secrets.contains(secret)) {
        return Say(400, "unable to fetch secrets: secrets \"" + secret.get<std::string>() +
                            "\" not found\n");
      }
    }
    if (refuses_images) {
      return Say(400, "the Community Edition license agreement only allows public images\n");
    }
    if (most_functions > 0 && static_cast<int>(functions.size()) >= most_functions) {
      return Say(400,
                 "unable to create function, maximum: " + std::to_string(most_functions) + "\n");
    }
    if (functions.contains(name) || other_objects.contains(name)) {
      return Say(500,
                 "unable create Deployment: deployments.apps \"" + name + "\" already exists\n");
    }
    functions[name] = {body, NextTime(), false, 0};
    return Say(202);
  }

  Json Listed() const {
    Json list = Json::array();
    for (const auto& [name, function] : functions) {
      Json labels = function.request.value("labels", Json::object());
      labels[kOpenFaasFunctionLabel] = name;
      list.push_back({{"name", name},
                      {"image", function.request.at("image")},
                      {"namespace", kNamespace},
                      {"labels", std::move(labels)},
                      {"replicas", 1},
                      {"availableReplicas", function.available},
                      {"createdAt", function.created_at}});
    }
    return list;
  }

  HttpResponse OfSecrets(const std::string& method, const Json& body) {
    if (method == "GET") {
      Json list = Json::array();
      for (const auto& [name, value] : secrets)
        list.push_back({{"name", name}, {"namespace", kNamespace}});
      return Say(200, DumpJson(list));
    }
    const std::string name = body.at("name");
    const bool there = secrets.contains(name);
    if (method == "POST" && there) return Say(409);
    if (method != "POST" && !there) return Say(404);
    if (method == "DELETE") {
      if (undeletable.contains(name)) return Say(500, "no\n");
      secrets.erase(name);
    } else {
      secrets[name] = body.at("value");
    }
    return Say(202);
  }

  std::string NextTime() {
    const int second = ++made_;
    return "2033-01-01T00:00:" + std::string(second < 10 ? "0" : "") + std::to_string(second % 60) +
           "Z";
  }

  void MakePod(const std::string& name, const Function& function) {
    Json labels = function.request.value("labels", Json::object());
    labels[kOpenFaasFunctionLabel] = name;
    const ObjectName owner = {kNamespace, "owner-of-pods"};
    Result<Json> there = server_.Get(PodType(), owner);
    if (!there.ok()) {
      there = server_.Create(PodType(),
                             {{"apiVersion", "v1"},
                              {"kind", "Pod"},
                              {"metadata", {{"name", owner.name}, {"namespace", kNamespace}}}});
    }
    const Json reference = {{"apiVersion", "v1"},
                            {"kind", "Pod"},
                            {"name", owner.name},
                            {"controller", true},
                            {"uid", UidOf(*there)}};
    static_cast<void>(
        server_
            .Create(PodType(), {{"apiVersion", "v1"},
                                {"kind", "Pod"},
                                {"metadata",
                                 {{"name", name + "-" + std::to_string(++pods_)},
                                  {"namespace", kNamespace},
                                  {"labels", std::move(labels)},
                                  {"ownerReferences", Json::array({reference})}}},
                                {"spec", {{"containers", Json::array({{{"name", name}}})}}}})
            .value());
  }

  void SetReady(const Json& pod, const std::string& function) {
    const Json ready = {
        {"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", "2033-01-01T00:00:00Z"}};
    const Json status = {
        {"phase", "Running"},
        {"podIP", "10.244.1.7"},
        {"conditions", Json::array({ready})},
        {"containerStatuses", Json::array({{{"name", function}, {"restartCount", 0}}})}};
    static_cast<void>(
        server_.Patch(PodType(), lambdadnn::NameOf(pod), {{"status", status}}, Subresource::kNone)
            .value());
  }

  InMemoryApiServer& server_;
  int made_ = 0;
  int pods_ = 0;
};

}  // namespace lambdadnn
