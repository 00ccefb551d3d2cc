// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/s3_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/base/markup.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

TEST(S3Xml, ReadsElementsTextAndReferences) {
  const Result<XmlElement> root = ParseXml(
      "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- hello -->\n"
      "<s3:Root xmlns:s3='http://x' a=\"1 > 0\">one &lt;&amp;&gt;&quot;&apos;&#65;&#x1F600; two"
      "<Empty/><Child >a<!-- in -->b<![CDATA[<raw>&amp;]]></Child ><?pi?></s3:Root>\n ");
  ASSERT_TRUE(root.ok()) << root.status().ToString();
  EXPECT_EQ(root->name, "Root");
  EXPECT_EQ(root->text, "one <&>\"'A😀 two");
  EXPECT_EQ(root->ChildText("Child"), "ab<raw>&amp;");
  ASSERT_NE(root->Child("Empty"), nullptr);
  EXPECT_EQ(root->Child("Absent"), nullptr);
}

TEST(S3Xml, RefusesWhatIsNotWellFormed) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<a>";
  for (const std::string& text : {std::string(),
                                  std::string("text"),
                                  std::string("<a>"),
                                  std::string("<a></b>"),
                                  std::string("<a></ab>"),
                                  std::string("<a/><b/>"),
                                  std::string("<a>&nbsp;</a>"),
                                  std::string("<a>&#0;</a>"),
                                  std::string("<a>&#xD800;</a>"),
                                  std::string("<a>&#;</a>"),
                                  std::string("<a>&#99999999;</a>"),
                                  std::string("<a>&amp</a>"),
                                  std::string("<a b></a>"),
                                  std::string("<a b=c></a>"),
                                  std::string("<a b=\"c></a>"),
                                  std::string("<>x</>"),
                                  std::string("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"),
                                  std::string("<a><!ELEMENT></a>"),
                                  std::string("<a><![CDATA[x</a>"),
                                  std::string("<a><!-- </a>"),
                                  deep}) {
    const Result<XmlElement> root = ParseXml(text);
    EXPECT_EQ(root.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(root.status().message(), HasSubstr("XML at byte"));
  }
}

RC_GTEST_PROP(S3Xml, EscapedTextComesBack, (const std::string& text)) {
  const Result<XmlElement> root = ParseXml("<a>" + EscapeMarkup(text) + "</a>");
  RC_ASSERT(root.ok());
  RC_ASSERT(root->text == text);
}

TEST(S3Xml, ReadsListPages) {
  const Result<S3ListPage> page = ParseListPage(
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
      "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>t/+=</NextContinuationToken>"
      "<Contents><Key>a+b%2Bc%25%C3%BC/d</Key><Size>7</Size></Contents>"
      "<Contents><Key>e</Key><Size>0</Size></Contents></ListBucketResult>");
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  EXPECT_TRUE(page->truncated);
  EXPECT_EQ(page->next_continuation_token, "t/+=");
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[0].key, "a b+c%ü/d");
  EXPECT_EQ(page->objects[0].size, 7U);
}

TEST(S3Xml, KeysAreTakenLiterallyWhereTheServerDoesNotEncode) {
  const Result<S3ListPage> page = ParseListPage(
      "<ListBucketResult><Contents><Key>a+b%2B&amp;</Key><Size>7</Size></Contents>"
      "</ListBucketResult>");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->objects[0].key, "a+b%2B&");
  EXPECT_FALSE(page->truncated);
}

TEST(S3Xml, BadListPagesAreRefused) {
  const auto page = [](const std::string& inside) {
    return ParseListPage("<ListBucketResult><EncodingType>url</EncodingType>" + inside +
                         "</ListBucketResult>")
        .ok();
  };
  EXPECT_TRUE(page(""));
  EXPECT_FALSE(page("<Contents><Size>1</Size></Contents>"));
  EXPECT_FALSE(page("<Contents><Key>a</Key></Contents>"));
  EXPECT_FALSE(page("<Contents><Key>a</Key><Size>-1</Size></Contents>"));
  EXPECT_FALSE(page("<Contents><Key>a</Key><Size>1e3</Size></Contents>"));
  EXPECT_FALSE(page("<Contents><Key>a%2</Key><Size>1</Size></Contents>"));
  EXPECT_FALSE(page("<Contents><Key>a%zz</Key><Size>1</Size></Contents>"));
  EXPECT_FALSE(page("<IsTruncated>true</IsTruncated>"));
  EXPECT_FALSE(ParseListPage("<html></html>").ok());
}

TEST(S3Xml, ReadsErrors) {
  const auto error = ParseS3Error(
      "<Error><Code>NoSuchKey</Code><Message>gone</Message><Key>k</Key><Region>eu</Region></"
      "Error>");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, "NoSuchKey");
  EXPECT_EQ(error->region, "eu");
  EXPECT_TRUE(ParseS3Error("<ErrorResponse><Error><Code>X</Code></Error></ErrorResponse>"));
  EXPECT_FALSE(ParseS3Error("<html>502 Bad Gateway</html>"));
  EXPECT_FALSE(ParseS3Error(""));
  const auto errors = ParseDeleteResult(
      "<DeleteResult><Deleted><Key>a</Key></Deleted>"
      "<Error><Key>b</Key><Code>AccessDenied</Code></Error></DeleteResult>");
  ASSERT_TRUE(errors.ok());
  ASSERT_EQ(errors->size(), 1U);
  EXPECT_EQ(errors->front().key, "b");
}

TEST(S3Xml, WritesWhatItWouldRead) {
  const std::vector<std::string> keys = {"plain", "<&>\" 'ü"};
  const Result<XmlElement> root = ParseXml(DeleteRequestXml(keys));
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->children[2].ChildText("Key"), keys[1]);
  const std::vector<std::string> tags = {"\"e1\"", "\"e2\""};
  const Result<XmlElement> complete = ParseXml(CompleteUploadXml(tags));
  ASSERT_TRUE(complete.ok());
  EXPECT_EQ(complete->children[1].ChildText("PartNumber"), "2");
  EXPECT_EQ(complete->children[1].ChildText("ETag"), "\"e2\"");
  EXPECT_FALSE(ParseUploadId("<InitiateMultipartUploadResult/>").ok());
}

// An element costs more memory than its text.
TEST(S3Xml, TooManyElementsAreRefused) {
  const auto with = [](int count) {
    std::string xml = "<ListBucketResult>";
    for (int i = 0; i < count; ++i) xml += "<a/>";
    return xml + "</ListBucketResult>";
  };
  EXPECT_TRUE(ParseXml(with(49'999)).ok());
  EXPECT_FALSE(ParseXml(with(50'000)).ok());
}

}  // namespace
}  // namespace lambdadnn
