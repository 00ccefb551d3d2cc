// SPDX-License-Identifier: Apache-2.0
// Address of one API server and identity of the client, from a kubeconfig or a pod's service
// account. Plain values; credentials are fetched from it by kube_credentials.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace lambdadnn {

// A program that prints credentials (client.authentication.k8s.io ExecCredential).
struct ExecCredentialPlugin {
  std::string api_version = "";
  std::string command =
      "";  // relative ones with a '/' are made absolute when the kubeconfig is read
  std::vector<std::string> arguments = {};
  std::map<std::string, std::string> environment = {};
  std::string install_hint = "";
  bool provide_cluster_info = false;
  // Never | IfAvailable | Always
  std::string interactive_mode = "IfAvailable";
};

struct KubeConnection {
  std::string server = "";  // "https://host:port", without a slash at its end
  std::string namespace_name = "default";
  std::string ca_pem = "";  // empty = the system's authorities
  std::string server_name = "";
  bool insecure_skip_verify = false;
  std::string proxy_url = "";

  // Any of these; a token file is read again as it changes.
  std::string client_certificate_pem = "";
  std::string client_key_pem = "";
  std::string token = "";
  std::string token_file = "";
  std::optional<ExecCredentialPlugin> exec = std::nullopt;
};

// The files that kubectl would read: `option` (--kubeconfig) alone if given, else those of
// $KUBECONFIG (separated by ':'), else ~/.kube/config.
std::vector<std::string> KubeconfigFiles(const std::string& option,
                                         const std::optional<std::string>& kubeconfig_variable,
                                         const std::optional<std::string>& home);

// One connection from kubeconfig files, merged as kubectl does: the first file that says something
// wins, files that do not exist are passed over, relative paths belong to the file that names them.
// `context` empty = the current one. kNotFound: none of the files exists; kInvalidArgument names
// the file and the entry that makes no sense.
Result<KubeConnection> LoadKubeconfig(const std::vector<std::string>& files,
                                      const std::string& context);

inline constexpr const char* kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// A pod's own: `host` and `port` are the values of KUBERNETES_SERVICE_HOST and _PORT. An IPv6 host
// is replaced by the API server's name in the cluster's DNS (the HTTP client takes no IPv6
// literal). kFailedPrecondition: this is no pod.
Result<KubeConnection> InClusterConnection(const std::optional<std::string>& host,
                                           const std::optional<std::string>& port,
                                           const std::string& folder = kServiceAccountFolder);

}  // namespace lambdadnn
