// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/module_check.h"

#include <utility>

#include "common/objectstore/sigv4.h"
#include "tests/unit/trainer_function/data/data_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

void Append(std::string* text, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) text->push_back(static_cast<char>(value));
}

// Stored members, each with its size in the directory.
std::string Zip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string archive;
  std::string directory;
  for (const auto& [name, content] : members) {
    const size_t local = archive.size();
    const auto sizes = [&](std::string* to) {
      Append(to,
             crc32(0, reinterpret_cast<const Bytef*>(content.data()),
                   static_cast<uInt>(content.size())),
             4);
      Append(to, content.size(), 4);
      Append(to, content.size(), 4);
      Append(to, name.size(), 2);
      Append(to, 0, 2);
    };
    archive += "PK\x03\x04";
    Append(&archive, 20, 10);
    sizes(&archive);
    archive += name + content;
    directory += "PK\x01\x02";
    Append(&directory, 20, 12);
    sizes(&directory);
    Append(&directory, 0, 10);
    Append(&directory, local, 4);
    directory += name;
  }
  const size_t begin = archive.size();
  archive += directory + "PK\x05\x06";
  Append(&archive, 0, 4);
  Append(&archive, members.size(), 2);
  Append(&archive, members.size(), 2);
  Append(&archive, directory.size(), 4);
  Append(&archive, begin, 4);
  Append(&archive, 0, 2);
  return archive;
}

const std::string kTensor(size_t{5} << 20, 't');

std::string Module(const std::string& code) {
  return Zip({{"net/data.pkl", "cNet\n."},
              {"net/code/__torch__.py", code},
              {"net/data/0", kTensor + "__setstate__"}});
}

// Of a data set with two features of which the first 1000 rows have classes 0 to 2.
class ModuleCheckTest : public testing::Test {
 protected:
  ModuleCheckTest() {
    training_.model.torch_script_uri = "s3://bucket/net.pt";
    training_.dataset = fixture_.config;
    training_.dataset.csv_header = false;
    fixture_.File("train.csv", "1,2,0\n3,4,1\n5,6,2\n");
  }
  Result<ModuleFacts> Check(const ModuleTrial& trial = nullptr) {
    return CheckModule(
        training_,
        [this](const std::string&) -> Result<std::unique_ptr<ObjectStore>> {
          return std::unique_ptr<ObjectStore>(std::make_unique<LentStore>(*fixture_.store));
        },
        trial);
  }
  Status Refusal(const std::string& archive) {
    fixture_.File("net.pt", archive);
    return Check().status();
  }

  DataFixture fixture_;
  TrainingConfig training_;
};

TEST_F(ModuleCheckTest, TheDigestIsThatOfTheBytes) {
  const std::string module = Module("class Net(Module):\n  pass\n");
  fixture_.File("net.pt", module);
  const auto facts = Check();
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ(facts->digest, "sha256:" + Sha256Hex(module));
  EXPECT_FALSE(facts->tried);
}

TEST_F(ModuleCheckTest, WhatWouldRunWhenItIsReadIsRefusedUnread) {
  const Status status = Refusal(Module("def __setstate__(self, state: int):\n  pass\n"));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("spec.model.torchScript.uri: net/code/__torch__.py has "
                                          "__setstate__, which would run"));
}

TEST_F(ModuleCheckTest, WhatIsNoModuleIsRefused) {
  EXPECT_THAT(Refusal("no archive").message(), HasSubstr("no TorchScript archive"));
  EXPECT_THAT(Refusal(Zip({{"net/data/0", "t"}})).message(), HasSubstr("has no code"));
  const std::string whole = Module("pass\n");
  EXPECT_THAT(Refusal(whole.substr(0, whole.size() - 30)).message(), HasSubstr("is cut"));
  training_.model.torch_script_uri = "net.pt";
  EXPECT_THAT(Check().status().message(), HasSubstr("names no object"));
  training_.model.torch_script_uri = "s3://bucket/other.pt";
  EXPECT_EQ(Check().status().code(), StatusCode::kNotFound);
}

TEST_F(ModuleCheckTest, ItIsTriedAgainstTheSamplesOfTheData) {
  const std::string module = Module("pass\n");
  fixture_.File("net.pt", module);
  std::vector<TrialNeeds> asked;
  const auto facts = Check([&](std::string_view archive, const TrialNeeds& needs) {
    EXPECT_EQ(archive, module);
    asked.push_back(needs);
    return OkStatus();
  });
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_TRUE(facts->tried);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].sample_shape, std::vector<int64_t>{2});
  EXPECT_EQ(asked[0].classes, 3);
  EXPECT_FALSE(asked[0].more_classes);
  EXPECT_EQ(asked[0].uri, "s3://bucket/net.pt");
}

TEST_F(ModuleCheckTest, OfLongDataSetsOtherClassesMayFollow) {
  std::string rows;
  for (int i = 0; i < 2000; ++i) rows += "1,2,0\n";
  fixture_.File("train.csv", rows).File("net.pt", Module("pass\n"));
  for (const int stated : {0, 4}) {
    training_.dataset.classes = stated;
    const auto facts = Check([&](std::string_view, const TrialNeeds& needs) {
      EXPECT_EQ(needs.classes, stated == 0 ? 2 : 4);
      EXPECT_EQ(needs.more_classes, stated == 0);
      return OkStatus();
    });
    EXPECT_TRUE(facts.ok()) << facts.status().ToString();
  }
}

TEST_F(ModuleCheckTest, WhatCannotBeTriedHereIsLeftToTheFunctions) {
  fixture_.File("net.pt", Module("pass\n"));
  const auto answering = [](const Status& status) {
    return [status](std::string_view, const TrialNeeds&) { return status; };
  };
  EXPECT_EQ(Check(answering(InvalidArgumentError("too large"))).status().message(), "too large");
  const auto later = Check(answering(DeadlineExceededError("busy")));
  ASSERT_TRUE(later.ok());
  EXPECT_FALSE(later->tried);
  EXPECT_FALSE(later->digest.empty());
  training_.dataset.uri = "s3://bucket/elsewhere.csv";
  const auto blind = Check(answering(InternalError("is not asked")));
  ASSERT_TRUE(blind.ok()) << blind.status().ToString();
  EXPECT_FALSE(blind->tried);
}

}  // namespace
}  // namespace lambdadnn
