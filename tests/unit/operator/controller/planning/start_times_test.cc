// SPDX-License-Identifier: Apache-2.0
// The record of starts: which of them count as one kind, how many are kept, and what takes the
// place of a profile's own measurement.
#include "operator/controller/planning/start_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::SizeIs;

const StartKind kAlone = {BackendKind::kKnative, "worker:1", "m5.large", 1};

StartRecord RecordOf(const std::vector<StartSample>& samples) {
  StartRecord record;
  record.Add(samples);
  return record;
}

TEST(PodsAtOnceClass, IsAPowerOfTwo) {
  for (const auto& [pods, expected] : std::vector<std::pair<int, int>>{{-1, 1},
                                                                       {0, 1},
                                                                       {1, 1},
                                                                       {2, 2},
                                                                       {3, 4},
                                                                       {4, 4},
                                                                       {5, 8},
                                                                       {64, 64},
                                                                       {65, 128},
                                                                       {2147483647, 1 << 20}}) {
    EXPECT_EQ(PodsAtOnceClass(pods), expected) << pods;
  }
}

TEST(StartRecord, TellsKindsApart) {
  for (const auto& change : std::vector<std::function<void(StartKind*)>>{
           [](StartKind* kind) { kind->backend = BackendKind::kLocal; },
           [](StartKind* kind) { kind->image = "worker:2"; },
           [](StartKind* kind) { kind->node_kind = ""; },
           [](StartKind* kind) { kind->pods_at_once = 2; }}) {
    StartKind other = kAlone;
    change(&other);
    const StartRecord record = RecordOf({{kAlone, 1, {}}, {other, 2, 3}, {kAlone, 4, {}}});
    ASSERT_THAT(record.kinds(), SizeIs(2));
    EXPECT_THAT(record.Find(kAlone)->cold_starts, ElementsAre(1, 4));
    EXPECT_THAT(record.Find(kAlone)->releases, ElementsAre());
    EXPECT_THAT(record.Find(other)->cold_starts, ElementsAre(2));
    EXPECT_THAT(record.Find(other)->releases, ElementsAre(3));
  }
}

TEST(StartRecord, KeepsTheNewestOfAKind) {
  StartRecord record;
  for (size_t i = 0; i <= StartRecord::kMaxTimes; ++i) {
    record.Add({{kAlone, static_cast<double>(i), {}}});
  }
  EXPECT_THAT(record.Find(kAlone)->cold_starts, SizeIs(StartRecord::kMaxTimes));
  EXPECT_EQ(record.Find(kAlone)->cold_starts.front(), 1);
  EXPECT_EQ(record.Find(kAlone)->cold_starts.back(), StartRecord::kMaxTimes);
}

TEST(StartRecord, DropsTheKindThatWasSeenLongestAgo) {
  StartRecord record;
  record.Add({{kAlone, 1, {}}});
  StartKind second = kAlone;
  second.image = "second";
  record.Add({{second, 1, {}}});
  for (size_t i = 2; i < StartRecord::kMaxKinds; ++i) {
    StartKind other = kAlone;
    other.image = std::to_string(i);
    record.Add({{other, 1, {}}});
  }
  record.Add({{kAlone, 2, {}}});
  EXPECT_THAT(record.kinds(), SizeIs(StartRecord::kMaxKinds));
  StartKind one_more = kAlone;
  one_more.image = "one more";
  record.Add({{one_more, 1, {}}});
  EXPECT_THAT(record.kinds(), SizeIs(StartRecord::kMaxKinds));
  EXPECT_NE(record.Find(kAlone), nullptr);
  EXPECT_EQ(record.Find(second), nullptr);
}

TEST(StartRecord, WhatNoReaderWouldTakeIsNotKept) {
  StartKind endless = kAlone;
  endless.image = std::string(1025, 'x');
  EXPECT_THAT(RecordOf({{endless, 1, {}}}).kinds(), SizeIs(0));
  EXPECT_THAT(RecordOf({{kAlone, 1e10, -1}}).Find(kAlone)->cold_starts, SizeIs(0));
}

