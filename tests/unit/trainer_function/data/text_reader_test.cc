// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/text_reader.h"

#include <sstream>

#include "tests/unit/trainer_function/data/data_fixture.h"
#include "trainer_function/data/inspection.h"
#include "trainer_function/data/line_index.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kVocabulary = "<pad>\n<unk>\nthe\nball\n.\nvote\n";

DataFixture TextFixture(const std::string& text, const std::string& vocabulary = kVocabulary) {
  DataFixture fixture(DatasetFormat::kText);
  fixture.config.text.max_tokens = 4;
  if (!vocabulary.empty()) {
    fixture.config.text.vocabulary = "vocab.txt";
    fixture.File("vocab.txt", vocabulary);
  }
  fixture.File("train.txt", text);
  return fixture;
}

TEST(SplitTokens, PartsAsTorchtextsBasicEnglishDoes) {
  for (const auto& [text, tokens] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"", {}},
           {"You're it.", {"you", "'", "re", "it", "."}},
           {"A (small) test, no?", {"a", "(", "small", ")", "test", ",", "no", "?"}},
           {"one;two:three! \"quoted\" in\"side", {"one", "two", "three", "!", "quoted", "inside"}},
           {"end<br />Begin<BR />", {"end", "begin"}},
           {"  tabs\tand   spaces ", {"tabs", "and", "spaces"}},
           {"Größe", {"größe"}},
           {"3.5", {"3", ".", "5"}}}) {
    EXPECT_EQ(SplitTokens(Tokenizer::kBasicEnglish, text), tokens) << text;
  }
  EXPECT_THAT(SplitTokens(Tokenizer::kWhitespace, " You're\tit. "), ElementsAre("You're", "it."));
}

TEST(Text, WordsBecomeIdsCutOrFilledUpAndLabelsNumbersInOrderOfTheirNames) {
  const auto dataset = TextFixture(
                           "__label__sports The ball.\n\n"
                           "__label__politics vote the vote the vote\r\n"
                           "  __label__sports\tunseen")
                           .MustOpen();
  const DatasetInfo& info = dataset->info();
  EXPECT_EQ(info.samples, 3);
  EXPECT_EQ(info.classes, 2);
  EXPECT_EQ(info.vocabulary, 6);
  EXPECT_THAT(info.class_names, ElementsAre("politics", "sports"));
  EXPECT_THAT(info.feature_shape, ElementsAre(4));
  const Batch batch = LoadAndRead(*dataset, {0, 1, 2});
  EXPECT_THAT(batch.features, ElementsAre(2, 3, 4, 0, 5, 2, 5, 2, 1, 0, 0, 0));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 1));
}

TEST(Text, ReadyIdsNeedNoVocabulary) {
  DataFixture fixture = TextFixture("__label__10 7 16777215\n__label__9 3\n", "");
  const auto dataset = fixture.MustOpen();
  EXPECT_THAT(dataset->info().class_names, ElementsAre("9", "10")) << "in order as numbers";
  const Batch batch = LoadAndRead(*dataset, {0, 1});
  EXPECT_THAT(batch.features, ElementsAre(7, 16777215, 0, 0, 3, 0, 0, 0));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0));
  for (const std::string id : {"16777216", "-1", "3.5", "ball"}) {
    fixture.File("train.txt", "__label__a 1\n__label__b " + id + "\n");
    EXPECT_THAT(fixture.Error().message(),
                AllOf(HasSubstr("train.txt, line 2: '" + id + "' is no token id"),
                      HasSubstr("set spec.dataset.text.vocabulary for words")));
  }
}

TEST(Text, TestLabelsHaveTheNumbersOfTheTrainingLabels) {
  DataFixture fixture = TextFixture("__label__b ball\n__label__a the\n__label__c vote\n");
  fixture.File("test.txt", "__label__c ball\n__label__b vote\n");
  const auto dataset = fixture.MustOpen();
  ASSERT_TRUE(dataset->LoadTest({0, 2}).ok());
  EXPECT_THAT(dataset->ReadTest({0, 2})->labels, ElementsAre(2, 1));
  fixture.File("test.txt", "__label__c ball\n__label__d vote\n");
  EXPECT_THAT(fixture.Error().message(),
              HasSubstr("test.txt, line 2: the training samples have no label 'd'"));
}

TEST(Text, SaysWhereAndWhatIsWrong) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, const char*>>{
           {"__label__a the\nball\n", "train.txt, line 2: begins with 'ball', not with a label"},
           {"__label__ the\n", "line 1: begins with '__label__', not with a label"},
           {"__label__a __label__b the\n", "line 1: has two labels"},
           {"__label__a the\n__label__b \n", "line 2: has no text; remove the line"},
           {"__label__a \"\"\n", "line 1: has no text"},
           {"\n\n", "train.txt holds no samples"}}) {
    EXPECT_THAT(TextFixture(text).Error().message(), HasSubstr(message)) << text;
  }
  EXPECT_THAT(TextFixture("__label__a the ghost\n", "<pad>\nthe\n").Error().message(),
              AllOf(HasSubstr("train.txt, line 1: the token 'ghost' is not in "),
                    HasSubstr("vocab.txt, which has no <unk>; add either")));
  DataFixture few = TextFixture("__label__a the\n__label__b the\n__label__c the\n");
  few.config.classes = 2;
  EXPECT_THAT(few.Error().message(), HasSubstr("has 3 labels, more than spec.dataset.classes: 2"));
  DataFixture unset = TextFixture("__label__a the\n");
  unset.config.text.max_tokens = 0;
  EXPECT_THAT(unset.Error().message(), HasSubstr("spec.dataset.text.maxTokens"));
}

