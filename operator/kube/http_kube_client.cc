// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/http_kube_client.h"

#include <algorithm>

#include "common/base/percent_encoding.h"
#include "common/http/http_date.h"
#include "common/json/dump_json.h"
#include "operator/kube/http_watch.h"
#include "operator/kube/kube_status.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

// URL paths of API objects. Names are percent-encoded, so that a user's input cannot change the
// path. An empty namespace = the whole cluster, or a kind without namespaces.
std::string CollectionPath(const ResourceType& type, const std::string& namespace_name) {
  std::string path = type.group.empty() ? "/api/" : "/apis/" + type.group + "/";
  path += type.version;
  if (!namespace_name.empty()) path += "/namespaces/" + PercentEncode(namespace_name);
  return path + "/" + type.plural;
}

std::string ObjectPath(const ResourceType& type, const ObjectName& name, Subresource subresource) {
  return CollectionPath(type, name.namespace_name) + "/" + PercentEncode(name.name) +
         (subresource == Subresource::kStatus ? "/status" : "");
}

constexpr uint64_t kMaxAnswerBytes = uint64_t{1} << 30;

std::string Describe(const char* verb, const ResourceType& type, const std::string& namespace_name,
                     const std::string& name) {
  std::string text = std::string(verb) + " " + type.plural;
  if (!namespace_name.empty() || !name.empty()) text += " ";
  if (!namespace_name.empty()) text += namespace_name + "/";
  return text + name;
}

HttpTransportOptions TransportOptions(const KubeConnection& connection,
                                      const KubeCredential& credential, double inactivity_seconds) {
  return {.inactivity_seconds = inactivity_seconds,
          .ca_pem = connection.ca_pem,
          .client_certificate_pem = credential.client_certificate_pem,
          .client_key_pem = credential.client_key_pem,
          .server_name = connection.server_name,
          .insecure_skip_verify = connection.insecure_skip_verify,
          .proxy_url = connection.proxy_url};
}

// Items of a list carry no apiVersion and kind where the type is a built-in one.
void NameItems(const ResourceType& type, Json* items) {
  const std::string version = type.group.empty() ? type.version : type.group + "/" + type.version;
  for (Json& item : *items) {
    if (!item.contains("apiVersion")) item["apiVersion"] = version;
    if (!item.contains("kind")) item["kind"] = type.kind;
  }
}

bool AreObjects(const Json& items) {
  if (items.is_null()) return true;  // none
  return items.is_array() &&
         std::all_of(items.begin(), items.end(), [](const Json& item) { return item.is_object(); });
}

bool SameCertificate(const KubeCredential& a, const KubeCredential& b) {
  return a.client_certificate_pem == b.client_certificate_pem &&
         a.client_key_pem == b.client_key_pem;
}

}  // namespace

HttpKubeClient::HttpKubeClient(const KubeConnection& connection, Runtime& runtime,
                               const HttpKubeClientOptions& options,
                               HttpTransportFactory new_transport)
    : connection_(connection),
      runtime_(runtime),
      options_(options),
      new_transport_(std::move(new_transport)),
      credentials_(connection, runtime.clock) {}

HttpKubeClient::~HttpKubeClient() = default;

Result<std::shared_ptr<HttpKubeClient::Session>> HttpKubeClient::SessionNow(
    KubeCredential* credential) {
  LDNN_ASSIGN_OR_RETURN(*credential, credentials_.Current());
  const std::lock_guard lock(mutex_);
  if (session_ != nullptr && SameCertificate(session_->credential, *credential)) return session_;
  auto session = std::make_shared<Session>();
  session->credential = *credential;
  LDNN_ASSIGN_OR_RETURN(
      session->calls,
      new_transport_(TransportOptions(connection_, *credential, options_.call_inactivity_seconds)));
  LDNN_ASSIGN_OR_RETURN(session->watches,
                        new_transport_(TransportOptions(connection_, *credential,
                                                        options_.watch_inactivity_seconds)));
  session_ = session;
  return session;
}

HttpRequest HttpKubeClient::MakeRequest(const std::string& method, const std::string& path,
                                        const KubeCredential& credential) const {
  HttpRequest request;
  request.method = method;
  request.url = connection_.server + path;
  request.fields = {{"Accept", "application/json"}, {"User-Agent", options_.user_agent}};
  if (!credential.token.empty()) {
    request.fields.emplace_back("Authorization", "Bearer " + credential.token);
  }
  return request;
}

