// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/openfaas/gateway.h"

#include "common/base/base64.h"
#include "common/base/files.h"
#include "common/base/percent_encoding.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/json/json_path.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

constexpr uint64_t kMaxAnswerBytes = uint64_t{64} << 20;
constexpr size_t kShownBytes = 300;
constexpr const char* kUserFile = "/basic-auth-user";
constexpr const char* kPasswordFile = "/basic-auth-password";

bool Says(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

// By the answer's status and the provider's words, since it answers 500 and 400 to much.
Status ErrorOf(int status, const std::string& body, const std::string& what) {
  const std::string_view line = Trim(std::string_view(body).substr(0, kShownBytes));
  std::string words(line.substr(0, line.find('\n')));
  if (words.empty()) words = "HTTP status " + std::to_string(status);
  const std::string message = what + ": " + words;
  if (status == 401) {
    return UnauthenticatedError(
        what + ": the gateway refuses the credentials (" + words +
        "); give the operator those of the gateway's Secret basic-auth by --openfaas-auth-dir");
  }
  if (status == 403) return PermissionDeniedError(message);
  if (status == 404) return NotFoundError(message);
  if (status == 409 || Says(body, "already exists")) return AlreadyExistsError(message);
  if (Says(body, "unable to create function, maximum")) {
    return ResourceExhaustedError(
        message +
        "; its edition allows no more functions: wait until others end, or "
        "set --openfaas-max-functions to that maximum");
  }
  if (Says(body, "only allows public images")) {
    return UnimplementedError(
        message +
        "; push the image to a registry that gives it without credentials, or use "
        "another edition");
  }
  if (status == 429) return ResourceExhaustedError(message);
  if (status == 400 || status == 413) return InvalidArgumentError(message);
  return UnavailableError(message);
}

DeployedFunction ReadFunction(const Json& json) {
  DeployedFunction function;
  function.name = TextField(json, "name");
  function.created_at = TextField(json, "createdAt");
  if (const Json* labels = FindPath(json, {"labels"}); labels != nullptr && labels->is_object()) {
    for (const auto& [name, value] : labels->items()) {
      if (value.is_string()) function.labels[name] = value.get<std::string>();
    }
  }
  const auto count = [&json](const char* field) {
    const Json* number = FindPath(json, {field});
    return number != nullptr && number->is_number_integer() ? number->get<int64_t>() : 0;
  };
  function.replicas = count("replicas");
  function.available = count("availableReplicas");
  return function;
}

// Gateways write null for an empty list.
Result<Json> ReadList(const std::string& answer, const char* what) {
  Result<Json> json = ParseJson(answer, {.bytes = kMaxAnswerBytes});
  if (!json.ok() || !(json->is_array() || json->is_null())) {
    return UnavailableError(std::string(what) + ": the gateway's answer is no list");
  }
  return json->is_null() ? Json(Json::array()) : *std::move(json);
}

}  // namespace

Result<HttpFields> OpenFaasGateway::Fields() const {
  HttpFields fields = {{"Content-Type", "application/json"}};
  if (options_.auth_folder.empty()) return fields;
  const auto read = [this](const char* file) -> Result<std::string> {
    Result<std::string> text = ReadFile(options_.auth_folder + file);
    if (!text.ok()) return text.status().WithContext("--openfaas-auth-dir");
    return std::string(Trim(*text));
  };
  LDNN_ASSIGN_OR_RETURN(const std::string user, read(kUserFile));
  LDNN_ASSIGN_OR_RETURN(const std::string password, read(kPasswordFile));
  fields.emplace_back("Authorization", "Basic " + EncodeBase64(user + ":" + password));
  return fields;
}

Result<std::string> OpenFaasGateway::Call(const std::string& method, const std::string& path,
                                          const Json& body) {
  LDNN_ASSIGN_OR_RETURN(HttpFields fields, Fields());
  const std::string text = body.is_null() ? "" : DumpJson(body);
  HttpRequest request;
  request.method = method;
  request.url = options_.endpoint.Text() + path;
  request.fields = std::move(fields);
  if (!text.empty()) request.body = {AsBytes(text)};
  request.max_response_bytes = kMaxAnswerBytes;
  request.total_seconds = options_.call_seconds;
  const std::string what = method + " " + options_.endpoint.Text() + path;
  Result<HttpResponse> answer = transport_.Send(request);
  if (!answer.ok()) return answer.status().WithContext(what);
  std::string content(AsText(answer->body));
  if (answer->status >= 200 && answer->status < 300) return content;
  return ErrorOf(answer->status, content, what);
}

