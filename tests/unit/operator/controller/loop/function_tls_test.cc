// SPDX-License-Identifier: Apache-2.0
// Functions that show their job's certificate, and those of jobs from before or from an operator
// with another setting. A fake function takes nothing from who expects another certificate, plain
// text in place of TLS, or TLS in place of plain text.
#include "common/base/base64.h"
#include "common/http/pinned_certificate.h"
#include "operator/resources/job_key.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class FunctionTlsTest : public JobLifeTest {
 protected:
  // What an operator with or without --function-tls does from now on.
  void Use(bool tls) {
    world_.make_certificate = nullptr;
    if (tls) {
      world_.make_certificate = [this](const std::string& name) {
        ++made_;
        return MakeTlsIdentity(name);
      };
    }
    world_.RestartController();
  }
  static ObjectName KeyName() { return {"default", "digits-lambdadnn-key"}; }
  Json Secret() { return world_.server.Get(SecretType(), KeyName()).value(); }
  static std::string EntryOf(const Json& secret, const char* name) {
    return DecodeBase64(secret["data"][name].get<std::string>()).value();
  }
  // A job with functions of this certificate, in the middle of its run.
  void Begin() {
    Use(true);
    world_.Create(JobWorld::MinimalJob());
    ASSERT_TRUE(RunUntilIteration(10));
  }
  // As somebody who edits the Secret does.
  void Edit(const std::vector<std::pair<const char*, const char*>>& entries) {
    Json secret = Secret();
    for (const auto& [name, text] : entries) {
      if (text == nullptr) {
        secret["data"].erase(name);
      } else {
        secret["data"][name] = EncodeBase64(text);
      }
    }
    ASSERT_TRUE(world_.server.Update(SecretType(), secret, Subresource::kNone).ok());
  }
  void Write(const TlsIdentity& identity) {
    Edit({{"tls.crt", identity.certificate.c_str()}, {"tls.key", identity.private_key.c_str()}});
  }
  std::string Message(const char* condition) {
    return FindCondition(world_.Read(), condition)->message;
  }
  std::vector<std::string> Certificates() {
    std::vector<std::string> certificates;
    for (const std::string& uid : world_.functions.Live()) {
      const auto& environment = world_.functions.EnvironmentOf(uid);
      const auto found = environment.find(kTlsCertificateVariable);
      certificates.push_back(found == environment.end() ? "" : found->second);
    }
    return certificates;
  }
  void ExpectCertificates(const std::string& certificate) {
    EXPECT_THAT(Certificates(), Not(IsEmpty()));
    EXPECT_THAT(Certificates(), testing::Each(certificate));
  }
  int made_ = 0;
};

TEST_F(FunctionTlsTest, FunctionsOfANewJobShowTheCertificateOfItsSecret) {
  Use(true);
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(10));
  const Json secret = Secret();
  const std::string certificate = EntryOf(secret, "tls.crt");
  ExpectCertificates(certificate);
  EXPECT_TRUE(CheckTlsIdentity({certificate, EntryOf(secret, "tls.key")}).ok());
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(made_, 1);
  ExpectNothingLeft();
}

TEST_F(FunctionTlsTest, ANewLeaderReachesTheFunctionsThatThereAre) {
  Use(true);
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(10));
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Read().status.execution.incarnation, 0) << "a round was given up";
  EXPECT_EQ(made_, 1);
}

// An upgrade, or another setting, in the middle of a run. What replaces a function is as the others
// are, since the job's Secret says so.
TEST_F(FunctionTlsTest, AJobGoesOnAsItBegan) {
  for (const bool begins_with_tls : {false, true}) {
    SCOPED_TRACE(begins_with_tls);
    Use(begins_with_tls);
    world_.Create(JobWorld::MinimalJob());
    ASSERT_TRUE(RunUntilIteration(10));
    const std::string certificate = Certificates().front();
    EXPECT_EQ(certificate.empty(), !begins_with_tls);
    Use(!begins_with_tls);
    ASSERT_TRUE(RunUntilIteration(20));
    EXPECT_EQ(world_.Read().status.execution.incarnation, 0) << "a round was given up";
    world_.functions.Kill(world_.functions.InstanceOf("server-0"));
    ASSERT_TRUE(
        world_.RunUntil([&] { return world_.Read().status.execution.incarnation > 0; }, 60));
    ASSERT_TRUE(
        world_.RunUntil([&] { return !world_.functions.InstanceOf("worker-0").empty(); }, 60));
    ExpectCertificates(certificate);
    ASSERT_TRUE(world_.RunUntilFinished(200));
    EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
    world_.Delete();
    ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  }
}

TEST_F(FunctionTlsTest, WithAServiceOfTheirOwnFunctionsHaveNone) {
  Use(true);
  Json job = JobWorld::MinimalJob();
  job["spec"]["addressing"] = "Service";
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(10));
  ExpectCertificates("");
  EXPECT_FALSE(Secret()["data"].contains("tls.crt"));
  EXPECT_EQ(made_, 0);
}