TEST(Vocabulary, SaysWhereAndWhatIsWrong) {
  for (const auto& [vocabulary, message] : std::vector<std::pair<std::string, const char*>>{
           {"<unk>\nthe\n", "vocab.txt has no <pad>"},
           {"<pad>\nthe\nball\nthe\n", "vocab.txt, line 4: the token stands in line 2 already"},
           {"<pad>\n\nthe\n", "vocab.txt, line 2: is empty"}}) {
    EXPECT_THAT(TextFixture("__label__a the\n", vocabulary).Error().message(), HasSubstr(message));
  }
  DataFixture missing = TextFixture("__label__a the\n");
  missing.config.text.vocabulary = "words.txt";
  EXPECT_EQ(missing.Error().code(), StatusCode::kNotFound);
  for (const char* const name : {"../words.txt", "/words.txt", "s3://other/words.txt"}) {
    missing.config.text.vocabulary = name;
    EXPECT_THAT(missing.Error().message(),
                HasSubstr("must be the name of a file in the folder of the samples"));
  }
}

std::string ManyLines(int64_t count) {
  std::ostringstream text;
  for (int64_t i = 0; i < count; ++i) text << "__label__" << i % 3 << " " << i << "\n";
  return text.str();
}

TEST(Text, RangesAreReadByRangesOfBytesAndTheSameGzipped) {
  const int64_t count = 3 * kRowsPerMark + 5;
  DataFixture plain = TextFixture(ManyLines(count), "");
  DataFixture packed(DatasetFormat::kText);
  packed.config.text.max_tokens = 4;
  packed.File("train.txt.gz", Gzip(ManyLines(count)));
  for (const DataFixture* const fixture : {&plain, &packed}) {
    const auto dataset = fixture->MustOpen();
    EXPECT_EQ(dataset->info().samples, count);
    const std::vector<Range> ranges = {
        {3, 5}, {kRowsPerMark - 1, kRowsPerMark + 1}, {count - 1, count}};
    ASSERT_TRUE(dataset->Load(ranges).ok());
    for (const int64_t at : {int64_t{3}, int64_t{4}, kRowsPerMark, count - 1}) {
      const Batch batch = MustRead(*dataset, {at});
      EXPECT_EQ(batch.features[0], static_cast<float>(at));
      EXPECT_EQ(batch.labels[0], at % 3);
    }
  }
  const auto dataset = plain.MustOpen();
  plain.store->bytes_read = 0;
  const Range middle = {kRowsPerMark, kRowsPerMark + 2};
  ASSERT_TRUE(dataset->Load(std::span(&middle, 1)).ok());
  EXPECT_LT(plain.store->bytes_read, ManyLines(count).size() / 2);
}

TEST(Text, ABadSampleIsReplacedByTheNextGoodOneWhoeverLoadsIt) {
  DataFixture fixture = TextFixture(
      "__label__a the\n__label__b ghost\n__label__c spirit\n__label__d vote\n__label__e ghost\n",
      "<pad>\nthe\nball\nvote\n");
  fixture.config.on_bad_sample = BadSamples::kSkip;
  fixture.config.max_bad_samples = 5;
  const auto dataset = fixture.MustOpen();
  const Batch all = LoadAndRead(*dataset, {0, 1, 2, 3, 4});
  EXPECT_THAT(all.labels, ElementsAre(0, 3, 3, 3, 0)) << "after the last the first";
  EXPECT_EQ(all.features[4], 3) << "text and class";
  EXPECT_EQ(dataset->bad_samples(), 3);
  const Range own = {2, 3};
  ASSERT_TRUE(dataset->Load(std::span(&own, 1)).ok());
  EXPECT_THAT(MustRead(*dataset, {2}).labels, ElementsAre(3));
  EXPECT_EQ(dataset->bad_samples(), 1);
  fixture.config.max_bad_samples = 2;
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("more than 2 samples (spec.dataset.maxBadSamples)"),
                    HasSubstr("train.txt, line 5: the token 'ghost'")));
}

TEST(Text, InspectionCountsTokensAndDetectsTheFormat) {
  DataFixture fixture = TextFixture("__label__a the\n__label__b the ball vote\n");
  EXPECT_EQ(*DetectFormat(fixture.config, fixture.store), DatasetFormat::kText);
  const auto inspection = InspectDataset(fixture.config, fixture.store);
  ASSERT_TRUE(inspection.ok()) << inspection.status().ToString();
  EXPECT_EQ(inspection->train.tokens.count, 2);
  EXPECT_EQ(inspection->train.tokens.minimum, 1);
  EXPECT_EQ(inspection->train.tokens.maximum, 3);
  EXPECT_THAT(inspection->info.class_names, ElementsAre("a", "b"));
  EXPECT_THAT(inspection->warnings, ElementsAre(HasSubstr("no test samples")));
}

}  // namespace
}  // namespace lambdadnn
