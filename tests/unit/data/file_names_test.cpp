// The ways in which names of files and options are given. That they compile is most of it.

#include "tandem/data/file_names.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/file_datasets.h"
#include "tandem/fs/file_system.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

Strings strings(const Dataset& dataset) {
  Strings all;
  for (const Element& element : dataset) all.push_back(element.at(0).item<std::string>());
  return all;
}

// In a folder of its own, so that names can be literals.
class FileNamesTest : public ::testing::Test {
 protected:
  FileNamesTest() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.file("."));
    for (const char* name : {"a", "b", "c"}) {
      fs::write_file(cat(name, ".txt"), cat(name, name));
      TFRecordWriter writer(cat(name, ".tfrecord"));
      writer.write(name);
    }
  }
  ~FileNamesTest() override { std::filesystem::current_path(before_); }

 private:
  const std::filesystem::path before_;
  const Folder folder_;
};

TEST_F(FileNamesTest, OneOrSeveralInBraces) {
  EXPECT_THAT(strings(TFRecordDataset("a.tfrecord")), ElementsAre("a"));
  EXPECT_THAT(strings(TFRecordDataset({"a.tfrecord"})), ElementsAre("a"));
  EXPECT_THAT(strings(TFRecordDataset({"a.tfrecord", "b.tfrecord"})), ElementsAre("a", "b"));
  EXPECT_THAT(strings(TFRecordDataset({"a.tfrecord", "b.tfrecord", "c.tfrecord"})),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(strings(TextLineDataset("a.txt")), ElementsAre("aa"));
  EXPECT_THAT(strings(TextLineDataset({"a.txt"})), ElementsAre("aa"));
  EXPECT_THAT(strings(TextLineDataset({"a.txt", "b.txt"})), ElementsAre("aa", "bb"));
  EXPECT_THAT(strings(TextLineDataset({"a.txt", "b.txt", "c.txt"})), ElementsAre("aa", "bb", "cc"));
  EXPECT_THAT(strings(FixedLengthRecordDataset("a.txt", 1)), ElementsAre("a", "a"));
  EXPECT_THAT(strings(FixedLengthRecordDataset({"a.txt"}, 2)), ElementsAre("aa"));
  EXPECT_THAT(strings(FixedLengthRecordDataset({"a.txt", "b.txt"}, 2)), ElementsAre("aa", "bb"));
  EXPECT_THAT(strings(FixedLengthRecordDataset({"a.txt", "b.txt", "c.txt"}, 2)),
              ElementsAre("aa", "bb", "cc"));
  EXPECT_THAT(strings(CsvDataset("a.txt", {string})), ElementsAre("aa"));
  EXPECT_THAT(strings(CsvDataset({"a.txt"}, {string})), ElementsAre("aa"));
  EXPECT_THAT(strings(CsvDataset({"a.txt", "b.txt"}, {string})), ElementsAre("aa", "bb"));
  EXPECT_THAT(strings(CsvDataset({"a.txt", "b.txt", "c.txt"}, {string})),
              ElementsAre("aa", "bb", "cc"));
  const ListFilesOptions sorted{.shuffle = false};
  EXPECT_THAT(strings(list_files("*.txt", sorted)), ElementsAre("a.txt", "b.txt", "c.txt"));
  EXPECT_THAT(strings(list_files({"a.*"}, sorted)), ElementsAre("a.tfrecord", "a.txt"));
  EXPECT_THAT(strings(list_files({"b.txt", "a.txt"}, sorted)), ElementsAre("a.txt", "b.txt"));
  EXPECT_THAT(strings(list_files({"c.txt", "a.txt", "b.txt"}, sorted)),
              ElementsAre("a.txt", "b.txt", "c.txt"));
}

TEST_F(FileNamesTest, StringsVectorsAndPaths) {
  const std::string a = "a.txt", b = "b.txt";
  EXPECT_THAT(strings(TextLineDataset(a)), ElementsAre("aa"));
  EXPECT_THAT(strings(TextLineDataset({a})), ElementsAre("aa"));
  EXPECT_THAT(strings(TextLineDataset({a, b})), ElementsAre("aa", "bb"));
  EXPECT_THAT(strings(TextLineDataset(Strings{a, b})), ElementsAre("aa", "bb"));
  EXPECT_THAT(strings(TextLineDataset(std::filesystem::path(a))), ElementsAre("aa"));
  EXPECT_THAT(strings(TFRecordDataset({a, b}, {.skip_corrupt = true})), ElementsAre());
  EXPECT_THAT(strings(FixedLengthRecordDataset({a, b}, 2)), ElementsAre("aa", "bb"));
  EXPECT_THAT(strings(list_files({a, b}, {.shuffle = false})), ElementsAre(a, b));
}

TEST_F(FileNamesTest, Tensors) {
  EXPECT_THAT(strings(TextLineDataset(Tensor{"a.txt", "b.txt"})), ElementsAre("aa", "bb"));
  const auto all = list_files("*.tfrecord", {.shuffle = false}).interleave([](Tensor name) {
    return TFRecordDataset(name);
  });
  EXPECT_THAT(strings(all), ElementsAre("a", "b", "c"));
  EXPECT_THAT(strings(list_files(Tensor{"a.txt"})), ElementsAre("a.txt"));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] {
                TFRecordDataset(Tensor{1, 2});
              }),
              HasSubstr("a scalar or a vector, got int32[2]"));
  EXPECT_THROW(TextLineDataset(Tensor::from(Strings{"a", "b"}, {1, 2})), InvalidArgumentError);
}

TEST_F(FileNamesTest, OptionsByName) {
  EXPECT_THAT(strings(TFRecordDataset("a.tfrecord", {.compression_type = ""})), ElementsAre("a"));
  EXPECT_THAT(
      strings(TFRecordDataset({"a.tfrecord", "b.tfrecord"},
                              {.buffer_size = 100, .num_parallel_reads = 2, .skip_corrupt = true})),
      ElementsAre("a", "b"));
  EXPECT_THAT(strings(TextLineDataset({"a.txt", "b.txt"}, {.num_parallel_reads = 2})),
              ElementsAre("aa", "bb"));
  EXPECT_THAT(strings(FixedLengthRecordDataset("a.txt", 1, {.buffer_size = 1, .footer_bytes = 1})),
              ElementsAre("a"));
  EXPECT_THAT(strings(CsvDataset({"a.txt", "b.txt"}, {string}, {.buffer_size = 1, .header = true})),
              ElementsAre());
  EXPECT_THROW(TFRecordDataset("a", {.compression_type = "BZIP"}), InvalidArgumentError);
  EXPECT_THROW(CsvDataset("a", {string}, {.num_parallel_reads = -2}), InvalidArgumentError);
}

TEST_F(FileNamesTest, LimitsAreReported) {
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>(
                  [] { FixedLengthRecordDataset("a.txt", std::int64_t{1} << 60); }),
              HasSubstr("`record_bytes` must be at most 1099511627776, got 1152921504606846976"));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { FixedLengthRecordDataset("a.txt", 0); }),
              HasSubstr("`record_bytes` must be > 0, got 0"));
}

}  // namespace
}  // namespace tandem::data
