// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/image_reader.h"

#include "tests/unit/trainer_function/data/data_fixture.h"
#include "tests/unit/trainer_function/data/tar_files.h"
#include "trainer_function/data/images/decode_image.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::string ImageFile(const std::string& name) {
  return *ReadFile(SourcePath("tests/data/readers/images/" + name));
}

// A PNG of one colour, brightness alone, of `side` x `side` pixels.
std::string GreyPng(uint8_t value, uint32_t side = 4) {
  const auto chunk = [](const std::string& kind, const std::string& data) {
    const std::string whole = kind + data;
    const auto crc = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(whole.data()), whole.size()));
    return BigEndian(static_cast<uint32_t>(data.size())) + whole + BigEndian(crc);
  };
  std::string rows;
  for (uint32_t y = 0; y < side; ++y) rows += '\0' + std::string(side, static_cast<char>(value));
  std::string packed(rows.size() + 100, '\0');
  uLongf length = packed.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &length,
                     reinterpret_cast<const Bytef*>(rows.data()), rows.size()),
            Z_OK);
  packed.resize(length);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", BigEndian(side) + BigEndian(side) + std::string("\x08\0\0\0\0", 5)) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

// Samples of the classes, each a PNG of the brightness 10 * number.
std::string Shard(const std::vector<int>& labels, int first = 0) {
  std::string archive;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int number = first + static_cast<int>(i);
    const std::string key = "s/" + std::to_string(number);
    archive += TarFile(key + ".png", GreyPng(static_cast<uint8_t>(10 * number)));
    archive += TarFile(key + ".cls", std::to_string(labels[i]) + "\n");
  }
  return archive + TarEnd();
}

DataFixture ShardFixture() {
  DataFixture fixture(DatasetFormat::kWebDataset);
  fixture.config.image.channels = 1;
  fixture.File("train-0.tar", Shard({0, 2, 1})).File("train-1.tar", Shard({2, 0}, 3));
  return fixture;
}

float FirstPixel(const Batch& batch, size_t sample) {
  return batch.features[sample * batch.features.size() / static_cast<size_t>(batch.samples)] * 255;
}

TEST(WebDataset, ShardsCountAsOneAndImplyTheirClasses) {
  DataFixture fixture = ShardFixture();
  fixture.File("val-0.tar", Shard({1, 1}, 20)).File("readme.txt", "x").File("sub/x.tar", "x");
  const auto dataset = fixture.MustOpen();
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->info().samples, 5);
  EXPECT_EQ(dataset->info().test_samples, 2);
  EXPECT_EQ(dataset->info().classes, 3);
  EXPECT_THAT(dataset->info().feature_shape, ElementsAre(1, 4, 4));
  EXPECT_EQ(dataset->info().loaded_sample_bytes, 16 + 8);
  const Batch batch = LoadAndRead(*dataset, {4, 1, 3});
  EXPECT_THAT(batch.labels, ElementsAre(0, 2, 2));
  EXPECT_FLOAT_EQ(FirstPixel(batch, 0), 40);
  EXPECT_FLOAT_EQ(FirstPixel(batch, 1), 10);
  ASSERT_TRUE(dataset->LoadTest({0, 2}).ok());
  EXPECT_FLOAT_EQ(FirstPixel(*dataset->ReadTest({0, 2}), 1), 210);
}

TEST(WebDataset, OneShardAndAFolderForTestingMayBeNamed) {
  DataFixture fixture(DatasetFormat::kWebDataset);
  fixture.config.uri += "/a.tar";
  fixture.config.test_uri = "held-out";
  fixture.File("a.tar", Shard({0, 1})).File("held-out/b.tar", Shard({1}));
  EXPECT_EQ(fixture.MustOpen()->info().samples, 2);
  EXPECT_EQ(fixture.MustOpen()->info().test_samples, 1);
}

TEST(WebDataset, ARankReadsItsOwnSamplesAlone) {
  DataFixture fixture(DatasetFormat::kWebDataset);
  fixture.config.image.channels = 1;
  std::string archive;
  for (int i = 0; i < 6; ++i) {
    archive += TarFile(std::to_string(i) + ".png", GreyPng(static_cast<uint8_t>(i), 512));
    archive += TarFile(std::to_string(i) + ".cls", "0");
    archive += TarFile(std::to_string(i) + ".txt", std::string(1 << 20, 'x'));
  }
  fixture.File("a.tar", archive + TarEnd());
  fixture.config.classes = 2;
  const auto dataset = fixture.MustOpen();
  fixture.store->bytes_read = 0;
  const std::vector<Range> own = {{2, 3}, {5, 6}};
  ASSERT_TRUE(dataset->Load(own).ok());
  EXPECT_EQ(fixture.store->bytes_read, GreyPng(2, 512).size() + GreyPng(5, 512).size());
  EXPECT_FLOAT_EQ(FirstPixel(MustRead(*dataset, {5}), 0), 5);
}

