// What stores answer, and how requests are signed: the parts of libtandem_stores.so that need no
// server.

#include <cstdint>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/stores/internal/aws_identity.h"
#include "tandem/fs/stores/internal/aws_signature.h"
#include "tandem/fs/stores/internal/content_range.h"
#include "tandem/fs/stores/internal/crypto.h"
#include "tandem/fs/stores/internal/environment.h"
#include "tandem/fs/stores/internal/json_answers.h"
#include "tandem/fs/stores/internal/s3_answers.h"

#include "tests/fuzz/store_answers.h"

namespace tandem::fs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The examples of Amazon's documentation of Signature Version 4 for S3.
TEST(AwsSignature, IsThatOfTheDocumentation) {
  const AwsCredentials credentials{"AKIAIOSFODNN7EXAMPLE",
                                   "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  constexpr std::time_t kTime = 1369353600;  // 2013-05-24
  const auto signature = [&](const AwsRequest& request) {
    const HttpRequest made = sign(request, credentials, "us-east-1", "s3", kTime);
    return made.headers.back().second;
  };
  AwsRequest get{"GET", "https", "examplebucket.s3.amazonaws.com", "/test.txt"};
  get.headers = {{"range", "bytes=0-9"}};
  EXPECT_THAT(signature(get),
              HasSubstr("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature="
                        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
  AwsRequest put{"PUT", "https", "examplebucket.s3.amazonaws.com", "/test%24file.text"};
  put.headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                 {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
  put.body = "Welcome to Amazon S3.";
  EXPECT_THAT(
      signature(put),
      HasSubstr("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
  AwsRequest list{"GET", "https", "examplebucket.s3.amazonaws.com", "/"};
  list.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_THAT(
      signature(list),
      HasSubstr("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(Crypto, TextsOfBytes) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(base64(md5("")), "1B2M2Y8AsgTpgAmY7PhCfg==");
  EXPECT_EQ(base64_url("\xff\xfe\x01"), "__4B");
  EXPECT_EQ(base64(""), "");
  EXPECT_THROW(sign_rs256("no key", "x", "key.json"), InvalidArgumentError);
}

TEST(S3Answers, PagesAreRead) {
  const ObjectPage page = parse_object_page(
      R"(<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
      <EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
      <NextContinuationToken>next/token=</NextContinuationToken>
      <Contents><Key>a%20b%0A</Key><Size>12</Size></Contents>
      <CommonPrefixes><Prefix>a%2Fb/</Prefix></CommonPrefixes></ListBucketResult>)",
      "s3://b");
  ASSERT_EQ(page.objects.size(), 1u);
  EXPECT_EQ(page.objects[0].key, "a b\n");
  EXPECT_EQ(page.objects[0].size, 12u);
  EXPECT_THAT(page.prefixes, ElementsAre("a/b/"));
  EXPECT_EQ(page.next, "next/token=");
}

TEST(S3Answers, NonsenseIsADataLossError) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  for (const std::string& xml :
       {std::string(), std::string("<html>"), std::string("<html></html>"),
        std::string("<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents>"
                    "</ListBucketResult>"),
        std::string("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
        deep}) {
    EXPECT_THROW(parse_object_page(xml, "s3://b"), DataLossError) << xml.substr(0, 100);
  }
  EXPECT_EQ(parse_s3_error("<Error><Code>SlowDown</Code></Error>").code, "SlowDown");
  EXPECT_EQ(parse_s3_error("<html>").code, "");
}

TEST(GcsAnswers, AreReadOrRefused) {
  const ObjectPage page = parse_gcs_page(
      R"({"items": [{"name": "a/b", "size": "12"}], "prefixes": ["c/"], "nextPageToken": "t"})",
      "gs://b");
  EXPECT_EQ(page.objects[0].size, 12u);
  EXPECT_THAT(page.prefixes, ElementsAre("c/"));
  EXPECT_EQ(page.next, "t");
  std::string deep(100'000, '[');
  for (const std::string& json :
       {std::string(), std::string("[]"), std::string("{"), std::string(R"({"items": 1})"),
        std::string(R"({"items": [{"name": "a"}]})"),
        std::string(R"({"items": [{"name": "a", "size": "x"}]})"), R"({"a": )" + deep}) {
    EXPECT_THROW(parse_gcs_page(json, "gs://b"), DataLossError) << json.substr(0, 100);
  }
  EXPECT_EQ(parse_gcs_error(R"({"error": {"message": "m", "errors": [{"reason": "r"}]}})").code,
            "r");
  EXPECT_EQ(parse_gcs_error("<html>").code, "");
  EXPECT_EQ(parse_google_token(R"({"access_token": "t", "expires_in": 99})", "u").seconds, 99);
  EXPECT_THROW(parse_google_token(R"({"access_token": 1})", "u"), DataLossError);
  EXPECT_THROW(parse_metadata_credentials(R"({"Code": "Failed"})", "u"), DataLossError);
}

TEST(ContentRange, IsReadOrRefused) {
  const ContentRange range = parse_content_range("bytes 5-9/10", "p");
  EXPECT_EQ(range.begin, 5u);
  EXPECT_EQ(range.size, 5u);
  EXPECT_EQ(range.total, 10u);
  for (const char* text : {"", "bytes", "bytes 5-9/*", "bytes 9-5/10", "bytes 5-10/10", "5-9/10",
                           "bytes 5-9/10 ", "bytes 0-18446744073709551615/18446744073709551616"}) {
    EXPECT_THROW(parse_content_range(text, "p"), DataLossError) << text;
  }
}

TEST(Environment, SectionsAndTimes) {
  const Sections sections = parse_sections(
      "; comment\n[default]\nregion = r\r\ns3 =\n  addressing_style = path\n\tmax = 1\nkey=a=b\n"
      "nonsense\n[profile x]\nregion=q");
  EXPECT_EQ(sections.at("default").at("region"), "r");
  EXPECT_EQ(sections.at("default").at("s3.addressing_style"), "path");
  EXPECT_EQ(sections.at("default").at("key"), "a=b");
  EXPECT_EQ(sections.at("profile x").at("region"), "q");
  EXPECT_EQ(parse_time("1970-01-02T00:00:00Z"), 86400);
  EXPECT_EQ(parse_time("soon"), 0);
}

// The fuzz target on its known inputs, and on each of them cut and changed.
TEST(StoreAnswers, OfTheCorpusAreReadOrRefused) {
  std::uint64_t random = 1;
  const auto next = [&](std::size_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(random >> 33) % below;
  };
  int inputs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/fuzz/corpus/store_answers_fuzz")) {
    const std::string input = read_file(entry.path().string());
    ++inputs;
    fuzz::store_answers(input);
    for (int i = 0; i < 300; ++i) {
      std::string changed = input;
      for (std::size_t n = next(4); n > 0; --n) {
        changed[next(changed.size())] = static_cast<char>(next(256));
      }
      if (i % 3 == 0) changed.resize(next(changed.size()));
      fuzz::store_answers(changed);
    }
  }
  EXPECT_GT(inputs, 0);
}

}  // namespace
}  // namespace tandem::fs