// Spreads requests: each takes a place 1/rate after the one before it; `burst` places may lie in
// the past.
void HttpKubeClient::WaitForTurn() {
  if (options_.queries_per_second <= 0) return;
  const Duration step = FromSeconds(1 / options_.queries_per_second);
  Duration wait{0};
  {
    const std::lock_guard lock(mutex_);
    const Instant now = runtime_.clock.Now();
    const Instant oldest = now - step * options_.burst;
    next_turn_ = std::max(next_turn_.value_or(oldest), oldest) + step;
    wait = *next_turn_ - now;
  }
  if (wait > Duration::zero()) runtime_.clock.SleepFor(wait);
}

Result<HttpResponse> HttpKubeClient::SendOnce(const Call& call, const std::string& body,
                                              KubeCredential* credential) {
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, SessionNow(credential));
  HttpRequest request = MakeRequest(call.method, call.path, *credential);
  request.repeatable = call.method == "GET";
  request.max_response_bytes = kMaxAnswerBytes;
  request.total_seconds = options_.call_total_seconds;
  if (call.body != nullptr) {
    request.fields.emplace_back("Content-Type", call.content_type);
    request.body = {AsBytes(body)};
  }
  const Instant begin = runtime_.clock.Now();
  Result<HttpResponse> response = session->calls->Send(request);
  const Instant end = runtime_.clock.Now();
  if (options_.on_request) {
    options_.on_request(call.method, response.ok() ? response->status : 0, ToSeconds(end - begin));
  }
  WallTime date;
  if (options_.on_date && response.ok() &&
      ParseHttpDate(FindField(response->fields, "Date"), &date)) {
    options_.on_date(date, begin, end);
  }
  return response;
}

Result<Json> HttpKubeClient::Do(const Call& call) {
  LDNN_ASSIGN_OR_RETURN(const HttpResponse response, Ask(call));
  Result<Json> json =
      ParseJson(AsText(response.body), {.bytes = kMaxAnswerBytes, .cut_deep = true});
  if (!json.ok()) {
    return UnavailableError(call.what + ": the answer is not JSON: " + json.status().message());
  }
  // A proxy may answer for the server: callers access fields of the answer.
  if (!json->is_object()) return UnavailableError(call.what + ": the answer is no object");
  if (!call.name.empty() && MetadataText(*json, "name") != call.name) {
    return UnavailableError(call.what + ": the answer is not the object that was asked for");
  }
  return json;
}

Result<HttpResponse> HttpKubeClient::Ask(const Call& call) {
  // A message may quote a store or a function, in UTF-8 or not.
  const std::string body = call.body == nullptr ? "" : DumpJson(*call.body);
  bool refused = false;
  for (int attempt = 1;; ++attempt) {
    WaitForTurn();
    KubeCredential credential;
    Result<HttpResponse> response = SendOnce(call, body, &credential);
    if (!response.ok()) return response.status().WithContext(call.what);
    if (response->status / 100 == 2) return response;
    // Neither of these had any effect, whatever the method.
    if (response->status == 401 && !refused && credentials_.Refuse(credential)) {
      refused = true;
      continue;
    }
    const std::optional<Duration> wait = RetryAfter(*response);
    const bool later = response->status == 429 || (response->status == 503 && wait);
    if (!later || attempt >= options_.max_attempts) return StatusOfAnswer(call.what, *response);
    runtime_.clock.SleepFor(std::min(wait.value_or(std::chrono::seconds(1)),
                                     FromSeconds(options_.max_retry_after_seconds)));
  }
}

Result<Json> HttpKubeClient::Get(const ResourceType& type, const ObjectName& name) {
  return Do({.what = Describe("get", type, name.namespace_name, name.name),
             .method = "GET",
             .path = ObjectPath(type, name, Subresource::kNone),
             .name = name.name});
}

Result<KubeList> HttpKubeClient::List(const ResourceType& type, const std::string& namespace_name,
                                      const std::string& label_selector, int limit,
                                      const std::string& continue_token) {
  std::string path = CollectionPath(type, namespace_name) + "?limit=" + std::to_string(limit);
  if (!label_selector.empty()) path += "&labelSelector=" + PercentEncode(label_selector);
  if (!continue_token.empty()) path += "&continue=" + PercentEncode(continue_token);
  const std::string what = Describe("list", type, namespace_name, "");
  LDNN_ASSIGN_OR_RETURN(Json json, Do({.what = what, .method = "GET", .path = path}));
  Json* const items = json.contains("items") ? &json["items"] : nullptr;
  if (items == nullptr || !AreObjects(*items)) {
    return UnavailableError(what + ": the answer is no list of objects");
  }
  NameItems(type, items);
  KubeList list;
  for (Json& item : *items) list.items.push_back(std::move(item));
  list.resource_version = MetadataText(json, "resourceVersion");
  list.continue_token = MetadataText(json, "continue");
  return list;
}