TEST(WebDataset, NeighboursAreReadByOneRequest) {
  DataFixture fixture(DatasetFormat::kWebDataset);
  fixture.File("a.tar", Shard(std::vector<int>(24, 0)));
  fixture.config.classes = 2;
  const auto dataset = fixture.MustOpen();
  fixture.store->requests = 0;
  EXPECT_EQ(LoadAndRead(*dataset, {0, 23}).samples, 2);
  EXPECT_EQ(fixture.store->requests, 1);
}

TEST(WebDataset, OpeningForACheckReadsTheFirstRecordsAlone) {
  DataFixture fixture = ShardFixture();
  fixture.File("train-1.tar", "broken");
  EXPECT_EQ(fixture.Open().status().code(), StatusCode::kInvalidArgument);
  fixture.config.first_records = 2;
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().samples, 2);
  EXPECT_EQ(LoadAndRead(*dataset, {0, 1}).samples, 2);
}

TEST(WebDatasetErrors, NameShardAndMember) {
  const auto error = [](const std::string& archive, int classes = 0) {
    DataFixture fixture(DatasetFormat::kWebDataset);
    fixture.config.classes = classes;
    fixture.File("a.tar", archive);
    const Status status = fixture.Error();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    return status.message();
  };
  const std::string png = GreyPng(1);
  EXPECT_THAT(error(TarFile("a.png", png) + TarEnd()),
              AllOf(HasSubstr("a.tar, sample a"), HasSubstr("no class")));
  EXPECT_THAT(error(TarFile("a.cls", "1") + TarFile("b.png", png) + TarEnd()),
              AllOf(HasSubstr("sample a"), HasSubstr("no image")));
  EXPECT_THAT(error(TarFile("a.png", png) + TarFile("a.jpg", png) + TarEnd()),
              AllOf(HasSubstr("member a.jpg"), HasSubstr("another image")));
  EXPECT_THAT(error(TarFile("a.cls", "1") + TarFile("a.CLS", "1") + TarEnd()),
              AllOf(HasSubstr("member a.CLS"), HasSubstr("another class")));
  for (const char* label : {"", "cat", "1.5", "0x1"}) {
    EXPECT_THAT(error(TarFile("a.cls", label) + TarEnd()),
                AllOf(HasSubstr("member a.cls"), HasSubstr("holds no class")));
  }
  EXPECT_THAT(error(TarFile("a.cls", std::string(40, '1')) + TarEnd()), HasSubstr("at most 32"));
  EXPECT_THAT(error(TarFile("a.cls", "3") + TarEnd(), 3),
              AllOf(HasSubstr("label 3"), HasSubstr("classes 0 to 2")));
  EXPECT_THAT(error(TarFile("a.cls", "-1") + TarEnd()), HasSubstr("label -1"));
  EXPECT_THAT(error(TarFile("a.txt", "x") + TarEnd()), HasSubstr("holds no samples"));
  EXPECT_THAT(error(TarEntry({"a.png", '2'}, "") + TarEnd()), HasSubstr("symbolic link"));
  EXPECT_THAT(error(TarFile("k/a.png", png.substr(0, 50)) + TarFile("k/a.cls", "0") + TarEnd()),
              AllOf(HasSubstr("a.tar, record 0 (k/a.png)"), HasSubstr("no valid PNG image")));
  EXPECT_THAT(error(TarFile("a.png", png) + TarFile("a.cls", "0") +
                    TarFile("b.png", GreyPng(1, 5)) + TarFile("b.cls", "0") + TarEnd()),
              AllOf(HasSubstr("record 1 (b.png)"), HasSubstr("5 x 5"),
                    HasSubstr("set spec.dataset.image")));
  DataFixture none(DatasetFormat::kWebDataset);
  EXPECT_EQ(none.Open().status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.Open().status().message(), HasSubstr("*.tar"));
}

