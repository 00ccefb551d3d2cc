// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/base64.h"
#include "common/base/files.h"
#include "operator/kube/kube_connection.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class KubeconfigTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/" + name, content).ok());
    return folder_ + "/" + name;
  }
  // One cluster, context and user named "a", with these fields inside.
  std::string WriteConfig(const std::string& cluster, const std::string& user,
                          const std::string& name = "config") {
    return Write(name,
                 "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
                 "clusters: [{name: a, cluster: {" +
                     cluster +
                     "}}]\n"
                     "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
                     "users: [{name: a, user: {" +
                     user + "}}]\n");
  }
  Status Refusal(const std::string& file, const std::string& context = "") {
    const Result<KubeConnection> connection = LoadKubeconfig({file}, context);
    EXPECT_FALSE(connection.ok());
    return connection.status();
  }
  const std::string folder_ = MakeTempDir();
};

constexpr const char* kServer = "server: \"https://api:6443/\"";

TEST_F(KubeconfigTest, DataAndFilesAreRead) {
  Write("ca.pem", "authority");
  Write("key.pem", "key");
  const std::string file = WriteConfig(
      std::string(kServer) +
          ", certificate-authority: ca.pem, tls-server-name: api.internal, "
          "proxy-url: \"http://proxy:3128\"",
      "client-certificate-data: " + EncodeBase64("certificate") + ", client-key: key.pem");
  const Result<KubeConnection> connection = LoadKubeconfig({file}, "");
  ASSERT_TRUE(connection.ok()) << connection.status().ToString();
  EXPECT_EQ(connection->server, "https://api:6443");
  EXPECT_EQ(connection->ca_pem, "authority");
  EXPECT_EQ(connection->server_name, "api.internal");
  EXPECT_EQ(connection->proxy_url, "http://proxy:3128");
  EXPECT_EQ(connection->client_certificate_pem, "certificate");
  EXPECT_EQ(connection->client_key_pem, "key");
  EXPECT_EQ(connection->namespace_name, "default");
  EXPECT_FALSE(connection->insecure_skip_verify);
}

TEST_F(KubeconfigTest, SchemeAndHostOfTheServerAreInLowerCase) {
  const Result<KubeConnection> connection =
      LoadKubeconfig({WriteConfig("server: \"hTTps://API.Internal:6443/a//\"", "token: t")}, "");
  ASSERT_TRUE(connection.ok()) << connection.status().ToString();
  EXPECT_EQ(connection->server, "https://api.internal:6443/a");
}

TEST_F(KubeconfigTest, DataWinsOverAFile) {
  Write("ca.pem", "file");
  const std::string file = WriteConfig(std::string(kServer) +
                                           ", certificate-authority: ca.pem, "
                                           "certificate-authority-data: " +
                                           EncodeBase64("data"),
                                       "token: t");
  EXPECT_EQ(LoadKubeconfig({file}, "")->ca_pem, "data");
}

TEST_F(KubeconfigTest, TheFirstFileThatSaysSomethingWins) {
  const std::string first = Write("first",
                                  "current-context: two\n"
                                  "users: [{name: u, user: {token: first}}]\n");
  const std::string second = Write(
      "second",
      "current-context: one\n"
      "clusters: [{name: c, cluster: {server: \"https://c\", insecure-skip-tls-verify: true}}]\n"
      "contexts: [{name: one, context: {cluster: c, user: u}},\n"
      "           {name: two, context: {cluster: c, user: u, namespace: team-a}}]\n"
      "users: [{name: u, user: {token: second}}]\n");
  const std::vector<std::string> files = {folder_ + "/absent", first, second};
  const Result<KubeConnection> connection = LoadKubeconfig(files, "");
  ASSERT_TRUE(connection.ok()) << connection.status().ToString();
  EXPECT_EQ(connection->token, "first");
  EXPECT_EQ(connection->namespace_name, "team-a");
  EXPECT_TRUE(connection->insecure_skip_verify);
  EXPECT_EQ(LoadKubeconfig(files, "one")->namespace_name, "default");
}

TEST_F(KubeconfigTest, AnExecPluginIsReadWhole) {
  const std::string file = WriteConfig(
      kServer,
      "exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, args: [a, \"b c\"], "
      "env: [{name: X, value: \"1\"}], installHint: install it, provideClusterInfo: true, "
      "interactiveMode: Never}");
  const Result<KubeConnection> connection = LoadKubeconfig({file}, "");
  ASSERT_TRUE(connection.ok()) << connection.status().ToString();
  ASSERT_TRUE(connection->exec.has_value());
  EXPECT_EQ(connection->exec->command, folder_ + "/bin/login");
  EXPECT_THAT(connection->exec->arguments, ElementsAre("a", "b c"));
  EXPECT_EQ(connection->exec->environment.at("X"), "1");
  EXPECT_EQ(connection->exec->install_hint, "install it");
  EXPECT_TRUE(connection->exec->provide_cluster_info);
  EXPECT_EQ(connection->exec->interactive_mode, "Never");
}

