// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "common/base/base64.h"
#include "common/base/endpoint.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/json/yaml.h"
#include "operator/kube/kube_connection.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

// One named entry ({name: N, cluster|user|context: {...}}) and the file that it stands in.
struct Entry {
  Json value = Json::object();
  std::string file;
  std::string what;  // "FILE: user 'admin'", for messages
};

// All files that exist, in order.
class Kubeconfig {
 public:
  static Result<Kubeconfig> Read(const std::vector<std::string>& files) {
    Kubeconfig config;
    for (const std::string& file : files) {
      const Result<std::string> text = ReadFile(file);
      if (!text.ok()) {
        if (text.status().code() == StatusCode::kNotFound) continue;
        return text.status();
      }
      const YamlParseResult parsed = ParseYaml(*text);
      if (parsed.error) {
        return InvalidArgumentError(file + ":" + std::to_string(parsed.error->line) + ": " +
                                    parsed.error->message);
      }
      if (parsed.documents.empty()) continue;
      if (parsed.documents.size() > 1 || !parsed.documents[0].value.is_object()) {
        return InvalidArgumentError(file +
                                    ": is not a kubeconfig (one document with clusters, "
                                    "users and contexts)");
      }
      config.files_.emplace_back(file, parsed.documents[0].value);
    }
    if (!config.files_.empty()) return config;
    return NotFoundError("no kubeconfig found (" + Join(files, ", ") +
                         "); name one with --kubeconfig or the variable KUBECONFIG");
  }

  std::string CurrentContext() const {
    for (const auto& [file, json] : files_) {
      if (std::string name = TextField(json, "current-context"); !name.empty()) return name;
    }
    return "";
  }

  // `kind` is "context", "cluster" or "user".
  Result<Entry> Find(const std::string& kind, const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& [file, json] : files_) {
      const auto list = json.find(kind + "s");
      if (list == json.end() || !list->is_array()) continue;
      for (const Json& item : *list) {
        if (!item.is_object()) continue;
        names.push_back(TextField(item, "name"));
        if (names.back() != name) continue;
        const std::string what = file + ": " + kind + " '" + name + "'";
        const auto value = item.find(kind);
        if (value == item.end() || value->is_null()) return Entry{Json::object(), file, what};
        if (!value->is_object()) return InvalidArgumentError(what + " is not a mapping");
        return Entry{*value, file, what};
      }
    }
    const std::optional<std::string> near = NearestWord(name, names);
    return InvalidArgumentError(Join(Files(), ", ") + ": there is no " + kind + " '" + name + "'" +
                                (near            ? "; did you mean '" + *near + "'?"
                                 : names.empty() ? "; there is none at all"
                                                 : "; there are: " + Join(names, ", ")));
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& [file, json] : files_) names.push_back(file);
    return names;
  }

 private:
  std::vector<std::pair<std::string, Json>> files_;
};

std::string Absolute(const Entry& entry, const std::string& path) {
  if (path.empty() || path[0] == '/') return path;
  return (std::filesystem::path(entry.file).parent_path() / path).string();
}

// `field`-data as base64, else the content of the file `field`; data wins, as with kubectl.
Status ReadMaterial(const Entry& entry, const char* field, std::string* out) {
  const std::string data_field = std::string(field) + "-data";
  if (const std::string data = TextField(entry.value, data_field); !data.empty()) {
    std::optional<std::string> decoded = DecodeBase64(data);
    if (!decoded) {
      return InvalidArgumentError(entry.what + ": " + data_field +
                                  " is not base64 text; copy it whole");
    }
    *out = std::move(*decoded);
    return OkStatus();
  }
  const std::string file = Absolute(entry, TextField(entry.value, field));
  if (file.empty()) return OkStatus();
  Result<std::string> content = ReadFile(file);
  if (!content.ok()) return content.status().WithContext(entry.what + ": " + field);
  *out = std::move(*content);
  return OkStatus();
}

Status ReadCluster(const Entry& entry, KubeConnection* connection) {
  const Json& cluster = entry.value;
  const std::string server = TextField(cluster, "server");
  const Result<Endpoint> endpoint = ParseEndpoint(server);
  if (!endpoint.ok() || endpoint->scheme.empty()) {
    return InvalidArgumentError(entry.what + ": server '" + server +
                                "' is not a URL that begins with https://");
  }
  if (!endpoint->user_info.empty()) {
    return InvalidArgumentError(entry.what + ": server '" + endpoint->Text() +
                                "' has a user before its host, which Kubernetes does not take; "
                                "use a token, a client certificate or an exec plugin");
  }
  // As it is parsed, not as it is written: scheme and host in lower case.
  connection->server = endpoint->Text();
  if (endpoint->host.find(':') != std::string::npos) {
    return InvalidArgumentError(entry.what + ": server '" + connection->server +
                                "' is an IPv6 address, which the HTTP client does not take; write "
                                "a host name that resolves to it (and tls-server-name if the "
                                "certificate has another)");
  }
  connection->server_name = TextField(cluster, "tls-server-name");
  connection->proxy_url = TextField(cluster, "proxy-url");
  const auto insecure = cluster.find("insecure-skip-tls-verify");
  connection->insecure_skip_verify =
      insecure != cluster.end() && insecure->is_boolean() && insecure->get<bool>();
  return ReadMaterial(entry, "certificate-authority", &connection->ca_pem);
}

