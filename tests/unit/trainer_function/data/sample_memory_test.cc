// SPDX-License-Identifier: Apache-2.0
// Shares that are read again and again against the same ones held in memory, for each format, and
// what that costs in samples, requests and bytes.
#include "trainer_function/data/sample_memory.h"

#include <filesystem>
#include <numeric>
#include <random>

#include "tests/support/faulty_object_store.h"
#include "tests/unit/trainer_function/data/data_fixture.h"
#include "tests/unit/trainer_function/data/tar_files.h"
#include "trainer_function/data/images/encode_png.h"
#include "trainer_function/data/parquet/parquet_library.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kStreamed = 40;  // samples of each set below, and 12 for testing

std::string Grey(int value) {
  const std::vector<uint8_t> pixels(36, static_cast<uint8_t>(value));
  return EncodePng({6, 6}, 1, pixels).value();
}

std::string StreamedShard(int first, int count) {
  std::string archive;
  for (int i = first; i < first + count; ++i) {
    archive += TarFile(std::to_string(i) + ".png", Grey(i));
    archive += TarFile(std::to_string(i) + ".cls", std::to_string(i % 3));
  }
  return archive + TarEnd();
}

std::string FloatArray(const std::string& shape, size_t count, int first) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(first));
  return Npy("<f4", shape, Raw(numbers));
}

DataFixture StreamedImages() {
  DataFixture fixture(DatasetFormat::kWebDataset);
  fixture.config.image.channels = 1;
  fixture.config.classes = 3;
  fixture.File("a.tar", StreamedShard(0, 25)).File("b.tar", StreamedShard(25, 15));
  fixture.File("test.tar", StreamedShard(60, 12));
  return fixture;
}

DataFixture StreamedRows(const std::string& name = "train.csv") {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.config.classes = 3;
  std::string rows = "a,b,label\n";
  for (int i = 0; i < kStreamed; ++i) {
    rows += std::to_string(i) + "," + std::to_string(i * i) + "," + std::to_string(i % 3) + "\n";
  }
  fixture.File(name, name.ends_with(".gz") ? Gzip(rows) : rows);
  return fixture;
}

DataFixture StreamedCifar(const DatasetFormat format) {
  DataFixture fixture(format);
  const bool fine = format == DatasetFormat::kCifar100;
  const auto records = [&](int first, int count) {
    std::string file;
    for (int i = first; i < first + count; ++i) {
      file += static_cast<char>(i % 10);
      if (fine) file += static_cast<char>(i % 100);
      file += Count(3072, static_cast<size_t>(i));
    }
    return file;
  };
  if (fine) {
    fixture.File("train.bin", records(0, kStreamed)).File("test.bin", records(50, 12));
    return fixture;
  }
  for (int i = 0; i < 5; ++i) {
    fixture.File("data_batch_" + std::to_string(i + 1) + ".bin", records(8 * i, 8));
  }
  fixture.File("test_batch.bin", records(50, 12));
  return fixture;
}