TEST(StartRecord, IsReadAsItWasWritten) {
  StartKind bare;
  bare.pods_at_once = 8;
  const StartRecord record = RecordOf({{kAlone, 1.25, 0.5}, {bare, 0.125, {}}});
  EXPECT_EQ(StartRecord::Decode(record.Encode())->kinds(), record.kinds());
  EXPECT_EQ(StartRecord::Decode(StartRecord().Encode())->kinds(), StartRecord().kinds());
}

TEST(StartRecord, TheLargestOneIsRead) {
  StartRecord record;
  for (size_t kind = 0; kind < StartRecord::kMaxKinds; ++kind) {
    StartKind large = kAlone;
    large.image = std::to_string(kind) + std::string(1000, 'i');
    large.node_kind = std::string(1024, 'n');
    large.pods_at_once = 1 << 20;
    for (size_t i = 0; i < StartRecord::kMaxTimes; ++i) {
      record.Add({{large, 123456789.125, 123456789.125}});
    }
  }
  const std::string text = record.Encode();
  EXPECT_LE(text.size(), StartRecord::kMaxBytes);
  EXPECT_EQ(StartRecord::Decode(text)->kinds(), record.kinds());
}

struct BadStartsRow {
  const char* name;
  std::function<std::string(Json)> text;  // from the good one
  const char* problem;
};

const BadStartsRow kBadStarts[] = {
    {"torn", [](const Json& json) { return json.dump().substr(0, 20); }, "line 1"},
    {"empty", [](const Json&) { return ""; }, "line 1"},
    {"no map", [](const Json&) { return "7"; }, "must be"},
    {"of another version",
     [](Json json) {
       json["form"] = 2;
       return json.dump();
     },
     "it has form 2, of another version; this one writes form 1"},
    {"no starts",
     [](Json json) {
       json.erase("starts");
       return json.dump();
     },
     "starts: must be a list"},
    {"too many kinds",
     [](Json json) {
       const Json kind = json["starts"][0];
       for (size_t i = 0; i < StartRecord::kMaxKinds; ++i) json["starts"].push_back(kind);
       return json.dump();
     },
     "starts: must be a list of at most 64"},
    {"too many times",
     [](Json json) {
       for (size_t i = 0; i < StartRecord::kMaxTimes; ++i) {
         json["starts"][0]["coldStartSeconds"].push_back(1);
       }
       return json.dump();
     },
     "starts[0].coldStartSeconds: must be a list of at most 32"},
    {"a negative time",
     [](Json json) {
       json["starts"][0]["releaseSeconds"] = {-1};
       return json.dump();
     },
     "starts[0].releaseSeconds: is -1, and must be seconds from 0 to"},
    {"no time",
     [](Json json) {
       json["starts"][0]["coldStartSeconds"] = {"soon"};
       return json.dump();
     },
     "starts[0].coldStartSeconds: is nan"},
    {"an unknown backend",
     [](Json json) {
       json["starts"][0]["backend"] = "Abacus";
       return json.dump();
     },
     "starts[0].backend: is none that this version knows"},
    {"a text without end",
     [](Json json) {
       json["starts"][0]["nodeKind"] = std::string(1025, 'x');
       return json.dump();
     },
     "starts[0].nodeKind: is too long"},
};

