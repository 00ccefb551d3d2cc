// SPDX-License-Identifier: Apache-2.0
// Profiles that outlive their job: what is written is read again, any other text is refused with a
// sentence, and functions that differ from those that measured are noticed.
#include "operator/controller/planning/kept_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "common/json/json_reader.h"
#include "common/plan/number_fields.h"
#include "operator/controller/planning/profile_fit.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

KeptProfile Kept() {
  KeptProfile kept;
  kept.profile.training_samples = 100;
  kept.profile.model_bytes = 4000;
  kept.profile.training_rate.slope = 0.1;
  kept.on = {.image = "registry.example/worker@sha256:0",
             .node_kind = "m5.large",
             .fingerprint = {"avx2", "1.13.1, OpenBLAS Haswell"},
             .largest_mib = 1024,
             .pods_at_once = 3};
  return kept;
}

TEST(KeptProfile, IsReadAsItWasWritten) {
  EXPECT_EQ(DecodeKeptProfile(EncodeKeptProfile(Kept())).value(), Kept());
  KeptProfile bare = Kept();
  bare.on = MeasuredOn();
  EXPECT_EQ(DecodeKeptProfile(EncodeKeptProfile(bare)).value(), bare);
}

struct BadRow {
  const char* name;
  std::function<std::string(Json)> text;  // from the good one
  const char* problem;
};

const BadRow kBad[] = {
    {"torn", [](const Json& json) { return json.dump().substr(0, 50); }, "line 1"},
    {"empty", [](const Json&) { return ""; }, "line 1"},
    {"no map", [](const Json&) { return "[]"; }, "must be"},
    {"an earlier version's", [](const Json& json) { return json["profile"].dump(); }, "form"},
    {"a later version's",
     [](Json json) {
       json["form"] = kProfileForm + 1;
       json["profile"]["brightness"] = "3";
       return json.dump();
     },
     "of another version; this one writes form"},
    {"a number that cannot be",
     [](Json json) {
       json["profile"]["coldStartSeconds"] = "-1";
       return json.dump();
     },
     "profile.coldStartSeconds is -1, and must be seconds from 0 to"},
    {"a number beyond what the spec may have",
     [](Json json) {
       json["profile"]["trainingRate"]["slope"] = "1e300";
       return json.dump();
     },
     "profile.trainingRate.slope is 1e+300, and must be"},
    {"without a model",
     [](Json json) {
       json["profile"].erase("modelBytes");
       return json.dump();
     },
     "it lacks trainingSamples or modelBytes"},
    {"without a profile",
     [](Json json) {
       json.erase("profile");
       return json.dump();
     },
     "profile"},
    {"a text without end",
     [](Json json) {
       json["measuredOn"]["image"] = std::string(1025, 'x');
       return json.dump();
     },
     "measuredOn.image"},
    {"a number for a text",
     [](Json json) {
       json["measuredOn"]["isa"] = 5;
       return json.dump();
     },
     "measuredOn.isa"},
};

TEST(KeptProfile, AnyOtherTextIsRefusedWithWhatIsWrong) {
  const Json good = Json::parse(EncodeKeptProfile(Kept()));
  for (const BadRow& row : kBad) {
    SCOPED_TRACE(row.name);
    const Result<KeptProfile> kept = DecodeKeptProfile(row.text(good));
    ASSERT_FALSE(kept.ok());
    EXPECT_EQ(kept.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(kept.status().message(), HasSubstr(row.problem));
  }
}

struct DifferenceRow {
  const char* name;
  InstanceHost host;
  NumericsFingerprint fingerprint;
  const char* difference;
};

const DifferenceRow kDifferences[] = {
    {"nothing known", {}, {}, ""},
    {"the same",
     {"n1", "m5.large", "registry.example/worker@sha256:0"},
     {"avx2", "1.13.1, OpenBLAS Haswell"},
     ""},
    {"another image", {"n1", "m5.large", "worker:2"}, {}, "runs worker:2, and"},
    {"another instruction set",
     {"n1", "m5.large", ""},
     {"avx512", "1.13.1, OpenBLAS Haswell"},
     "computes with avx512"},
    {"another LibTorch", {}, {"avx2", "2.15.0"}, "LibTorch 2.15.0"},
    {"another kind of node", {"n1", "c5.large", ""}, {}, "runs on c5.large, and"},
};

TEST(KeptProfile, FunctionsDifferByImageNumericsAndKindOfNode) {
  for (const DifferenceRow& row : kDifferences) {
    SCOPED_TRACE(row.name);
    const std::string difference = DifferenceFrom(Kept().on, row.host, row.fingerprint);
    EXPECT_THAT(difference, HasSubstr(row.difference));
    EXPECT_EQ(difference.empty(), row.difference[0] == '\0');
    EXPECT_EQ(DifferenceFrom(MeasuredOn(), row.host, row.fingerprint), "");
  }
}

TEST(KeptProfile, OfDamagedBytesNothingIsReadThatTheSpecMayNotHave) {
  const std::string good = EncodeKeptProfile(Kept());
  size_t refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char damage : {'\0', '9', '-', '\xff'}) {
      std::string text = good;
      text[i] = damage;
      const Result<KeptProfile> kept = DecodeKeptProfile(text);
      refused += kept.ok() ? 0 : 1;
      if (!kept.ok()) continue;
      EXPECT_EQ(ProblemOf(kept->profile, "profile"), std::nullopt) << text;
    }
    refused += DecodeKeptProfile(good.substr(0, i)).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 4 * good.size()) << "nearly all of them";
}

}  // namespace
}  // namespace lambdadnn
