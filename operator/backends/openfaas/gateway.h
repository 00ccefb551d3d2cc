// SPDX-License-Identifier: Apache-2.0
// The REST API of a gateway of OpenFaaS, as far as the backend needs it. Credentials are read from
// their files at each request, since a mounted Secret changes. Thread-safe; calls block for one
// request.
//
// Errors: kUnauthenticated (the gateway refuses the credentials), kPermissionDenied, kNotFound,
// kAlreadyExists, kInvalidArgument (it refuses what it was sent), kResourceExhausted (its edition
// allows no more functions), kUnimplemented (its edition does not run such an image),
// kFailedPrecondition (no gateway answers at the URL), kUnavailable (try again).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/endpoint.h"
#include "common/http/http_transport.h"
#include "common/json/json_reader.h"
#include "operator/cluster_view/openfaas_edition.h"

namespace lambdadnn {

// A function as the gateway lists it.
struct DeployedFunction {
  std::string name;
  std::map<std::string, std::string> labels;
  std::string created_at;  // as the gateway writes it; "" = it does not
  int64_t replicas = 0;
  int64_t available = 0;
};

class OpenFaasGateway {
 public:
  struct Options {
    Endpoint endpoint;  // of scheme http
    // A folder with the files basic-auth-user and basic-auth-password; empty = no credentials.
    std::string auth_folder = "";
    std::string function_namespace = "openfaas-fn";
    double call_seconds = 15;
  };

  // `transport` outlives this.
  OpenFaasGateway(HttpTransport& transport, Options options)
      : transport_(transport), options_(std::move(options)) {}

  const Options& options() const { return options_; }

  Result<OpenFaasEdition> Info();
  // Of all jobs, operators and users.
  Result<std::vector<DeployedFunction>> Functions();
  // `function` = OpenFaasFunction.
  Status Deploy(const Json& function);
  Status Delete(const std::string& function);
  // Names.
  Result<std::vector<std::string>> Secrets();
  // Makes it, or gives it another value.
  Status PutSecret(const std::string& name, const std::string& value);
  Status DeleteSecret(const std::string& name);
  // The last lines of a function, of all its replicas.
  Result<std::string> Logs(const std::string& function, int last_lines);
  // Where a function's requests go.
  Endpoint EndpointOf(const std::string& function) const;

 private:
  Result<std::string> Call(const std::string& method, const std::string& path, const Json& body);
  Result<HttpFields> Fields() const;

  HttpTransport& transport_;
  const Options options_;
};

}  // namespace lambdadnn
