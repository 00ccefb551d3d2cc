// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kube_http_facade.h"

#include <algorithm>
#include <map>

#include "common/base/percent_encoding.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

struct Refusal {
  int http_status;
  const char* reason;
};

Refusal RefusalOf(StatusCode code) {
  switch (code) {
    case StatusCode::kNotFound:
      return {404, "NotFound"};
    case StatusCode::kAlreadyExists:
      return {409, "AlreadyExists"};
    case StatusCode::kAborted:
      return {409, "Conflict"};
    case StatusCode::kInvalidArgument:
      return {422, "Invalid"};
    case StatusCode::kPermissionDenied:
      return {403, "Forbidden"};
    case StatusCode::kOutOfRange:
      return {410, "Expired"};
    case StatusCode::kUnavailable:
      return {503, "ServiceUnavailable"};
    default:
      return {500, "InternalError"};
  }
}

Json StatusObject(const Status& status) {
  const Refusal refusal = RefusalOf(status.code());
  return {{"kind", "Status"},          {"apiVersion", "v1"},
          {"status", "Failure"},       {"message", status.message()},
          {"reason", refusal.reason},  {"code", refusal.http_status},
          {"metadata", Json::object()}};
}

HttpResponse JsonAnswer(int status, const Json& body) {
  HttpResponse response;
  response.status = status;
  response.fields = {{"Content-Type", "application/json"}};
  response.body = ToBytes(DumpJson(body));
  return response;
}

std::string TypeName(WatchEvent::Kind kind) {
  switch (kind) {
    case WatchEvent::Kind::kAdded:
      return "ADDED";
    case WatchEvent::Kind::kModified:
      return "MODIFIED";
    case WatchEvent::Kind::kDeleted:
      return "DELETED";
    case WatchEvent::Kind::kBookmark:
      return "BOOKMARK";
    case WatchEvent::Kind::kError:
      return "ERROR";
  }
  return "";
}

Json ListObject(const KubeList& list) {
  Json object = {{"kind", "List"},
                 {"apiVersion", "v1"},
                 {"metadata", {{"resourceVersion", list.resource_version}}},
                 {"items", list.items}};
  if (!list.continue_token.empty()) object["metadata"]["continue"] = list.continue_token;
  return object;
}

}  // namespace

HttpResponse KubeRefusal(const Status& status) {
  return JsonAnswer(RefusalOf(status.code()).http_status, StatusObject(status));
}

struct KubeHttpFacade::Target {
  ResourceType type;
  ObjectName name;  // name.name empty: the collection
  Subresource subresource = Subresource::kNone;
  std::map<std::string, std::string> query;

  std::string Query(const std::string& key) const {
    const auto found = query.find(key);
    return found == query.end() ? "" : found->second;
  }
};

KubeHttpFacade::KubeHttpFacade(KubeClient& server, std::vector<ResourceType> types,
                               size_t watch_piece, Duration watch_poll)
    : server_(server),
      types_(std::move(types)),
      watch_piece_(watch_piece),
      watch_poll_(watch_poll) {}

