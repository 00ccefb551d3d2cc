// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/tar_reader.h"

#include "tests/unit/trainer_function/data/data_fixture.h"
#include "tests/unit/trainer_function/data/tar_files.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct TarListing {
  std::vector<std::string> members;  // "NAME=CONTENTS"
  Status status;
  uint64_t bytes_read = 0;
};

TarListing ListTar(const std::string& archive) {
  DataFixture fixture;
  fixture.File("a.tar", archive);
  TarReader reader(*DataFile::Open(fixture.store, "a.tar"));
  TarListing listing;
  while (true) {
    auto member = reader.Next();
    listing.status = member.status();
    listing.bytes_read = fixture.store->bytes_read;
    if (!member.ok() || !member->has_value()) return listing;
    std::string contents = "…";
    if ((*member)->bytes < 1000) contents = std::string(AsText(*reader.Contents(**member, 1000)));
    listing.members.push_back((*member)->name + "=" + contents);
  }
}

Status TarError(const std::string& archive) { return ListTar(archive).status; }

TEST(TarReader, FilesComeInOrderAndFoldersAreLeftOut) {
  const TarListing listing =
      ListTar(TarEntry({"./", '5'}, "") + TarEntry({"a/", '5'}, "") + TarFile("./a/x.txt", "one") +
              TarFile("empty", "") + TarEntry({"old", '\0'}, std::string(512, 'y')) +
              TarEntry({"old/", '\0'}, "") + TarEnd());
  EXPECT_TRUE(listing.status.ok()) << listing.status.ToString();
  EXPECT_THAT(listing.members,
              ElementsAre("a/x.txt=one", "empty=", "old=" + std::string(512, 'y')));
}

TEST(TarReader, LongNamesOfAllKindsAreRead) {
  const std::string name = std::string(150, 'n') + "/" + std::string(120, 'm') + ".txt";
  TarHeader posix{"file.txt"};
  posix.prefix = std::string(140, 'p');
  const TarListing listing = ListTar(
      TarEntry({"././@LongLink", 'L'}, name + std::string(1, '\0')) + TarFile(name, "gnu") +
      TarEntry({"global", 'g'}, PaxRecord("comment", "nothing")) +
      TarEntry({"pax", 'x'}, PaxRecord("mtime", "1.5") + PaxRecord("path", "./" + name)) +
      TarFile("short", "pax") + TarEntry(posix, "ustar") + TarFile("after", "plain") + TarEnd());
  EXPECT_TRUE(listing.status.ok()) << listing.status.ToString();
  EXPECT_THAT(listing.members,
              ElementsAre(name + "=gnu", name + "=pax", std::string(140, 'p') + "/file.txt=ustar",
                          "after=plain"));
}

TEST(TarReader, SizesAreOctalBinaryOrOfThePaxHeader) {
  TarHeader binary{"binary"};
  binary.size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12);
  TarHeader spaces{"spaces"};
  spaces.size = "         3 ";
  TarHeader wrong{"wrong"};
  wrong.size = "00000000000";
  const TarListing listing =
      ListTar(TarEntry(binary, "abc") + TarEntry(spaces, "def") +
              TarEntry({"pax", 'x'}, PaxRecord("size", "3")) + TarEntry(wrong, "ghi") + TarEnd());
  EXPECT_TRUE(listing.status.ok()) << listing.status.ToString();
  EXPECT_THAT(listing.members, ElementsAre("binary=abc", "spaces=def", "wrong=ghi"));
}

TEST(TarReader, LongContentsArePassedOver) {
  const size_t large = 8 << 20;
  const TarListing listing = ListTar(TarFile("a", std::string(large, 'a')) + TarFile("b", "small") +
                                     TarFile("c", std::string(large, 'c')) + TarEnd());
  EXPECT_THAT(listing.members, ElementsAre("a=…", "b=small", "c=…"));
  EXPECT_LT(listing.bytes_read, large / 4);
}