TEST(WebDataset, ImagesAreBroughtToOneSizeAndEachChannelIsScaled) {
  DataFixture fixture(DatasetFormat::kWebDataset);
  fixture.File("a.tar", TarFile("a.jpg", ImageFile("colour.jpg")) + TarFile("a.cls", "1") +
                            TarFile("b.png", GreyPng(51)) + TarFile("b.cls", "0") + TarEnd());
  fixture.config.image = {16, 12, 3};
  fixture.config.channel_mean = {0, 0.2, 0.1};
  fixture.config.channel_standard_deviation = {1, 1, 0.5};
  const auto dataset = fixture.MustOpen();
  EXPECT_THAT(dataset->info().feature_shape, ElementsAre(3, 16, 12));
  const Batch batch = LoadAndRead(*dataset, {1, 0});
  const size_t plane = 16 * 12;
  const std::vector<float>& values = batch.features;
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + plane),
              Each(FloatNear(0.2f, 1e-6f)));
  EXPECT_NEAR(values[plane], 0, 1e-6);
  EXPECT_NEAR(values[2 * plane], 0.2, 1e-6);
  fixture.config.channel_mean = {0, 0};
  fixture.config.channel_standard_deviation = {1, 1};
  EXPECT_THAT(fixture.Error().message(), HasSubstr("spec.dataset.normalize.channelMean"));
  fixture.config.channel_standard_deviation = {1, 0};
  EXPECT_THAT(fixture.Error().message(), HasSubstr("spec.dataset.normalize"));
  fixture.config.image = {16, 0, 3};
  EXPECT_THAT(fixture.Error().message(), HasSubstr("spec.dataset"));
}

DataFixture FolderFixture(const std::string& folder) {
  DataFixture fixture(DatasetFormat::kImageFolder);
  fixture.config.image.channels = 1;
  for (int i = 0; i < 6; ++i) {
    const std::string place = folder + (i % 2 == 0 ? "dog/" : "ant/");
    fixture.File(place + std::to_string(i) + ".png", GreyPng(static_cast<uint8_t>(10 * i)));
  }
  return fixture;
}

TEST(ImageFolder, FoldersAreClassesInTheOrderOfTheirNames) {
  DataFixture fixture = FolderFixture("");
  fixture.File("dog/deep/er.PNG", GreyPng(60)).File("dog/notes.txt", "x").File("readme.md", "x");
  const auto dataset = fixture.MustOpen();
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->info().samples, 7);
  EXPECT_EQ(dataset->info().test_samples, 0);
  EXPECT_EQ(dataset->info().classes, 2);
  const Batch batch = LoadAndRead(*dataset, {0, 1, 2, 3, 4, 5, 6});
  std::vector<std::pair<int64_t, int>> seen;
  for (size_t i = 0; i < 7; ++i) {
    seen.emplace_back(batch.labels[i], static_cast<int>(std::lround(FirstPixel(batch, i))));
  }
  // Classes are mixed: not in the order of the files.
  EXPECT_FALSE(std::is_sorted(batch.labels.begin(), batch.labels.end()));
  using P = std::pair<int64_t, int>;
  EXPECT_THAT(seen, UnorderedElementsAre(P(1, 0), P(0, 10), P(1, 20), P(0, 30), P(1, 40), P(0, 50),
                                         P(1, 60)));
}

TEST(ImageFolder, TrainAndValMayBeFoldersOfTheirOwn) {
  DataFixture fixture = FolderFixture("train/");
  fixture.File("val/dog/x.png", GreyPng(1)).File("other/cat/x.png", GreyPng(1));
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().samples, 6);
  EXPECT_EQ(dataset->info().test_samples, 1);
  ASSERT_TRUE(dataset->LoadTest({0, 1}).ok());
  EXPECT_THAT(dataset->ReadTest({0, 1})->labels, ElementsAre(1));
  fixture.config.test_uri = "other";
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("class cat"), HasSubstr("training images lack")));
}

TEST(ImageFolder, ACheckSeesAllClassesByFewRequests) {
  DataFixture fixture(DatasetFormat::kImageFolder);
  for (const char* name : {"a", "b", "c"}) {
    for (int i = 0; i < 1500; ++i) {
      fixture.File(std::string(name) + "/" + std::to_string(i) + ".png", "x");
    }
  }
  fixture.File("d/1.png", "x");
  fixture.File("a/0.png", GreyPng(1));
  fixture.config.first_records = 100;
  fixture.config.on_bad_sample = BadSamples::kSkip;
  fixture.config.max_bad_samples = 5000;
  fixture.store->lists = 0;
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().classes, 4);
  EXPECT_LE(fixture.store->lists, 6);
  EXPECT_LT(dataset->info().samples, 200);
}

TEST(ImageFolderErrors, NameTheFile) {
  DataFixture fixture = FolderFixture("");
  fixture.File("loose.jpg", "x");
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("loose.jpg"), HasSubstr("no class's folder")));
  ASSERT_TRUE(fixture.store->Delete("loose.jpg").ok());
  fixture.File("ant/x.webp", "x");
  EXPECT_THAT(fixture.Error().message(), AllOf(HasSubstr("ant/x.webp"), HasSubstr("convert it")));
  ASSERT_TRUE(fixture.store->Delete("ant/x.webp").ok());
  fixture.File("ant/x.jpg", "x");
  EXPECT_THAT(fixture.Error().message(), AllOf(HasSubstr("ant/x.jpg: is no JPEG or PNG image")));
  ASSERT_TRUE(fixture.store->Delete("ant/x.jpg").ok());
  fixture.config.classes = 2;
  EXPECT_TRUE(fixture.Error().ok());
  fixture.File("cat/x.png", GreyPng(1));
  EXPECT_THAT(fixture.Error().message(), HasSubstr("3 folders of images"));
  DataFixture none(DatasetFormat::kImageFolder);
  EXPECT_EQ(none.Open().status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.Open().status().message(), HasSubstr("CLASS/NAME.jpg"));
}

