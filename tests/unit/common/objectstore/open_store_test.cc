// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/open_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "common/base/files.h"
#include "tests/support/paths.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

class OpenStoreTest : public testing::Test {
 protected:
  Result<std::unique_ptr<ObjectStore>> Open(const std::string& uri) {
    StoreConfig config;
    config.uri = uri;
    return OpenStore(config, runtime_);
  }
  SystemRuntime runtime_;
};

TEST_F(OpenStoreTest, MemoryIsSharedWithinTheProcessAndHasPrefixes) {
  const auto one = Open("memory:").value();
  const auto two = Open("memory:/inside/").value();
  ASSERT_TRUE(one->Put("inside/key", AsBytes("x")).ok());
  EXPECT_EQ(AsText(two->Get("key").value()), "x");
  EXPECT_EQ(two->Describe(), "memory:inside");
  ASSERT_TRUE(two->Delete("key").ok());
}

TEST_F(OpenStoreTest, FileStoreIsTheFolder) {
  const std::string root = MakeTempDir();
  ASSERT_TRUE(Open("file://" + root + "/")->get()->Put("a/b", AsBytes("x")).ok());
  const auto again = Open("file://" + root + "/a").value();
  EXPECT_EQ(AsText(again->Get("b").value()), "x");
  EXPECT_EQ(again->Describe(), "file://" + root + "/a");
}

TEST_F(OpenStoreTest, OtherUrisAreRefusedWithWhatToWrite) {
  for (const std::string uri : {"", "ftp://x", "/plain/path", "file://relative", "file:/x",
                                "file:///a/../b", "memory:a//b", "memory:../x"}) {
    const Status status = Open(uri).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << uri;
    EXPECT_THAT(status.message(), HasSubstr("write file:///"));
  }
}

TEST_F(OpenStoreTest, S3NeedsABucketAnEndpointAndCredentials) {
  StoreConfig config;
  config.uri = "s3://bucket/some/prefix";
  config.endpoint = "http://127.0.0.1:9000";
  config.credentials = {.access_key = "key", .secret_key = "top-secret", .session_token = ""};
  const auto store = OpenStore(config, runtime_);
  ASSERT_TRUE(store.ok()) << store.status().ToString();
  EXPECT_EQ(store->get()->Describe(), "s3://bucket/some/prefix");

  const auto code = [&](auto change) {
    StoreConfig changed = config;
    change(changed);
    const Status status = OpenStore(changed, runtime_).status();
    EXPECT_THAT(status.message(), testing::Not(HasSubstr("top-secret")));
    return status.code();
  };
  EXPECT_EQ(code([](auto& c) { c.uri = "s3://"; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& c) { c.uri = "s3://no spaces/x"; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& c) { c.uri = "s3://bucket/a/../b"; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& c) { c.endpoint = "127.0.0.1:9000"; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& c) { c.endpoint = "http://host/path"; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& c) { c.region = ""; }), StatusCode::kInvalidArgument);
  for (const char* host : {"evil.example/x", "evil.example", "a b", "evil.example#"}) {
    EXPECT_EQ(code([&](auto& c) { c.region = host; }), StatusCode::kInvalidArgument) << host;
  }
  EXPECT_EQ(code([](auto& c) { c.request_timeout_seconds = 0; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& c) { c.ca_file = "/no/such/file.pem"; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& c) { c.credentials = {}; }), StatusCode::kUnauthenticated);
}

TEST_F(OpenStoreTest, CredentialsComeFromOnePlace) {
  setenv("AWS_ACCESS_KEY_ID", "aws", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "aws-secret", 1);
  setenv("AWS_SESSION_TOKEN", "aws-token", 1);
  EXPECT_EQ(CredentialsFromEnvironment().session_token, "aws-token");
  setenv("LAMBDADNN_S3_ACCESS_KEY_ID", "ours", 1);
  setenv("LAMBDADNN_S3_SECRET_ACCESS_KEY", "our-secret", 1);
  const StoreCredentials credentials = CredentialsFromEnvironment();
  EXPECT_EQ(credentials.access_key, "ours");
  EXPECT_EQ(credentials.secret_key, "our-secret");
  EXPECT_EQ(credentials.session_token, "");
  EXPECT_EQ(credentials.role_arn, "");
  setenv("AWS_ROLE_ARN", "of-a-web-identity", 1);
  setenv("LAMBDADNN_S3_ROLE_ARN", "ours", 1);
  EXPECT_EQ(CredentialsFromEnvironment().role_arn, "ours");
  unsetenv("LAMBDADNN_S3_ROLE_ARN");
  EXPECT_EQ(CredentialsFromEnvironment().role_arn, "");
  unsetenv("AWS_ROLE_ARN");
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                           "LAMBDADNN_S3_ACCESS_KEY_ID", "LAMBDADNN_S3_SECRET_ACCESS_KEY"}) {
    unsetenv(name);
  }
  EXPECT_EQ(CredentialsFromEnvironment().access_key, "");
}

// As the kubelet mounts a Secret, and replaces it.
TEST_F(OpenStoreTest, CredentialsOfAFolderAreReadAnewEachTime) {
  const std::filesystem::path folder = MakeTempDir();
  const auto mount = [&](const std::string& version) {
    std::filesystem::create_directory(folder / version);
    for (const char* name : {"accessKeyId", "secretAccessKey"}) {
      ASSERT_TRUE(
          WriteFileAtomically((folder / version / name).string(), version + name + "\n").ok());
      if (!std::filesystem::is_symlink(folder / name)) {
        std::filesystem::create_symlink(std::filesystem::path("..data") / name, folder / name);
      }
    }
    std::filesystem::create_symlink(version, folder / "..new");
    std::filesystem::rename(folder / "..new", folder / "..data");
  };
  setenv("LAMBDADNN_S3_ACCESS_KEY_ID", "of the environment", 1);
  setenv("LAMBDADNN_S3_SECRET_ACCESS_KEY", "of the environment", 1);
  setenv("LAMBDADNN_S3_CREDENTIALS_DIR", folder.c_str(), 1);
  mount("first-");
  EXPECT_EQ(CredentialsFromEnvironment(),
            (StoreCredentials{"first-accessKeyId", "first-secretAccessKey", ""}));
  mount("second-");
  EXPECT_EQ(CredentialsFromEnvironment(),
            (StoreCredentials{"second-accessKeyId", "second-secretAccessKey", ""}));
  // Half of them are none, and none of another place.
  std::filesystem::remove(folder / "second-" / "secretAccessKey");
  EXPECT_EQ(CredentialsFromEnvironment(), StoreCredentials());
  for (const char* name : {"LAMBDADNN_S3_ACCESS_KEY_ID", "LAMBDADNN_S3_SECRET_ACCESS_KEY",
                           "LAMBDADNN_S3_CREDENTIALS_DIR"}) {
    unsetenv(name);
  }
}

}  // namespace
}  // namespace lambdadnn