Result<OpenFaasEdition> OpenFaasGateway::Info() {
  constexpr const char* kNextStep =
      "; set --openfaas-gateway to its URL, such as http://gateway.openfaas:8080";
  const Result<std::string> answer = Call("GET", "/system/info", Json());
  const StatusCode code = answer.status().code();
  // A gateway has it, for everybody, and it takes no body.
  if (code == StatusCode::kNotFound || code == StatusCode::kPermissionDenied ||
      code == StatusCode::kInvalidArgument) {
    return FailedPreconditionError("what answers at " + options_.endpoint.Text() +
                                   " is no gateway of OpenFaaS" + kNextStep);
  }
  LDNN_RETURN_IF_ERROR(answer.status());
  Result<OpenFaasEdition> edition = ReadOpenFaasInfo(*answer);
  if (edition.ok()) return edition;
  return Status(edition.status().code(),
                options_.endpoint.Text() + ": " + edition.status().message() + kNextStep);
}

Result<std::vector<DeployedFunction>> OpenFaasGateway::Functions() {
  LDNN_ASSIGN_OR_RETURN(
      const std::string answer,
      Call("GET", "/system/functions?namespace=" + options_.function_namespace, Json()));
  LDNN_ASSIGN_OR_RETURN(const Json list, ReadList(answer, "functions"));
  std::vector<DeployedFunction> functions;
  functions.reserve(list.size());
  for (const Json& each : list) functions.push_back(ReadFunction(each));
  return functions;
}

Status OpenFaasGateway::Deploy(const Json& function) {
  return Call("POST", "/system/functions", function).status();
}

Status OpenFaasGateway::Delete(const std::string& function) {
  return Call("DELETE", "/system/functions?namespace=" + options_.function_namespace,
              {{"functionName", function}, {"namespace", options_.function_namespace}})
      .status();
}

Result<std::vector<std::string>> OpenFaasGateway::Secrets() {
  LDNN_ASSIGN_OR_RETURN(
      const std::string answer,
      Call("GET", "/system/secrets?namespace=" + options_.function_namespace, Json()));
  LDNN_ASSIGN_OR_RETURN(const Json list, ReadList(answer, "secrets"));
  std::vector<std::string> names;
  for (const Json& each : list) names.push_back(TextField(each, "name"));
  return names;
}

Status OpenFaasGateway::PutSecret(const std::string& name, const std::string& value) {
  const Json secret = {
      {"name", name}, {"namespace", options_.function_namespace}, {"value", value}};
  const Status made = Call("POST", "/system/secrets", secret).status();
  if (made.code() != StatusCode::kAlreadyExists) return made;
  return Call("PUT", "/system/secrets", secret).status();
}

Status OpenFaasGateway::DeleteSecret(const std::string& name) {
  const Status deleted = Call("DELETE", "/system/secrets",
                              {{"name", name}, {"namespace", options_.function_namespace}})
                             .status();
  return deleted.code() == StatusCode::kNotFound ? OkStatus() : deleted;
}

Result<std::string> OpenFaasGateway::Logs(const std::string& function, int last_lines) {
  LDNN_ASSIGN_OR_RETURN(
      const std::string answer,
      Call("GET",
           "/system/logs?follow=false&name=" + PercentEncode(function) +
               "&namespace=" + options_.function_namespace + "&tail=" + std::to_string(last_lines),
           Json()));
  std::string text;
  for (const std::string& line : Split(answer, '\n')) {
    const Result<Json> message = ParseJson(line, {.bytes = kMaxAnswerBytes});
    if (message.ok() && message->is_object()) text += TextField(*message, "text") + "\n";
  }
  return text;
}

Endpoint OpenFaasGateway::EndpointOf(const std::string& function) const {
  Endpoint endpoint = options_.endpoint;
  endpoint.path += "/function/" + function + "." + options_.function_namespace;
  return endpoint;
}

}  // namespace lambdadnn