// Nine samples, of which those of `bad` are broken.
DataFixture BadFixture(const std::vector<int>& bad) {
  DataFixture fixture(DatasetFormat::kWebDataset);
  fixture.config.image.channels = 1;
  fixture.config.classes = 10;
  std::string archive;
  for (int i = 0; i < 9; ++i) {
    const bool broken = std::find(bad.begin(), bad.end(), i) != bad.end();
    const std::string png = GreyPng(static_cast<uint8_t>(10 * i));
    archive += TarFile(std::to_string(i) + ".png", broken ? png.substr(0, 45) : png);
    archive += TarFile(std::to_string(i) + ".cls", std::to_string(i));
  }
  fixture.File("a.tar", archive + TarEnd());
  fixture.config.on_bad_sample = BadSamples::kSkip;
  fixture.config.max_bad_samples = 3;
  return fixture;
}

TEST(BadSamples, TheNextGoodOneTakesThePlaceOfABadOne) {
  const DataFixture fixture = BadFixture({1, 4, 5});
  const auto dataset = fixture.MustOpen();
  const Batch batch = LoadAndRead(*dataset, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(batch.labels, ElementsAre(0, 2, 2, 3, 6, 6, 6, 7, 8));
  EXPECT_FLOAT_EQ(FirstPixel(batch, 1), 20);
  EXPECT_FLOAT_EQ(FirstPixel(batch, 4), 60);
  EXPECT_EQ(dataset->bad_samples(), 3);
}

TEST(BadSamples, AfterTheLastComesTheFirst) {
  const DataFixture fixture = BadFixture({8, 0});
  const auto dataset = fixture.MustOpen();
  EXPECT_THAT(LoadAndRead(*dataset, {7, 8, 0}).labels, ElementsAre(7, 1, 1));
}

// What a sample is does not depend on who loads it beside which others.
TEST(BadSamples, EverySplitHasTheSameSamples) {
  const DataFixture fixture = BadFixture({2, 3, 8});
  const auto all = fixture.MustOpen();
  const Batch whole = LoadAndRead(*all, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  for (int64_t first = 0; first < 9; ++first) {
    const auto part = fixture.MustOpen();
    const std::vector<Range> own = {{first, first + 1}};
    ASSERT_TRUE(part->Load(own).ok());
    const Batch one = MustRead(*part, {first});
    EXPECT_EQ(one.labels[0], whole.labels[static_cast<size_t>(first)]);
    EXPECT_EQ(FirstPixel(one, 0), FirstPixel(whole, static_cast<size_t>(first)));
    EXPECT_EQ(part->bad_samples(), first == 2 || first == 3 || first == 8 ? 1 : 0);
  }
}

TEST(BadSamples, OneMoreThanTheLimitEndsTheJob) {
  DataFixture fixture = BadFixture({1, 4, 7});
  EXPECT_TRUE(fixture.Error().ok());
  fixture.config.max_bad_samples = 2;
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("more than 2 samples (spec.dataset.maxBadSamples)"),
                    HasSubstr("a.tar, record 7 (7.png)")));
  fixture.config.on_bad_sample = BadSamples::kFail;
  EXPECT_THAT(fixture.Error().message(), HasSubstr("a.tar, record 1 (1.png)"));
  DataFixture all = BadFixture({0, 1, 2, 3, 4, 5, 6, 7, 8});
  all.config.max_bad_samples = 100;
  EXPECT_EQ(all.Error().code(), StatusCode::kInvalidArgument);
}

TEST(BadSamples, ImagesThatAreTooLongAreNotRead) {
  DataFixture fixture = BadFixture({});
  fixture.File("a.tar", TarFile("a.png", GreyPng(7)) + TarFile("a.cls", "0") +
                            TarFile("b.png", std::string((64 << 20) + 1, 'x')) +
                            TarFile("b.cls", "1") + TarEnd());
  const auto dataset = fixture.MustOpen();
  fixture.store->bytes_read = 0;
  EXPECT_THAT(LoadAndRead(*dataset, {0, 1}).labels, ElementsAre(0, 0));
  EXPECT_LT(fixture.store->bytes_read, 10000u);
  fixture.config.on_bad_sample = BadSamples::kFail;
  EXPECT_THAT(fixture.Error().message(), AllOf(HasSubstr("(b.png)"), HasSubstr("67108865 bytes")));
}

}  // namespace
}  // namespace lambdadnn