// Its functions are unreachable, as if they were cut off: they are replaced, and the job goes on.
TEST_F(FunctionTlsTest, FunctionsThatShowAnotherCertificateAreToldOfAndReplaced) {
  Begin();
  const std::string first = world_.functions.InstanceOf("worker-0");
  Write(MakeTlsIdentity("other").value());
  world_.RestartController();
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "False/FunctionUnreachable"; }, 60));
  EXPECT_THAT(Message("Ready"), AllOf(HasSubstr("function " + first + " cannot be reached"),
                                      HasSubstr("another certificate"), HasSubstr("replaced")));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation > 0; }, 200));
  EXPECT_EQ(world_.Reason("Degraded"), "True/FunctionSilent");
  EXPECT_THAT(Message("Degraded"), HasSubstr("another certificate"));
  ASSERT_TRUE(world_.RunUntilFinished(400));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

// Else functions that have the Secret's certificate would be replaced for ever.
TEST_F(FunctionTlsTest, ASecretThatWasChangedIsReadAgain) {
  Begin();
  Write(MakeTlsIdentity("other").value());
  world_.RestartController();
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "False/FunctionUnreachable"; }, 60));
  const TlsIdentity last = MakeTlsIdentity("last").value();
  Write(last);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation > 0; }, 200));
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "True/FunctionsReady"; }, 200));
  ExpectCertificates(last.certificate);
  ASSERT_TRUE(world_.RunUntilFinished(400));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

struct KeyRow {
  const char* name;
  // Of the Secret's data, in place of what was written; nullptr = removed.
  std::vector<std::pair<const char*, const char*>> entries;
  const char* told;
};

class UnusableKey : public FunctionTlsTest, public testing::WithParamInterface<KeyRow> {};

// What its functions hold is not lost: the job stands until the Secret is as it was.
TEST_P(UnusableKey, IsToldAndTheJobGoesOnOnceItIsAsItWas) {
  Begin();
  const Json before = Secret();
  Edit(GetParam().entries);
  world_.RestartController();
  EXPECT_FALSE(world_.RunUntilFinished(20));
  EXPECT_EQ(world_.Reason("Ready"), "False/JobKeyUnusable");
  EXPECT_THAT(Message("Ready"), AllOf(HasSubstr("secret digits-lambdadnn-key is not the key"),
                                      HasSubstr(GetParam().told), HasSubstr("delete it")));
  Json secret = Secret();
  secret["data"] = before["data"];
  ASSERT_TRUE(world_.server.Update(SecretType(), secret, Subresource::kNone).ok());
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

// The message's advice.
TEST_P(UnusableKey, DeletedItIsMadeAnewAndTheFunctionsAreReplaced) {
  Begin();
  const std::string before = Certificates().front();
  Edit(GetParam().entries);
  world_.RestartController();
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "False/JobKeyUnusable"; }, 60));
  ASSERT_TRUE(world_.server.Delete(SecretType(), KeyName(), {}).ok());
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation > 0; }, 200));
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "True/FunctionsReady"; }, 200));
  EXPECT_NE(EntryOf(Secret(), "tls.crt"), before);
  ExpectCertificates(EntryOf(Secret(), "tls.crt"));
  ASSERT_TRUE(world_.RunUntilFinished(400));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

INSTANTIATE_TEST_SUITE_P(
    Rows, UnusableKey,
    testing::Values(KeyRow{"NoCertificate", {{"tls.crt", "no certificate"}}, "BEGIN CERTIFICATE"},
                    KeyRow{"NoPrivateKey", {{"tls.key", "no key"}}, "BEGIN PRIVATE KEY"},
                    KeyRow{"WithoutPrivateKey", {{"tls.key", nullptr}}, ""},
                    KeyRow{"WithoutJobKey", {{"key", nullptr}}, ""},
                    KeyRow{"EmptyJobKey", {{"key", ""}}, ""}),
    [](const auto& row) { return row.param.name; });

TEST_F(FunctionTlsTest, AKeyOfAnotherPairIsUnusable) {
  Begin();
  Write({Certificates().front(), MakeTlsIdentity("other")->private_key});
  world_.RestartController();
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "False/JobKeyUnusable"; }, 60));
  EXPECT_THAT(Message("Ready"), HasSubstr("does not belong to the certificate"));
}

TEST_F(FunctionTlsTest, WithoutACertificateNoFunctionStarts) {
  Use(true);
  world_.make_certificate = [](const std::string&) -> Result<TlsIdentity> {
    return InternalError("no curve");
  };
  world_.RestartController();
  world_.Create(JobWorld::MinimalJob());
  EXPECT_FALSE(world_.RunUntilFinished(30));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  EXPECT_EQ(world_.Reason("Ready"), "False/JobKeyUnusable");
  EXPECT_THAT(Message("Ready"), HasSubstr("no curve"));
}

}  // namespace
}  // namespace lambdadnn
