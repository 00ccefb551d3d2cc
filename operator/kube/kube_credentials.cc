// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/kube_credentials.h"

#include <unistd.h>

#include "common/base/base64.h"
#include "common/base/files.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

constexpr Duration kTokenFileAge = std::chrono::minutes(1);
// Plugins may ask a person, or a slow identity provider.
constexpr Duration kPluginTime = std::chrono::minutes(2);

// KUBERNETES_EXEC_INFO, the plugin's input.
Json ExecInfo(const KubeConnection& connection) {
  Json spec = {
      {"interactive", isatty(STDIN_FILENO) != 0 && connection.exec->interactive_mode != "Never"}};
  if (connection.exec->provide_cluster_info) {
    Json cluster = {{"server", connection.server}};
    if (!connection.ca_pem.empty()) {
      cluster["certificate-authority-data"] = EncodeBase64(connection.ca_pem);
    }
    if (!connection.server_name.empty()) cluster["tls-server-name"] = connection.server_name;
    if (connection.insecure_skip_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!connection.proxy_url.empty()) cluster["proxy-url"] = connection.proxy_url;
    spec["cluster"] = std::move(cluster);
  }
  return {{"apiVersion", connection.exec->api_version},
          {"kind", "ExecCredential"},
          {"spec", std::move(spec)}};
}

}  // namespace

Result<KubeCredential> ParseExecCredential(std::string_view output,
                                           std::optional<WallTime>* expires) {
  const Result<Json> json = ParseJson(output);
  if (!json.ok()) return UnauthenticatedError("did not print JSON: " + json.status().message());
  if (!json->is_object() || TextField(*json, "kind") != "ExecCredential") {
    return UnauthenticatedError("did not print an ExecCredential");
  }
  const auto status = json->find("status");
  if (status == json->end() || !status->is_object()) {
    return UnauthenticatedError("printed an ExecCredential without status");
  }
  KubeCredential credential{.token = TextField(*status, "token"),
                            .client_certificate_pem = TextField(*status, "clientCertificateData"),
                            .client_key_pem = TextField(*status, "clientKeyData")};
  if (credential.token.empty() && credential.client_certificate_pem.empty()) {
    return UnauthenticatedError("printed neither a token nor a client certificate");
  }
  if (credential.client_certificate_pem.empty() != credential.client_key_pem.empty()) {
    return UnauthenticatedError("printed a client certificate without its key, or a key alone");
  }
  if (const std::string text = TextField(*status, "expirationTimestamp"); !text.empty()) {
    WallTime time;
    if (!ParseRfc3339(text, &time)) {
      return UnauthenticatedError("printed an expirationTimestamp that is no time: " + text);
    }
    *expires = time;
  }
  return credential;
}

KubeCredentials::KubeCredentials(const KubeConnection& connection, Clock& clock)
    : connection_(connection), clock_(clock) {}

Result<KubeCredential> KubeCredentials::Current() {
  const std::lock_guard lock(mutex_);
  if (cached_ && (!refresh_at_ || clock_.Now() < *refresh_at_)) return *cached_;
  Result<KubeCredential> fetched = Fetch();
  if (fetched.ok()) {
    cached_ = *fetched;
  } else if (cached_ && !connection_.exec) {
    // The file may be in replacement: its last content is valid until the server refuses it.
    return *cached_;
  }
  return fetched;
}

bool KubeCredentials::Refuse(const KubeCredential& used) {
  const std::lock_guard lock(mutex_);
  if (connection_.token_file.empty() && !connection_.exec) return false;
  // Another thread may have renewed it meanwhile.
  if (cached_ && *cached_ == used) cached_.reset();
  return true;
}

Result<KubeCredential> KubeCredentials::Fetch() {
  if (connection_.exec) return RunPlugin();
  KubeCredential credential{.token = connection_.token,
                            .client_certificate_pem = connection_.client_certificate_pem,
                            .client_key_pem = connection_.client_key_pem};
  refresh_at_.reset();
  if (connection_.token_file.empty()) return credential;
  const Result<std::string> token = ReadFile(connection_.token_file);
  if (!token.ok()) {
    return UnauthenticatedError("the token file " + connection_.token_file +
                                " cannot be read: " + token.status().message());
  }
  credential.token = std::string(Trim(*token));
  refresh_at_ = clock_.Now() + kTokenFileAge;
  return credential;
}

Result<KubeCredential> KubeCredentials::RunPlugin() {
  const ExecCredentialPlugin& plugin = *connection_.exec;
  const std::string what = "the credential plugin " + plugin.command;
  if (plugin.interactive_mode == "Always" && isatty(STDIN_FILENO) == 0) {
    return UnauthenticatedError(what +
                                " must ask on a terminal, and there is none; run the "
                                "command by hand, or use another user of the kubeconfig");
  }
  SubprocessSpec spec{
      .arguments = {plugin.command}, .environment = plugin.environment, .time_limit = kPluginTime};
  spec.arguments.insert(spec.arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
  spec.environment["KUBERNETES_EXEC_INFO"] = DumpJson(ExecInfo(connection_));
  const Result<SubprocessResult> run = RunSubprocess(spec);
  if (!run.ok()) {
    const std::string hint = plugin.install_hint.empty() ? "" : "; " + plugin.install_hint;
    return UnauthenticatedError(what + ": " + run.status().message() + hint);
  }
  if (run->exit_code != 0) {
    return UnauthenticatedError(what + " ended with exit code " + std::to_string(run->exit_code) +
                                "; run it by hand to see why");
  }
  std::optional<WallTime> expires;
  Result<KubeCredential> credential = ParseExecCredential(run->output, &expires);
  if (!credential.ok()) return UnauthenticatedError(what + " " + credential.status().message());
  refresh_at_.reset();
  if (expires) refresh_at_ = clock_.Now() + (*expires - clock_.Wall());
  return credential;
}

}  // namespace lambdadnn