TEST(TarReader, WhatIsNoFileOrLeavesTheFolderIsRefused) {
  const std::pair<char, const char*> kinds[] = {{'1', "is a hard link"},
                                                {'2', "is a symbolic link"},
                                                {'3', "is a device"},
                                                {'4', "is a device"},
                                                {'6', "is a pipe"},
                                                {'S', "is a sparse file"},
                                                {'Z', "of a kind that is not known"}};
  for (const auto& [kind, words] : kinds) {
    TarHeader header{"x.jpg", kind};
    header.link = "/etc/passwd";
    EXPECT_THAT(TarError(TarEntry(header, "") + TarEnd()).message(),
                AllOf(HasSubstr("memory:/a.tar, member x.jpg: "), HasSubstr(words)));
  }
  for (const char* name : {"/etc/x.jpg", "../x.jpg", "a/../x.jpg", "a/.."}) {
    const Status status = TarError(TarFile(name, "x") + TarEnd());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(name), HasSubstr("path"))) << name;
  }
  EXPECT_THAT(TarError(TarFile("", "x") + TarEnd()).message(), HasSubstr("has no name"));
  // A pax header's name counts, not the harmless one behind it.
  EXPECT_THAT(TarError(TarEntry({"p", 'x'}, PaxRecord("path", "/x")) + TarFile("x", "") + TarEnd())
                  .message(),
              HasSubstr("absolute path"));
}

TEST(TarReader, ClaimsAreHeldToTheArchive) {
  TarHeader huge{"huge.jpg"};
  huge.size = "77777777777";
  EXPECT_THAT(TarError(TarEntry(huge, "x") + TarEnd()).message(),
              AllOf(HasSubstr("member huge.jpg: is cut"), HasSubstr("8589934591 bytes")));
  huge.size = std::string("\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12);
  EXPECT_THAT(TarError(TarEntry(huge, "x") + TarEnd()).message(), HasSubstr("size is no number"));
  huge.size = "12x";
  EXPECT_THAT(TarError(TarEntry(huge, "x") + TarEnd()).message(), HasSubstr("size is no number"));
  for (const std::string& pax :
       {std::string("5 a=b"), std::string("99 path=x\n"), std::string("0 path=x\n"),
        std::string("path=x\n"), std::string("12 pathxxxx\n"), PaxRecord("size", "-1")}) {
    EXPECT_EQ(TarError(TarEntry({"p", 'x'}, pax) + TarFile("x", "") + TarEnd()).code(),
              StatusCode::kInvalidArgument)
        << pax;
  }
  EXPECT_THAT(TarError(TarEntry({"l", 'L'}, std::string(70000, 'n')) + TarEnd()).message(),
              HasSubstr("at most 65536"));
}

TEST(TarReader, ACutOrDamagedArchiveIsRefused) {
  const std::string whole = TarFile("a", "abc") + TarFile("b", "def");
  for (const size_t length :
       {size_t{0}, size_t{100}, size_t{512}, whole.size() / 2, whole.size()}) {
    EXPECT_THAT(TarError(whole.substr(0, length)).message(),
                AllOf(HasSubstr("memory:/a.tar"), HasSubstr("is cut")))
        << length;
  }
  std::string damaged = whole + TarEnd();
  damaged[1024] = 'x';  // the second name
  EXPECT_THAT(TarError(damaged).message(), AllOf(HasSubstr("byte 1024"), HasSubstr("checksum")));
  EXPECT_THAT(TarError(std::string(2048, 'x')).message(), HasSubstr("no tar archive"));
}

TEST(ShownName, HasNoControlCharactersAndAnEnd) {
  EXPECT_EQ(ShownName("a\nb\x1b[2J\x7f.jpg"), "a?b?[2J?.jpg");
  EXPECT_EQ(ShownName("größe.jpg"), "größe.jpg");
  EXPECT_EQ(ShownName(std::string(500, 'a')), std::string(200, 'a') + "…");
}

}  // namespace
}  // namespace lambdadnn