std::optional<KubeHttpFacade::Target> KubeHttpFacade::Parse(const HttpRequest& request) const {
  Target target;
  std::string url = request.url.substr(request.url.find('/', request.url.find("://") + 3));
  const size_t mark = url.find('?');
  if (mark != std::string::npos) {
    for (const std::string& pair : Split(std::string_view(url).substr(mark + 1), '&')) {
      const size_t equals = pair.find('=');
      target.query[pair.substr(0, equals)] = PercentDecode(pair.substr(equals + 1)).value_or("");
    }
    url.resize(mark);
  }
  std::vector<std::string> parts = Split(std::string_view(url).substr(1), '/');
  // [api, VERSION] or [apis, GROUP, VERSION], then [namespaces, NS], PLURAL, [NAME, [status]].
  const bool core = !parts.empty() && parts[0] == "api";
  const size_t head = core ? 2 : 3;
  if (parts.size() <= head) return std::nullopt;
  const std::string group = core ? "" : parts[1];
  const std::string version = parts[head - 1];
  parts.erase(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(head));
  if (parts.size() > 2 && parts[0] == "namespaces") {
    target.name.namespace_name = PercentDecode(parts[1]).value_or("");
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  const auto type = std::find_if(types_.begin(), types_.end(), [&](const ResourceType& known) {
    return known.group == group && known.version == version && known.plural == parts[0];
  });
  if (type == types_.end()) return std::nullopt;
  target.type = *type;
  if (parts.size() > 1) target.name.name = PercentDecode(parts[1]).value_or("");
  if (parts.size() > 2) target.subresource = Subresource::kStatus;
  return target;
}

Result<HttpResponse> KubeHttpFacade::Send(const HttpRequest& request) {
  if (request.cancellation != nullptr && request.cancellation->cancelled()) {
    return CancelledError("ended by its caller");
  }
  if (intercept) {
    if (std::optional<Result<HttpResponse>> answer = intercept(request)) return std::move(*answer);
  }
  const std::optional<Target> target = Parse(request);
  if (!target)
    return KubeRefusal(NotFoundError("the server could not find the requested resource"));
  if (request.method == "GET" && target->Query("watch") == "1") return Stream(request, *target);
  const Result<Json> answer = Call(request, *target);
  if (!answer.ok()) return KubeRefusal(answer.status());
  return JsonAnswer(request.method == "POST" ? 201 : 200, *answer);
}

Result<Json> KubeHttpFacade::Call(const HttpRequest& request, const Target& target) {
  Json body;
  if (!request.body.empty()) {
    LDNN_ASSIGN_OR_RETURN(body, ParseJson(AsText(request.body[0])));
  }
  if (request.method == "GET" && target.name.name.empty()) {
    LDNN_ASSIGN_OR_RETURN(
        const KubeList list,
        server_.List(target.type, target.name.namespace_name, target.Query("labelSelector"),
                     static_cast<int>(ParseInteger(target.Query("limit")).value_or(0)),
                     target.Query("continue")));
    return ListObject(list);
  }
  if (request.method == "GET") return server_.Get(target.type, target.name);
  if (request.method == "POST") return server_.Create(target.type, body);
  if (request.method == "PUT") return server_.Update(target.type, body, target.subresource);
  if (request.method == "PATCH") {
    if (FindField(request.fields, "Content-Type") != "application/merge-patch+json") {
      return InvalidArgumentError("the body of the request was in an unknown format");
    }
    return server_.Patch(target.type, target.name, body, target.subresource);
  }
  const std::string uid = body.value(Json::json_pointer("/preconditions/uid"), "");
  LDNN_RETURN_IF_ERROR(server_.Delete(target.type, target.name, uid));
  return Json{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}};
}

bool KubeHttpFacade::SendPieces(const HttpRequest& request, const std::string& line) const {
  std::string_view rest = line;
  while (!rest.empty()) {
    if (!request.on_body(AsBytes(rest.substr(0, watch_piece_)))) return false;
    rest.remove_prefix(std::min(watch_piece_, rest.size()));
  }
  return true;
}

HttpResponse KubeHttpFacade::Stream(const HttpRequest& request, const Target& target) {
  Result<std::unique_ptr<Watch>> watch =
      server_.StartWatch(target.type, target.name.namespace_name, target.Query("labelSelector"),
                         target.Query("resourceVersion"));
  if (!watch.ok()) return KubeRefusal(watch.status());
  HttpResponse response;
  response.status = 200;
  while (!request.cancellation->cancelled()) {
    Result<WatchEvent> event = (*watch)->Next(watch_poll_);
    if (!event.ok()) {
      if (event.status().code() == StatusCode::kDeadlineExceeded) continue;
      if (event.status().code() != StatusCode::kOutOfRange) break;  // the stream ends
      event = WatchEvent{WatchEvent::Kind::kError, StatusObject(event.status())};
    }
    const Json line = {{"type", TypeName(event->kind)}, {"object", event->object}};
    if (!SendPieces(request, DumpJson(line) + "\n")) break;
    if (event->kind == WatchEvent::Kind::kError) break;
  }
  return response;
}

}  // namespace lambdadnn