TEST_F(KubeconfigTest, WhatMakesNoSenseIsNamed) {
  const auto message = [&](const std::string& cluster, const std::string& user) {
    const Status status = Refusal(WriteConfig(cluster, user));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(folder_ + "/config: "));
    return status.message();
  };
  EXPECT_THAT(message("server: api", ""), HasSubstr("https://"));
  EXPECT_THAT(message("server: \"https://[::1]:6443\"", ""), HasSubstr("IPv6"));
  EXPECT_THAT(message("server: \"https://me:secret@api\"", ""),
              AllOf(HasSubstr("'https://api' has a user"), Not(HasSubstr("secret"))));
  EXPECT_THAT(message(std::string(kServer) + ", certificate-authority-data: \"%\"", ""),
              HasSubstr("certificate-authority-data is not base64"));
  EXPECT_THAT(message(kServer, "client-key-data: " + EncodeBase64("k")), HasSubstr("give both"));
  EXPECT_THAT(message(kServer, "username: u, password: p"), HasSubstr("username is not supported"));
  EXPECT_THAT(message(kServer, "auth-provider: {name: gcp}"), HasSubstr("auth-provider"));
  EXPECT_THAT(message(kServer, "exec: {apiVersion: v0, command: x}"), HasSubstr("exec.apiVersion"));
  EXPECT_THAT(message(kServer, "exec: {}"), HasSubstr("no command"));
}

TEST_F(KubeconfigTest, MissingThingsAreNamed) {
  const std::string file = WriteConfig(kServer, "token: t");
  EXPECT_THAT(Refusal(file, "aa").message(), HasSubstr("there is no context 'aa'"));
  EXPECT_THAT(Refusal(Write("none", "clusters: []\n")).message(), HasSubstr("--context"));
  EXPECT_THAT(Refusal(Write("bad", "clusters: [\n")).message(), HasSubstr("/bad:"));
  EXPECT_THAT(Refusal(Write("list", "- a\n")).message(), HasSubstr("is not a kubeconfig"));
  EXPECT_THAT(Refusal(Write("empty",
                            "current-context: c\nclusters: [{name: k}]\n"
                            "contexts: [{name: c, context: {cluster: k}}]\n"))
                  .message(),
              HasSubstr("/empty: cluster 'k': server ''"));
  EXPECT_THAT(Refusal(WriteConfig(std::string(kServer) + ", certificate-authority: gone.pem", ""))
                  .message(),
              HasSubstr("gone.pem"));
  const Status none = Refusal(folder_ + "/absent");
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr("--kubeconfig"));
}

TEST(KubeconfigFiles, AreThoseOfKubectl) {
  EXPECT_THAT(KubeconfigFiles("f", "a:b", "/people/u"), ElementsAre("f"));
  EXPECT_THAT(KubeconfigFiles("", "a::b", "/people/u"), ElementsAre("a", "b"));
  EXPECT_THAT(KubeconfigFiles("", "", "/people/u"), ElementsAre("/people/u/.kube/config"));
  EXPECT_THAT(KubeconfigFiles("", std::nullopt, std::nullopt), ElementsAre());
}

TEST_F(KubeconfigTest, APodsOwnConnection) {
  Write("ca.crt", "authority");
  Write("token", "t");
  Write("namespace", "team-a\n");
  const Result<KubeConnection> connection = InClusterConnection("10.96.0.1", "443", folder_);
  ASSERT_TRUE(connection.ok()) << connection.status().ToString();
  EXPECT_EQ(connection->server, "https://10.96.0.1:443");
  EXPECT_EQ(connection->ca_pem, "authority");
  EXPECT_EQ(connection->token_file, folder_ + "/token");
  EXPECT_EQ(connection->namespace_name, "team-a");
  EXPECT_EQ(InClusterConnection("fd00::1", "443", folder_)->server,
            "https://kubernetes.default.svc:443");
  EXPECT_EQ(InClusterConnection(std::nullopt, "443", folder_).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_FALSE(InClusterConnection("h", "443", folder_ + "/absent").ok());
}

}  // namespace
}  // namespace lambdadnn