std::vector<std::pair<std::string, DataFixture>> StreamableSets() {
  std::vector<std::pair<std::string, DataFixture>> sets;
  sets.emplace_back("WebDataset", StreamedImages());
  DataFixture& skipping = sets.emplace_back("WebDataset that skips", StreamedImages()).second;
  skipping.config.on_bad_sample = BadSamples::kSkip;
  skipping.File("b.tar",
                TarFile("25.png", "no image") + TarFile("25.cls", "1") + StreamedShard(26, 14));
  DataFixture& changing = sets.emplace_back("WebDataset, augmented", StreamedImages()).second;
  changing.config.augment.flip = true;
  changing.config.augment.random_resized_crop = RandomResizedCrop{4, 4, 0.25, 1, 0.5, 2};
  DataFixture& folder =
      sets.emplace_back("ImageFolder", DataFixture(DatasetFormat::kImageFolder)).second;
  folder.config.image.channels = 1;
  for (int i = 0; i < kStreamed; ++i) {
    folder.File("train/c" + std::to_string(i % 3) + "/" + std::to_string(i) + ".png", Grey(i));
  }
  for (int i = 0; i < 12; ++i) {
    folder.File("val/c" + std::to_string(i % 3) + "/" + std::to_string(i) + ".png", Grey(60 + i));
  }
  DataFixture& idx = sets.emplace_back("IDX", DataFixture(DatasetFormat::kIdx)).second;
  idx.File("train-images-idx3-ubyte", Idx(8, {kStreamed, 4, 4}, Count(kStreamed * 16)))
      .File(
          "train-labels-idx1-ubyte",
          Idx(8, {kStreamed}, std::string(kStreamed / 2, '\1') + std::string(kStreamed / 2, '\2')))
      .File("t10k-images-idx3-ubyte", Idx(8, {12, 4, 4}, Count(12 * 16, 90)))
      .File("t10k-labels-idx1-ubyte", Idx(8, {12}, std::string(12, '\2')));
  sets.emplace_back("CIFAR10", StreamedCifar(DatasetFormat::kCifar10));
  sets.emplace_back("CIFAR100", StreamedCifar(DatasetFormat::kCifar100));
  sets.emplace_back("CSV", StreamedRows());
  DataFixture& arrays = sets.emplace_back("NPY", DataFixture(DatasetFormat::kNpy)).second;
  arrays.File("x_train.npy", FloatArray("(40, 3)", 120, 0))
      .File("y_train.npy", FloatArray("(40, 2)", 80, 500))
      .File("x_test.npy", FloatArray("(12, 3)", 36, 7))
      .File("y_test.npy", FloatArray("(12, 2)", 24, 900));
  DataFixture& shards = sets.emplace_back("shards of NPY", DataFixture(DatasetFormat::kNpy)).second;
  shards.File("x_train_000.npy", FloatArray("(25, 3)", 75, 0))
      .File("y_train_000.npy", FloatArray("(25, 2)", 50, 500))
      .File("x_train_001.npy", FloatArray("(15, 3)", 45, 75))
      .File("y_train_001.npy", FloatArray("(15, 2)", 30, 550));
  DataFixture& texts = sets.emplace_back("Text", DataFixture(DatasetFormat::kText)).second;
  texts.config.text.max_tokens = 3;
  std::string lines;
  for (int i = 0; i < kStreamed; ++i) {
    lines += "__label__" + std::string(i % 2 == 0 ? "a" : "b") + " " + std::to_string(i) + "\n";
  }
  texts.File("train.txt", lines).File("test.txt", "__label__b 7\n__label__a 9\n");
  if (!std::filesystem::exists(ParquetLibrary::Path())) return sets;  // built without Arrow
  sets.emplace_back("Parquet", DataFixture(DatasetFormat::kParquet))
      .second.Stored("train.parquet", "parquet/streamed.parquet")
      .Stored("test.parquet", "parquet/streamed_test.parquet");
  return sets;
}

// As a rank would read it: all but the first and the last two samples.
constexpr Range kOwn = {2, kStreamed - 2};

