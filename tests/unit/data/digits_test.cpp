#include "tandem/data/digits.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>

#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;

const char* const kDigits = "examples/data/digits.csv.gz";

TEST(Digits, AreImagesAndLabels) {
  const auto ds = digits(kDigits);
  EXPECT_EQ(ds.cardinality(), 1797);
  EXPECT_EQ(to_string(ds.element_spec()), "(float[8,8,1], int32[])");
  std::map<int, int> count;
  float low = 1, high = 0;
  for (const auto& [image, label] : ds.tuples<2>()) {
    ++count[label.item<std::int32_t>()];
    for (const float pixel : image.data<float>()) {
      low = std::min(low, pixel);
      high = std::max(high, pixel);
    }
  }
  EXPECT_EQ(low, 0);
  EXPECT_EQ(high, 1);
  const std::map<int, int> known{{0, 178}, {1, 182}, {2, 177}, {3, 183}, {4, 181},
                                 {5, 182}, {6, 181}, {7, 179}, {8, 174}, {9, 180}};
  EXPECT_EQ(count, known);
}

TEST(Digits, SplitTheSameWayEachTime) {
  const auto [train, test] = digits(kDigits).split(0.8);
  EXPECT_EQ(train.cardinality(), 1437);
  EXPECT_EQ(test.cardinality(), 360);
  const auto first = [](const Dataset& ds) {
    return ds.batch(20).iterator().next().at(1).to_vector<std::int32_t>();
  };
  EXPECT_EQ(first(digits(kDigits).split(0.8).second), first(test));
  EXPECT_NE(first(digits(kDigits, 2).split(0.8).second), first(test));
  std::map<int, int> count;
  for (const std::int32_t label : first(test)) ++count[label];
  EXPECT_GT(count.size(), 4u) << "the labels of the file are mixed";
}

class DigitsFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& content) {
    const std::string path = ::testing::TempDir() + "/tandem_digits_test.csv.gz";
    fs::write_file(path, content);
    return path;
  }
};

std::string line(const std::string& label) {
  std::string text;
  for (int i = 0; i < 64; ++i) text += "3,";
  return text + label;
}

TEST_F(DigitsFiles, MayLackTheLastLineEnd) {
  EXPECT_EQ(digits(write(fs::gzip(line("1") + "\r\n" + line("2")))).cardinality(), 2);
  EXPECT_EQ(digits(write(fs::gzip(""))).cardinality(), 0);
}

TEST_F(DigitsFiles, AreCheckedLineByLine) {
  for (const std::string& bad :
       {line("10"), line("-1"), line("x"), line("1,2"), line(""), std::string("1,2,3"),
        std::string("\n"), "17" + line("1").substr(1)}) {
    const auto path = write(fs::gzip(line("1") + "\n" + bad + "\n"));
    EXPECT_THAT(message_of_thrown<DataLossError>([&] { digits(path); }),
                HasSubstr(path + ", line 2: expected 64 pixels from 0 to 16"))
        << bad;
  }
}

TEST_F(DigitsFiles, AreErrorsWhenMissingOrNoGzip) {
  EXPECT_THAT(message_of_thrown<NotFoundError>([] { digits("no/such/file.gz"); }),
              HasSubstr("no/such/file.gz; No such file or directory"));
  EXPECT_THROW(digits(write("1,2,3\n")), DataLossError);
  const std::string whole = fs::gzip(line("1"));
  EXPECT_THAT(
      message_of_thrown<DataLossError>([&] { digits(write(whole.substr(0, whole.size() - 9))); }),
      HasSubstr("cut off"));
}

}  // namespace
}  // namespace tandem::data