Status ReadExec(const Entry& entry, const Json& json, KubeConnection* connection) {
  ExecCredentialPlugin plugin;
  plugin.api_version = TextField(json, "apiVersion");
  plugin.command = TextField(json, "command");
  plugin.install_hint = TextField(json, "installHint");
  if (plugin.command.empty()) return InvalidArgumentError(entry.what + ": exec has no command");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return InvalidArgumentError(entry.what + ": exec.apiVersion '" + plugin.api_version +
                                "' is not client.authentication.k8s.io/v1 (or v1beta1)");
  }
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = Absolute(entry, plugin.command);
  }
  if (const auto args = json.find("args"); args != json.end() && args->is_array()) {
    for (const Json& arg : *args) {
      if (arg.is_string()) plugin.arguments.push_back(arg.get<std::string>());
    }
  }
  if (const auto env = json.find("env"); env != json.end() && env->is_array()) {
    for (const Json& variable : *env) {
      if (variable.is_object()) {
        plugin.environment[TextField(variable, "name")] = TextField(variable, "value");
      }
    }
  }
  const auto info = json.find("provideClusterInfo");
  plugin.provide_cluster_info = info != json.end() && info->is_boolean() && info->get<bool>();
  if (const std::string mode = TextField(json, "interactiveMode"); !mode.empty()) {
    plugin.interactive_mode = mode;
  }
  connection->exec = std::move(plugin);
  return OkStatus();
}

Status ReadUser(const Entry& entry, KubeConnection* connection) {
  const Json& user = entry.value;
  LDNN_RETURN_IF_ERROR(
      ReadMaterial(entry, "client-certificate", &connection->client_certificate_pem));
  LDNN_RETURN_IF_ERROR(ReadMaterial(entry, "client-key", &connection->client_key_pem));
  if (connection->client_certificate_pem.empty() != connection->client_key_pem.empty()) {
    return InvalidArgumentError(entry.what +
                                ": client-certificate and client-key belong together; give both");
  }
  // The file wins over the value, as with kubectl: it is the one that is renewed.
  connection->token_file = Absolute(entry, TextField(user, "tokenFile"));
  if (connection->token_file.empty()) connection->token = TextField(user, "token");
  for (const char* gone : {"auth-provider", "username"}) {
    if (user.contains(gone)) {
      return InvalidArgumentError(entry.what + ": " + gone +
                                  " is not supported (Kubernetes took it away); use a token, a "
                                  "client certificate or an exec plugin");
    }
  }
  const auto exec = user.find("exec");
  if (exec == user.end() || !exec->is_object()) return OkStatus();
  return ReadExec(entry, *exec, connection);
}

}  // namespace

std::vector<std::string> KubeconfigFiles(const std::string& option,
                                         const std::optional<std::string>& kubeconfig_variable,
                                         const std::optional<std::string>& home) {
  if (!option.empty()) return {option};
  std::vector<std::string> files;
  for (const std::string& file : Split(kubeconfig_variable.value_or(""), ':')) {
    if (!file.empty()) files.push_back(file);
  }
  if (files.empty() && home) files.push_back(*home + "/.kube/config");
  return files;
}

Result<KubeConnection> LoadKubeconfig(const std::vector<std::string>& files,
                                      const std::string& context) {
  LDNN_ASSIGN_OR_RETURN(const Kubeconfig config, Kubeconfig::Read(files));
  const std::string name = context.empty() ? config.CurrentContext() : context;
  if (name.empty()) {
    return InvalidArgumentError(Join(config.Files(), ", ") +
                                ": no current-context is set; name one with --context");
  }
  LDNN_ASSIGN_OR_RETURN(const Entry chosen, config.Find("context", name));
  LDNN_ASSIGN_OR_RETURN(const Entry cluster,
                        config.Find("cluster", TextField(chosen.value, "cluster")));
  KubeConnection connection;
  LDNN_RETURN_IF_ERROR(ReadCluster(cluster, &connection));
  if (const std::string user_name = TextField(chosen.value, "user"); !user_name.empty()) {
    LDNN_ASSIGN_OR_RETURN(const Entry user, config.Find("user", user_name));
    LDNN_RETURN_IF_ERROR(ReadUser(user, &connection));
  }
  if (const std::string space = TextField(chosen.value, "namespace"); !space.empty()) {
    connection.namespace_name = space;
  }
  return connection;
}

Result<KubeConnection> InClusterConnection(const std::optional<std::string>& host,
                                           const std::optional<std::string>& port,
                                           const std::string& folder) {
  if (!host || host->empty() || !port || port->empty()) {
    return FailedPreconditionError(
        "this process does not run in a pod (KUBERNETES_SERVICE_HOST and _PORT are not set); use "
        "--kubeconfig");
  }
  KubeConnection connection;
  connection.server = host->find(':') == std::string::npos ? "https://" + *host + ":" + *port
                                                           : "https://kubernetes.default.svc:443";
  connection.token_file = folder + "/token";
  Result<std::string> authorities = ReadFile(folder + "/ca.crt");
  if (!authorities.ok()) return authorities.status().WithContext("the pod's service account");
  connection.ca_pem = std::move(*authorities);
  const Result<std::string> space = ReadFile(folder + "/namespace");
  if (space.ok()) connection.namespace_name = std::string(Trim(*space));
  return connection;
}

}  // namespace lambdadnn
