// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/kube_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/base/files.h"
#include "tests/support/paths.h"
#include "tests/support/virtual_runtime.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

class KubeCredentialsTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/" + name, content).ok());
  }
  // A plugin that prints what the file "answer" holds and counts its runs in the file "runs".
  KubeConnection WithPlugin() {
    Write("plugin", "#!/bin/sh\necho \"$1 $KUBERNETES_EXEC_INFO\" >> " + folder_ + "/runs\ncat " +
                        folder_ + "/answer\nexit $(cat " + folder_ + "/code)\n");
    chmod((folder_ + "/plugin").c_str(), 0755);
    Write("code", "0");
    KubeConnection connection;
    connection.server = "https://api";
    connection.exec = ExecCredentialPlugin{.api_version = "client.authentication.k8s.io/v1",
                                           .command = folder_ + "/plugin",
                                           .arguments = {"first"},
                                           .provide_cluster_info = true};
    return connection;
  }
  std::string Answer(const std::string& status) {
    return R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)" +
           status + "}";
  }
  size_t Runs() {
    const std::string text = ReadFile(folder_ + "/runs").value();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  const std::string folder_ = MakeTempDir();
  VirtualClock clock_;
};

TEST_F(KubeCredentialsTest, ATokenFileIsReadAgainAfterAMinute) {
  Write("token", " one\n");
  KubeConnection connection;
  connection.token_file = folder_ + "/token";
  KubeCredentials credentials(connection, clock_);
  EXPECT_EQ(credentials.Current()->token, "one");
  Write("token", "two");
  clock_.SleepFor(std::chrono::seconds(59));
  EXPECT_EQ(credentials.Current()->token, "one");
  clock_.SleepFor(std::chrono::seconds(1));
  EXPECT_EQ(credentials.Current()->token, "two");
}

TEST_F(KubeCredentialsTest, ARefusedTokenIsReadAtOnce) {
  Write("token", "one");
  KubeConnection connection;
  connection.token_file = folder_ + "/token";
  KubeCredentials credentials(connection, clock_);
  const KubeCredential used = credentials.Current().value();
  Write("token", "two");
  EXPECT_TRUE(credentials.Refuse(used));
  EXPECT_EQ(credentials.Current()->token, "two");
  // A late refusal of the old one does not throw the new one away.
  Write("token", "three");
  EXPECT_TRUE(credentials.Refuse(used));
  EXPECT_EQ(credentials.Current()->token, "two");
}

TEST_F(KubeCredentialsTest, ATokenFileThatGoesAwayLeavesWhatItHeld) {
  Write("token", "one");
  KubeConnection connection;
  connection.token_file = folder_ + "/token";
  KubeCredentials credentials(connection, clock_);
  ASSERT_TRUE(credentials.Current().ok());
  std::remove(connection.token_file.c_str());
  clock_.SleepFor(std::chrono::minutes(2));
  EXPECT_EQ(credentials.Current()->token, "one");
  credentials.Refuse(*credentials.Current());
  const Status status = credentials.Current().status();
  EXPECT_EQ(status.code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(status.message(), HasSubstr(connection.token_file));
}

TEST_F(KubeCredentialsTest, FixedOnesCannotBeRenewed) {
  KubeConnection connection;
  connection.token = "t";
  KubeCredentials credentials(connection, clock_);
  EXPECT_FALSE(credentials.Refuse(*credentials.Current()));
  EXPECT_EQ(credentials.Current()->token, "t");
}

TEST_F(KubeCredentialsTest, APluginRunsOnceUntilItsAnswerExpires) {
  const KubeConnection connection = WithPlugin();
  KubeCredentials credentials(connection, clock_);
  Write("answer", Answer(R"({"token":"one","expirationTimestamp":")" +
                         FormatRfc3339(clock_.Wall() + std::chrono::minutes(10)) + "\"}"));
  EXPECT_EQ(credentials.Current()->token, "one");
  clock_.SleepFor(std::chrono::minutes(9));
  EXPECT_EQ(credentials.Current()->token, "one");
  EXPECT_EQ(Runs(), 1u);
  Write("answer", Answer(R"({"clientCertificateData":"c","clientKeyData":"k"})"));
  clock_.SleepFor(std::chrono::minutes(2));
  EXPECT_EQ(credentials.Current()->client_certificate_pem, "c");
  EXPECT_EQ(credentials.Current()->client_key_pem, "k");
  EXPECT_EQ(Runs(), 2u);
  credentials.Refuse(*credentials.Current());
  EXPECT_TRUE(credentials.Current().ok());
  EXPECT_EQ(Runs(), 3u);
  const std::string seen = ReadFile(folder_ + "/runs").value();
  EXPECT_THAT(seen, HasSubstr("first {\"apiVersion\":\"client.authentication.k8s.io/v1\""));
  EXPECT_THAT(seen, HasSubstr("\"cluster\":{\"server\":\"https://api\"}"));
}

TEST_F(KubeCredentialsTest, APluginThatFailsSaysWhatToDo) {
  KubeConnection connection = WithPlugin();
  Write("answer", Answer("{\"token\":\"t\"}"));
  Write("code", "7");
  const Status failed = KubeCredentials(connection, clock_).Current().status();
  EXPECT_EQ(failed.code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(failed.message(), HasSubstr("exit code 7"));
  connection.exec->command = "no-such-plugin";
  connection.exec->install_hint = "install no-such-plugin from your vendor";
  EXPECT_THAT(KubeCredentials(connection, clock_).Current().status().message(),
              HasSubstr("install no-such-plugin from your vendor"));
}

TEST(ExecCredential, WhatIsNoneIsRefused) {
  std::optional<WallTime> expires;
  for (const std::string text :
       {"", "no JSON", "[]", "{}", R"({"kind":"ExecCredential"})",
        R"({"kind":"ExecCredential","status":{}})",
        R"({"kind":"ExecCredential","status":{"clientKeyData":"k"}})",
        R"({"kind":"ExecCredential","status":{"clientCertificateData":"c"}})",
        R"({"kind":"ExecCredential","status":{"token":"t","expirationTimestamp":"soon"}})"}) {
    EXPECT_EQ(ParseExecCredential(text, &expires).status().code(), StatusCode::kUnauthenticated)
        << text;
  }
  EXPECT_FALSE(expires.has_value());
}

}  // namespace
}  // namespace lambdadnn