Result<Json> HttpKubeClient::Create(const ResourceType& type, const Json& object) {
  const ObjectName name = NameOf(object);
  return Do({.what = Describe("create", type, name.namespace_name, name.name),
             .method = "POST",
             .path = CollectionPath(type, name.namespace_name) + "?fieldValidation=Strict" +
                     "&fieldManager=" + PercentEncode(options_.field_manager),
             .body = &object});
}

Result<Json> HttpKubeClient::CreateDryRun(const ResourceType& type, const Json& object) {
  const ObjectName name = NameOf(object);
  return Do({.what = Describe("try to create", type, name.namespace_name, name.name),
             .method = "POST",
             .path = CollectionPath(type, name.namespace_name) +
                     "?dryRun=All&fieldValidation=Strict" +
                     "&fieldManager=" + PercentEncode(options_.field_manager),
             .body = &object});
}

Result<Json> HttpKubeClient::Update(const ResourceType& type, const Json& object,
                                    Subresource subresource) {
  const ObjectName name = NameOf(object);
  return Do({.what = Describe("update", type, name.namespace_name, name.name),
             .method = "PUT",
             .path = ObjectPath(type, name, subresource) + "?fieldValidation=Strict" +
                     "&fieldManager=" + PercentEncode(options_.field_manager),
             .body = &object,
             .name = name.name});
}

Result<Json> HttpKubeClient::Patch(const ResourceType& type, const ObjectName& name,
                                   const Json& merge_patch, Subresource subresource) {
  return Do({.what = Describe("patch", type, name.namespace_name, name.name),
             .method = "PATCH",
             .path = ObjectPath(type, name, subresource) + "?fieldValidation=Strict" +
                     "&fieldManager=" + PercentEncode(options_.field_manager),
             .body = &merge_patch,
             .content_type = "application/merge-patch+json",
             .name = name.name});
}

Status HttpKubeClient::Delete(const ResourceType& type, const ObjectName& name,
                              const std::string& uid_precondition) {
  return DeleteWith(type, name, uid_precondition, Json::object());
}

Status HttpKubeClient::DeleteWithin(const ResourceType& type, const ObjectName& name,
                                    const std::string& uid_precondition, int grace_seconds) {
  return DeleteWith(type, name, uid_precondition, {{"gracePeriodSeconds", grace_seconds}});
}

Status HttpKubeClient::DeleteWith(const ResourceType& type, const ObjectName& name,
                                  const std::string& uid_precondition, Json options) {
  options["apiVersion"] = "v1";
  options["kind"] = "DeleteOptions";
  options["propagationPolicy"] = "Background";
  if (!uid_precondition.empty()) options["preconditions"] = {{"uid", uid_precondition}};
  return Do({.what = Describe("delete", type, name.namespace_name, name.name),
             .method = "DELETE",
             .path = ObjectPath(type, name, Subresource::kNone),
             .body = &options})
      .status();
}

Result<std::string> HttpKubeClient::PodLog(const ObjectName& pod, const std::string& container,
                                           ContainerRun run, int last_lines) {
  std::string path = ObjectPath(PodType(), pod, Subresource::kNone) +
                     "/log?container=" + PercentEncode(container) +
                     "&tailLines=" + std::to_string(last_lines);
  if (run == ContainerRun::kPrevious) path += "&previous=true";
  const Result<HttpResponse> response =
      Ask({.what = Describe("get log of", PodType(), pod.namespace_name, pod.name),
           .method = "GET",
           .path = path});
  // The server's answer for a container that has not started, or has no previous run.
  if (response.status().code() == StatusCode::kInvalidArgument) {
    return NotFoundError(response.status().message());
  }
  LDNN_RETURN_IF_ERROR(response.status());
  return std::string(AsText(response->body));
}

Result<std::unique_ptr<Watch>> HttpKubeClient::StartWatch(const ResourceType& type,
                                                          const std::string& namespace_name,
                                                          const std::string& label_selector,
                                                          const std::string& resource_version) {
  const int seconds =
      options_.watch_seconds + static_cast<int>(runtime_.random.Below(
                                   static_cast<uint64_t>(std::max(1, options_.watch_seconds))));
  std::string path = CollectionPath(type, namespace_name) +
                     "?watch=1&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(seconds);
  if (!label_selector.empty()) path += "&labelSelector=" + PercentEncode(label_selector);
  if (!resource_version.empty()) path += "&resourceVersion=" + PercentEncode(resource_version);
  WaitForTurn();
  KubeCredential credential;
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, SessionNow(&credential));
  return NewHttpWatch(
      runtime_, Describe("watch", type, namespace_name, ""), MakeRequest("GET", path, credential),
      // The watch keeps the session, and so its transport, alive.
      [session](const HttpRequest& request) { return session->watches->Send(request); },
      [this, credential] { credentials_.Refuse(credential); });
}

}  // namespace lambdadnn