std::vector<int64_t> ShuffledOwn(unsigned seed) {
  std::vector<int64_t> order(static_cast<size_t>(kOwn.size()));
  std::iota(order.begin(), order.end(), kOwn.begin);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

std::unique_ptr<Dataset> Streaming(const DataFixture& fixture, int64_t kept, int64_t at_once) {
  auto dataset = fixture.MustOpen();
  dataset->LimitMemory({kept, at_once}, {3, 4});
  EXPECT_TRUE(dataset->Load(std::span(&kOwn, 1)).ok());
  return dataset;
}

TEST(SampleMemory, EveryFormatStreamsToTheSameBatchesAsFromMemory) {
  for (const auto& [name, fixture] : StreamableSets()) {
    SCOPED_TRACE(name);
    const auto whole = fixture.MustOpen();
    ASSERT_TRUE(whole->Load(std::span(&kOwn, 1)).ok());
    EXPECT_FALSE(whole->streams());
    const int64_t tests = whole->info().test_samples;
    ASSERT_TRUE(whole->LoadTest({0, tests}).ok());
    for (const int64_t kept : {0, 1, 10, 35}) {
      const auto streamed = Streaming(fixture, kept, 5);
      ASSERT_TRUE(streamed->streams());
      ASSERT_TRUE(streamed->LoadTest({0, tests}).ok());
      EXPECT_EQ(streamed->bad_samples(), whole->bad_samples());
      for (unsigned epoch = 0; epoch < 2; ++epoch) {
        const std::vector<int64_t> order = ShuffledOwn(epoch);
        for (size_t begin = 0; begin < order.size(); begin += 7) {
          const auto batch =
              std::span(order).subspan(begin, std::min<size_t>(7, order.size() - begin));
          ASSERT_TRUE(streamed->Fetch(batch, nullptr).ok());
          const Batch expected = whole->Read(batch, epoch).value();
          const Batch read = streamed->Read(batch, epoch).value();
          EXPECT_EQ(read.features, expected.features);
          EXPECT_EQ(read.labels, expected.labels);
          EXPECT_EQ(read.targets, expected.targets);
        }
      }
      EXPECT_EQ(streamed->counts().read_again, 2 * (kOwn.size() - kept)) << "each epoch the same";
      for (Range piece{0, 0}; piece.begin < tests; piece.begin = piece.end) {
        piece.end = std::min(piece.begin + 5, tests);
        ASSERT_TRUE(streamed->FetchTest(piece).ok());
        EXPECT_EQ(streamed->ReadTest(piece)->features, whole->ReadTest(piece)->features);
      }
    }
  }
}

TEST(SampleMemory, HoldsNoMoreThanItsBudgetAndReadsWhatItMust) {
  const DataFixture fixture = StreamedCifar(DatasetFormat::kCifar10);
  const auto dataset = Streaming(fixture, 10, 6);
  const int64_t sample = dataset->info().loaded_sample_bytes;
  EXPECT_EQ(dataset->counts().most_bytes, 16 * sample + kOwn.size() * 4)
      << "kept, a piece, and a fingerprint each";
  fixture.store->bytes_read = 0;
  fixture.store->requests = 0;
  const std::vector<int64_t> order = ShuffledOwn(3);
  for (size_t begin = 0; begin < order.size(); begin += 6) {
    ASSERT_TRUE(dataset->Fetch(std::span(order).subspan(begin, 6), nullptr).ok());
  }
  EXPECT_GE(fixture.store->bytes_read, (kOwn.size() - 10) * 3073u) << "each once an epoch";
  EXPECT_LE(fixture.store->requests, 6 * 5) << "of each batch one of each file";
  EXPECT_EQ(dataset->counts().most_bytes, 16 * sample + kOwn.size() * 4);
  // What is kept is not read.
  const std::vector<int64_t> kept = {2, 11, 2};
  fixture.store->requests = 0;
  ASSERT_TRUE(dataset->Fetch(kept, nullptr).ok());
  EXPECT_EQ(fixture.store->requests, 0);
  EXPECT_EQ(dataset->Read(kept, 0)->samples, 3);
}

// Requests by which these samples of a set of which none is kept are fetched.
int RequestsFor(const DataFixture& fixture, const std::vector<int64_t>& samples) {
  const auto dataset = fixture.MustOpen();
  dataset->LimitMemory({0, 4}, {0, 4});
  const Range all = {0, dataset->info().samples};
  EXPECT_TRUE(dataset->Load(std::span(&all, 1)).ok());
  fixture.store->requests = 0;
  fixture.store->bytes_read = 0;
  EXPECT_TRUE(dataset->Fetch(samples, [] { return OkStatus(); }).ok());
  return fixture.store->requests;
}

TEST(SampleMemory, SamplesThatLieCloseAreReadByOneRequest) {
  constexpr int kBytes = 30'000;
  DataFixture arrays(DatasetFormat::kNpy);
  arrays.config.classes = 251;
  arrays.File("x_train.npy", Npy("|u1", "(40, 30000)", Count(40 * kBytes)))
      .File("y_train.npy", Npy("|u1", "(40,)", Count(40)));
  // Two between them are 60 kB, three 90. Labels lie close in any case.
  EXPECT_EQ(RequestsFor(arrays, {10, 13}), 1 + 1);
  EXPECT_EQ(arrays.store->bytes_read, 4u * kBytes + 4);
  EXPECT_EQ(RequestsFor(arrays, {10, 14}), 2 + 1);
  EXPECT_EQ(arrays.store->bytes_read, 2u * kBytes + 5) << "what lies between is not read";
  EXPECT_EQ(RequestsFor(arrays, {1, 2, 10, 13, 16, 39}), 3 + 1);
  EXPECT_EQ(RequestsFor(StreamedImages(), {3, 6, 20}), 1) << "of one shard";
  EXPECT_EQ(RequestsFor(StreamedImages(), {3, 26, 30}), 2) << "of two";
  EXPECT_EQ(RequestsFor(StreamedRows(), {3, 20, 39}), 1);
  for (const auto& [name, fixture] : StreamableSets()) {
    if (name != "ImageFolder") continue;
    EXPECT_EQ(RequestsFor(fixture, {3, 6, 20}), 3) << "files of their own";
  }
}

TEST(SampleMemory, LinesThatLieFarApartAreReadByRequestsOfTheirOwn) {
  DataFixture texts(DatasetFormat::kText);
  texts.config.text.max_tokens = 2;
  std::string lines;
  for (int i = 0; i < 96; ++i)
    lines += (i % 2 == 0 ? "__label__a 7" : "__label__b 7") + std::string(6'000, ' ') + "8\n";
  texts.File("train.txt", lines);
  // Of 16 lines together about 96 kB.
  EXPECT_EQ(RequestsFor(texts, {3, 20}), 1) << "neighbours";
  EXPECT_EQ(RequestsFor(texts, {3, 40}), 2);
  EXPECT_EQ(texts.store->bytes_read, 2u * 16 * 6'014);
}

TEST(SampleMemory, WhatIsInMemoryAsAWholeIsNeverFetched) {
  const DataFixture fixture = StreamedImages();
  const auto dataset = Streaming(fixture, kOwn.size(), 1);
  EXPECT_FALSE(dataset->streams());
  EXPECT_FALSE(dataset->reads_slowly());
  fixture.store->requests = 0;
  ASSERT_TRUE(dataset->Fetch(ShuffledOwn(0), [] { return CancelledError("asked"); }).ok());
  EXPECT_EQ(fixture.store->requests, 0);
  EXPECT_EQ(dataset->counts().read_again, 0);
}

TEST(SampleMemory, ALoadThatIsEndedGoesOnWhereItWas) {
  for (auto& [name, fixture] : StreamableSets()) {
    SCOPED_TRACE(name);
    fixture.store->requests = 0;
    const auto at_once = Streaming(fixture, 10, 5);
    const int requests = fixture.store->requests;
    const auto slow = fixture.MustOpen();
    slow->LimitMemory({10, 5}, {3, 4});
    int left = 0;
    slow->WatchLoads([&] { return left-- > 0 ? OkStatus() : AbortedError("later"); });
    int slices = 0;
    Status loaded = AbortedError("");
    fixture.store->requests = 0;
    for (; !loaded.ok(); ++slices) {
      ASSERT_LT(slices, 10);
      left = 2;
      const int64_t before = slow->counts().loaded;
      loaded = slow->Load(std::span(&kOwn, 1));
      if (loaded.ok()) break;
      EXPECT_EQ(loaded.message(), "later");
      EXPECT_EQ(slow->counts().loaded, before + 2 * 5);
    }
    EXPECT_EQ(slices, 3) << "of 36 samples 10 each, and the rest";
    EXPECT_LE(fixture.store->requests, requests) << "nothing is read twice";
    EXPECT_EQ(slow->loaded_checksum(), at_once->loaded_checksum());
    EXPECT_EQ(slow->bad_samples(), at_once->bad_samples());
    // Of another share nothing is taken for loaded.
    left = 100;
    const Range other = {0, 7};
    ASSERT_TRUE(slow->Load(std::span(&other, 1)).ok());
    EXPECT_EQ(slow->counts().loaded, 7);
  }
}

TEST(SampleMemory, SamplesThatWereNotFetchedAreNotRead) {
  const auto dataset = Streaming(StreamedRows(), 4, 4);
  const std::vector<int64_t> one = {20};
  EXPECT_EQ(dataset->Read(one, 0).status().code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(dataset->Fetch(one, nullptr).ok());
  EXPECT_TRUE(dataset->Read(one, 0).ok());
  EXPECT_EQ(dataset->Fetch(std::vector<int64_t>{kStreamed - 1}, nullptr).code(),
            StatusCode::kFailedPrecondition)
      << "of another rank";
}

TEST(SampleMemory, ADamagedSampleIsFoundWhenTheShareIsLoaded) {
  DataFixture fixture = StreamedImages();
  fixture.File("b.tar",
               TarFile("25.png", "no image") + TarFile("25.cls", "1") + StreamedShard(26, 14));
  const auto whole = fixture.MustOpen();
  const Status expected = whole->Load(std::span(&kOwn, 1));
  ASSERT_EQ(expected.code(), StatusCode::kInvalidArgument);
  const auto streamed = fixture.MustOpen();
  streamed->LimitMemory({4, 3}, {});
  EXPECT_EQ(streamed->Load(std::span(&kOwn, 1)).message(), expected.message());
  // The limit of bad samples is that of the whole share.
  fixture.config.on_bad_sample = BadSamples::kSkip;
  fixture.config.max_bad_samples = 1;
  EXPECT_EQ(Streaming(fixture, 4, 3)->bad_samples(), 1);
  fixture.config.max_bad_samples = 0;
  const auto limited = fixture.MustOpen();
  limited->LimitMemory({4, 3}, {});
  EXPECT_THAT(limited->Load(std::span(&kOwn, 1)).message(), HasSubstr("more than 0 samples"));
}

TEST(SampleMemory, DataThatChangedIsNoticedWhenItIsReadAgain) {
  const DataFixture fixture = StreamedRows();
  const auto dataset = Streaming(fixture, 4, 4);
  const uint64_t checksum = dataset->loaded_checksum();
  EXPECT_NE(checksum, 0u);
  EXPECT_EQ(Streaming(fixture, 4, 5)->loaded_checksum(), checksum) << "another process, as before";
  std::string rows(AsText(fixture.store->Get("train.csv", std::nullopt).value()));
  const size_t at = rows.find("20,400,2");
  ASSERT_NE(at, std::string::npos);
  rows.replace(at, 8, "20,401,2");
  ASSERT_TRUE(fixture.store->Put("train.csv", AsBytes(rows)).ok());
  EXPECT_TRUE(dataset->Fetch(std::vector<int64_t>{19, 21}, nullptr).ok()) << "those are as before";
  const Status changed = dataset->Fetch(std::vector<int64_t>{19, 20}, nullptr);
  EXPECT_EQ(changed.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(changed.message(),
              AllOf(HasSubstr("the data set s3://bucket/data has changed since this function "
                              "loaded it (sample 20)"),
                    HasSubstr("spec.checkpoint.resumeFrom")));
  EXPECT_FALSE(dataset->Read(std::vector<int64_t>{19}, 0).ok()) << "nothing of it is used";
  EXPECT_NE(Streaming(fixture, 4, 4)->loaded_checksum(), checksum) << "and by the next function";
}

TEST(SampleMemory, CompressedFilesMustFitAsAWhole) {
  const DataFixture fixture = StreamedRows("train.csv.gz");
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().single_read.requests, 0);
  dataset->LimitMemory({4, 4}, {});
  const Status refused = dataset->Load(std::span(&kOwn, 1));
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("store it uncompressed, or profile it again"));
  EXPECT_EQ(Streaming(fixture, kOwn.size(), 4)->streams(), false);
}

TEST(SampleMemory, AFetchThatFailsLeavesNothingAndTheNextOneReadsAnew) {
  DataFixture fixture = StreamedImages();
  SystemClock clock;
  ThreadExecutor executor;
  SeededRandom random(1);
  Runtime runtime{clock, executor, random};
  const auto faulty = std::make_shared<FaultyObjectStore>(*fixture.store, runtime, StoreFaults{});
  auto opened = OpenDataset(fixture.config, faulty);
  ASSERT_TRUE(opened.ok());
  Dataset& dataset = **opened;
  dataset.LimitMemory({4, 4}, {});
  ASSERT_TRUE(dataset.Load(std::span(&kOwn, 1)).ok());
  bool away = false;
  faulty->SetScript([&](StoreOperation, std::string_view, bool) {
    return away ? UnavailableError("the store is away") : OkStatus();
  });
  const std::vector<int64_t> batch = {20, 7, 33};
  ASSERT_TRUE(dataset.Fetch(batch, nullptr).ok());
  const Batch before = dataset.Read(batch, 1).value();
  away = true;
  const Status failed = dataset.Fetch(batch, nullptr);
  EXPECT_EQ(failed.code(), StatusCode::kUnavailable) << "so that the slice is tried again";
  EXPECT_THAT(failed.message(), HasSubstr("the store is away"));
  EXPECT_FALSE(dataset.Read(batch, 1).ok());
  away = false;
  ASSERT_TRUE(dataset.Fetch(batch, nullptr).ok());
  EXPECT_EQ(dataset.Read(batch, 1)->features, before.features);
}

TEST(SampleMemory, AFetchThatNobodyWantsEndsAfterAFewSamples) {
  const DataFixture fixture = StreamedCifar(DatasetFormat::kCifar10);
  const auto dataset = Streaming(fixture, 0, 6);
  fixture.store->requests = 0;
  int asked = 0;
  const Status ended = dataset->Fetch(
      ShuffledOwn(1), [&] { return ++asked > 1 ? CancelledError("not needed") : OkStatus(); });
  EXPECT_EQ(ended.code(), StatusCode::kCancelled);
  EXPECT_LE(fixture.store->requests, 16) << "of 36";
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace lambdadnn
