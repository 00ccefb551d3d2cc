// SPDX-License-Identifier: Apache-2.0
// Parts of large row groups, found by the index of their pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "common/base/files.h"
#include "tests/support/paths.h"
#include "trainer_function/data/parquet/parquet_library.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

// 600 rows in two row groups, in pages of some 30, with an index of them.
class ParquetPages : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(ParquetLibrary::Path())) {
      GTEST_SKIP() << "built without Apache Arrow (scripts/arrow.sh fetch)";
    }
  }

  struct Row {
    int64_t row;
    std::vector<double> numbers;
    std::string bytes;
    bool operator==(const Row&) const = default;
  };
  static constexpr int kPixels = 0;  // three of each row
  static constexpr int kLabel = 1;   // by a dictionary
  static constexpr int kNumber = 2;
  static constexpr int kText = 3;

  // What is read of a column of the first row group; by pages, or not at all.
  Result<std::vector<Row>> Read(int column, const std::vector<Range>& rows, bool by_pages) {
    ParquetSource source;
    source.name = "paged.parquet";
    source.size = bytes_.size();
    source.by_pages_from = by_pages ? 0 : bytes_.size();
    source.read = [this](uint64_t offset, MutableByteView out) {
      read_ += out.size();
      std::copy_n(AsBytes(bytes_).begin() + static_cast<std::ptrdiff_t>(offset), out.size(),
                  out.begin());
      return OkStatus();
    };
    LDNN_ASSIGN_OR_RETURN(const auto file, ParquetLibrary::Load()->Open(source));
    read_ = 0;
    std::vector<Row> read;
    const int64_t each = column == kPixels ? 3 : 1;
    if (column == kText) {
      LDNN_RETURN_IF_ERROR(
          file->ReadBytes(0, column, rows, [&](int64_t row, std::optional<ByteView> bytes) {
            read.push_back({row, {}, std::string(AsText(bytes.value_or(ByteView())))});
            return OkStatus();
          }));
      return read;
    }
    LDNN_RETURN_IF_ERROR(file->ReadNumbers(
        0, column, each, rows, [&](int64_t first, std::span<const double> numbers) {
          for (size_t i = 0; i < numbers.size(); i += static_cast<size_t>(each)) {
            const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(i);
            read.push_back({first + static_cast<int64_t>(i) / each, {begin, begin + each}, ""});
          }
          return OkStatus();
        }));
    return read;
  }

  std::string bytes_ = *ReadFile(SourcePath("tests/data/readers/parquet/paged.parquet"));
  uint64_t read_ = 0;  // bytes, behind the footer
};

TEST_F(ParquetPages, AnyRowsAreThoseOfTheWholeColumn) {
  for (const int column : {kPixels, kLabel, kNumber, kText}) {
    for (const std::vector<Range>& rows : {std::vector<Range>{{0, 400}},
                                           {{0, 1}},
                                           {{399, 400}},
                                           {{17, 18}, {200, 290}, {398, 400}},
                                           {{15, 49}},
                                           {{250, 251}}}) {
      const auto pages = Read(column, rows, true);
      ASSERT_TRUE(pages.ok()) << pages.status().ToString();
      EXPECT_EQ(*pages, *Read(column, rows, false)) << column << " from " << rows.front().begin;
    }
  }
}

TEST_F(ParquetPages, ThoseBeforeAndBehindAreNotRead) {
  for (const int column : {kPixels, kNumber, kText}) {
    const std::vector<Range> few = {{300, 310}};
    ASSERT_TRUE(Read(column, few, true).ok());
    const uint64_t by_pages = read_;
    ASSERT_TRUE(Read(column, {{0, 400}}, false).ok());
    EXPECT_LT(by_pages, read_ / 2) << column << ": with the index";
  }
}

// Each byte between the last column and the footer turned: where the index lies.
TEST_F(ParquetPages, ADamagedIndexIsAnErrorOrChangesNothing) {
  const std::vector<Range> rows = {{200, 210}};
  const std::vector<Row> expected = *Read(kNumber, rows, true);
  const std::string whole = bytes_;
  const size_t footer = LoadLittleEndian<uint32_t>(AsBytes(whole), whole.size() - 8);
  const size_t end = whole.size() - 8 - footer;
  int refused = 0;
  for (size_t at = end - std::min<size_t>(end, 4000); at < end; ++at) {
    bytes_ = whole;
    bytes_[at] = static_cast<char>(bytes_[at] ^ (at % 2 == 0 ? 0xff : 0x10));
    const auto read = Read(kNumber, rows, true);
    if (read.ok()) {
      EXPECT_EQ(*read, expected) << at;
      continue;
    }
    ++refused;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << read.status().ToString();
    EXPECT_THAT(read.status().message(), HasSubstr("paged.parquet")) << at;
  }
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace lambdadnn