TEST(StartRecord, AnyOtherTextIsRefusedWithWhatIsWrong) {
  const Json good = Json::parse(RecordOf({{kAlone, 1, 2}}).Encode());
  for (const BadStartsRow& row : kBadStarts) {
    SCOPED_TRACE(row.name);
    const Result<StartRecord> record = StartRecord::Decode(row.text(good));
    ASSERT_FALSE(record.ok());
    EXPECT_EQ(record.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(record.status().message(), HasSubstr(row.problem));
  }
}

struct UseRow {
  const char* name;
  std::vector<StartSample> samples;
  double cold_start;
  double deviation;
  double release;
};

const StartKind kTwo = {BackendKind::kKnative, "worker:1", "m5.large", 2};

const UseRow kUses[] = {
    {"none", {}, 9, 0, 9},
    {"too few", {{kAlone, 1, 1}, {kAlone, 1, 1}}, 9, 0, 9},
    {"of another kind", {{kTwo, 1, 1}, {kTwo, 1, 1}, {kTwo, 1, 1}}, 9, 0, 9},
    {"enough", {{kAlone, 2, 4}, {kAlone, 1, 5}, {kAlone, 3, 6}}, 2, 1 / 1.349, 5},
    {"starts alone", {{kAlone, 2, {}}, {kAlone, 2, {}}, {kAlone, 2, {}}}, 2, 0, 9},
    {"releases alone", {{kAlone, {}, 3}, {kAlone, {}, 3}, {kAlone, {}, 3}}, 9, 0, 3},
    {"one that pulled its image",
     {{kAlone, 2, {}}, {kAlone, 300, {}}, {kAlone, 2, {}}, {kAlone, 2, {}}, {kAlone, 2, {}}},
     2,
     0,
     9},
};

TEST(UseStartTimes, TakesTheMedianOfEnoughStartsOfThisKind) {
  for (const UseRow& row : kUses) {
    SCOPED_TRACE(row.name);
    WorkloadProfile profile;
    profile.cold_start_seconds = profile.release_seconds = 9;
    UseStartTimes(RecordOf(row.samples), kAlone, &profile);
    EXPECT_EQ(profile.cold_start_seconds, row.cold_start);
    EXPECT_DOUBLE_EQ(profile.cold_start_deviation_seconds, row.deviation);
    EXPECT_EQ(profile.release_seconds, row.release);
  }
}

TEST(ExpectedPodsAtOnce, IsThatOfAFixedPlanElseTheMeasuredOne) {
  JobSpec spec;
  Platform platform;
  EXPECT_EQ(ExpectedPodsAtOnce(spec, platform, 3), 3);
  spec.objective.fixed = Objective::Fixed{.functions = 4};
  EXPECT_EQ(ExpectedPodsAtOnce(spec, platform, 3), 5) << "with a server";
  spec.aggregation.layers = {1, 2};
  EXPECT_EQ(ExpectedPodsAtOnce(spec, platform, 3), 7);
  spec.aggregation.spread = 2;
  EXPECT_EQ(ExpectedPodsAtOnce(spec, platform, 3), 10);
  platform.nodes.resize(4);
  EXPECT_EQ(ExpectedPodsAtOnce(spec, platform, 3), 3) << "on the fullest of four nodes";
}

TEST(StartRecord, OfDamagedBytesNoTimeIsReadThatCannotBe) {
  const std::string good = RecordOf({{kAlone, 1.5, 0.25}, {kAlone, 2, {}}}).Encode();
  size_t refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char damage : {'\0', '9', '-', '\xff'}) {
      std::string text = good;
      text[i] = damage;
      const Result<StartRecord> record = StartRecord::Decode(text);
      refused += record.ok() ? 0 : 1;
      if (!record.ok()) continue;
      for (const StartRecord::Times& times : record->kinds()) {
        EXPECT_THAT(times.cold_starts, Each(AllOf(Ge(0), Le(1e9)))) << text;
        EXPECT_THAT(times.releases, Each(AllOf(Ge(0), Le(1e9)))) << text;
      }
    }
    // The last character is the end of the line.
    EXPECT_EQ(StartRecord::Decode(good.substr(0, i)).ok(), i + 1 == good.size());
  }
  EXPECT_GT(refused, 2 * good.size());
}

}  // namespace
}  // namespace lambdadnn
