#include "tandem/data/file_datasets.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

class FileDatasets : public ::testing::Test {
 protected:
  FileDatasets()
      : folder_(::testing::TempDir() + "tandem_file_datasets_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~FileDatasets() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string put(const std::string& name, std::string_view bytes) const {
    fs::write_file(file(name), bytes);
    return file(name);
  }
  std::string records(const std::string& name, const Strings& all,
                      const std::string& compression = "") const {
    TFRecordWriter writer(file(name), {compression});
    for (const std::string& record : all) writer.write(record);
    writer.close();
    return file(name);
  }

 private:
  std::string folder_;
};

Strings strings(const Dataset& dataset) {
  Strings all;
  for (const Element& element : dataset) all.push_back(element.at(0).item<std::string>());
  return all;
}

TEST_F(FileDatasets, RecordsOfSeveralFiles) {
  const Strings files = {records("a", {"1", "", "3"}), records("b", {}), records("c", {"4"})};
  const TFRecordDataset dataset(files);
  EXPECT_EQ(to_string(dataset.element_spec()), "(string[])");
  EXPECT_EQ(dataset.cardinality(), kUnknown);
  EXPECT_THAT(strings(dataset), ElementsAre("1", "", "3", "4"));
  EXPECT_THAT(strings(dataset), ElementsAre("1", "", "3", "4"));
  const auto names = from_tensor_slices(Tensor::from(files));
  EXPECT_THAT(strings(TFRecordDataset(names)), ElementsAre("1", "", "3", "4"));
  EXPECT_THAT(strings(TFRecordDataset(from_tensors(Tensor::from(files)))),
              ElementsAre("1", "", "3", "4"));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { strings(TFRecordDataset(range(1))); }),
              HasSubstr("dtype int64"));
}

// Though the memory of batches that nothing has any more serves the next ones.
TEST_F(FileDatasets, BatchesOfTextsStayAsTheyWereGiven) {
  Strings all;
  for (int i = 0; i < 100; ++i) all.push_back(std::string(20 + i % 50, 'x') + std::to_string(i));
  const TFRecordDataset dataset(records("a", all));
  for (const bool prefetched : {false, true}) {
    std::vector<Tensor> held;
    const Dataset batches = dataset.batch(3);
    std::size_t at = 0;
    for (const Element& batch : prefetched ? batches.prefetch(2) : batches) {
      for (const std::string& text : batch[0].data<std::string>()) EXPECT_EQ(text, all.at(at++));
      if (at % 2 == 0) held.push_back(batch[0]);
    }
    EXPECT_EQ(at, all.size());
    ASSERT_EQ(held.size(), 17u);  // and the last, of one
    for (std::size_t i = 0; i < held.size(); ++i) {
      EXPECT_EQ(held[i].data<std::string>().front(), i < 16 ? all.at(6 * i + 3) : all.back());
    }
  }
}

TEST_F(FileDatasets, CompressedRecords) {
  for (const char* compression : {"GZIP", "ZLIB"}) {
    TFRecordOptions options;
    options.compression_type = compression;
    options.buffer_size = 100;
    const auto path = records("a", {"1", std::string(100'000, 'z')}, compression);
    EXPECT_EQ(strings(TFRecordDataset(path, options)).at(1).size(), 100'000u);
    EXPECT_THROW(strings(TFRecordDataset(path)), DataLossError);
  }
  EXPECT_THROW(TFRecordDataset("x", {{"LZ4"}}), InvalidArgumentError);
}

TEST_F(FileDatasets, ADatasetIsWritten) {
  {
    TFRecordWriter writer(file("a"));
    writer.write(from_tensor_slices(Tensor{"x", "y", "z"}));
    writer.write(from_tensor_slices(Tensor{"p", "q"}).batch(2));
    EXPECT_THROW(writer.write(range(3)), InvalidArgumentError);
    const TFRecordWriter other = std::move(writer);
    EXPECT_THROW(writer.write("q"), FailedPreconditionError);
    EXPECT_THROW(writer.flush(), FailedPreconditionError);
    writer.close();
  }
  EXPECT_THAT(strings(TFRecordDataset(file("a"))), ElementsAre("x", "y", "z", "p", "q"));
}

TEST_F(FileDatasets, FilesThatShrinkWhileTheyAreReadAreAnError) {
  std::string lines;
  for (int i = 1000; i < 2000; ++i) lines += std::to_string(i) + "\n";
  const FileOptions text{.buffer_size = 64};
  const CsvOptions csv{.buffer_size = 64};
  for (const bool is_csv : {false, true}) {
    put("lines", lines);
    Iterator iterator = (is_csv ? Dataset(CsvDataset(file("lines"), {string}, csv))
                                : Dataset(TextLineDataset(file("lines"), text)))
                            .iterator();
    EXPECT_EQ(iterator.next()[0].item<std::string>(), "1000");
    std::filesystem::resize_file(file("lines"), 253);  // within a line
    std::string last;
    const std::string message = message_of_thrown<DataLossError>([&] {
      while (true) last = iterator.next()[0].item<std::string>();
    });
    EXPECT_EQ(last, "1049") << "no element may be what was left of one";
    EXPECT_THAT(message, HasSubstr("lines: the file ends at byte 253 of 5000"));
    EXPECT_THAT(message, HasSubstr(", element 50"));
    Element more;
    EXPECT_FALSE(iterator.next(more));
  }
}

TEST_F(FileDatasets, DamageSaysFileOffsetAndElementAndReadingGoesOn) {
  const std::string good = fs::read_file(records("a", {"one", "two", "three"}));
  std::string bytes = good;
  bytes[19 + 12] ^= 1;
  const Strings files = {put("bad", bytes), file("none"), file("a")};
  const TFRecordDataset dataset(files);
  Iterator iterator = dataset.iterator();
  EXPECT_EQ(iterator.next()[0].item<std::string>(), "one");
  const std::string message = message_of_thrown<DataLossError>([&] { iterator.next(); });
  EXPECT_THAT(message, HasSubstr("bad: corrupted record at 19"));
  EXPECT_THAT(message, HasSubstr("in TFRecord, element 1"));
  EXPECT_EQ(iterator.next()[0].item<std::string>(), "three");
  EXPECT_THAT(message_of_thrown<NotFoundError>([&] { iterator.next(); }),
              HasSubstr("none; No such file"));
  EXPECT_EQ(iterator.next()[0].item<std::string>(), "one");
  TFRecordOptions options;
  options.skip_corrupt = true;
  const TFRecordDataset skipping(Strings{file("bad"), file("a")}, options);
  EXPECT_THAT(strings(skipping), ElementsAre("one", "three", "one", "two", "three"));
  EXPECT_EQ(skipping.num_skipped(), 1);
}

TEST_F(FileDatasets, ParallelReadsTakeTurnsLikeTfData) {
  Strings files;
  for (const auto& [name, count] :
       std::vector<std::pair<std::string, int>>{{"a", 3}, {"b", 1}, {"c", 2}, {"d", 0}, {"e", 4}}) {
    Strings all;
    for (int i = 0; i < count; ++i) all.push_back(name + std::to_string(i));
    files.push_back(records(name, all));
  }
  // As the real TensorFlow orders them.
  const std::map<std::int64_t, std::string> expected = {{1, "a0a1a2b0c0c1e0e1e2e3"},
                                                        {2, "a0b0a1a2c0c1e0e1e2e3"},
                                                        {3, "a0b0c0a1c1a2e0e1e2e3"},
                                                        {4, "a0b0c0a1c1e0a2e1e2e3"},
                                                        {8, "a0b0c0e0a1c1e1a2e2e3"}};
  TFRecordOptions options;
  for (const auto& [count, order] : expected) {
    options.num_parallel_reads = count;
    const TFRecordDataset dataset(files, options);
    for (int i = 0; i < 3; ++i) {
      std::string joined;
      for (const std::string& record : strings(dataset)) joined += record;
      EXPECT_EQ(joined, order) << count;
    }
  }
  const TFRecordDataset dataset(files, options);
  // Left in the middle, its threads stop.
  const std::size_t threads = threads_at_rest();
  {
    Iterator iterator = dataset.iterator();
    iterator.next();
  }
  EXPECT_EQ(threads_at_rest(), threads);
  options.num_parallel_reads = -2;
  EXPECT_THROW(TFRecordDataset(files, options), InvalidArgumentError);
}

TEST_F(FileDatasets, Lines) {
  const auto a = put("a", "a\r\nb\n\nc\rd\nlast"), b = put("b", "a\n\r\n\r\r\nb\r"),
             c = put("c", "");
  EXPECT_THAT(strings(TextLineDataset(Strings{a, c, b})),
              ElementsAre("a", "b", "", "cd", "last", "a", "", "", "b"));
  FileOptions options;
  options.buffer_size = 1;
  const std::string line(1000, 'x');
  const auto d = put("d", line + "\n" + line + "\r\n\n" + line + "y");
  EXPECT_THAT(strings(TextLineDataset(d, options)), ElementsAre(line, line, "", line + "y"));
  options.compression_type = "GZIP";
  EXPECT_THAT(strings(TextLineDataset(put("e", fs::gzip("x\ny\n")), options)),
              ElementsAre("x", "y"));
}

TEST_F(FileDatasets, RecordsOfOneLength) {
  FixedLengthRecordOptions options;
  options.header_bytes = 2;
  options.footer_bytes = 1;
  const auto path = put("a", "HHaabbccF");
  EXPECT_THAT(strings(FixedLengthRecordDataset(Strings{path, path}, 2, options)),
              ElementsAre("aa", "bb", "cc", "aa", "bb", "cc"));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>(
                  [&] { strings(FixedLengthRecordDataset(Strings{path}, 4, options)); }),
              HasSubstr("which is not an exact multiple of the record length (4 bytes)"));
  options.header_bytes = 20;
  EXPECT_THROW(strings(FixedLengthRecordDataset(Strings{path}, 2, options)), InvalidArgumentError);
  options.header_bytes = 2;
  options.compression_type = "GZIP";
  const auto packed = put("b", fs::gzip("HHaabbccF"));
  EXPECT_THAT(strings(FixedLengthRecordDataset(Strings{packed}, 2, options)),
              ElementsAre("aa", "bb", "cc"));
  options.footer_bytes = 0;
  EXPECT_THROW(strings(FixedLengthRecordDataset(Strings{packed}, 2, options)), DataLossError);
  EXPECT_THROW(FixedLengthRecordDataset(Strings{path}, 0), InvalidArgumentError);
}

TEST_F(FileDatasets, Csv) {
  const auto a = put("a", "1,2.5,x\r\n2,,\"a,\nb\"\n3,4,\"q\"\"r\"\r4,1,");
  EXPECT_EQ(text(CsvDataset(Strings{a}, {DType::kInt32, 1.5, "d"})),
            "1; 2.5; b'x' | 2; 1.5; b'a,\\nb' | 3; 4.0; b'q\"r' | 4; 1.0; b'd'");
  CsvOptions options;
  options.header = true;
  options.field_delim = ';';
  options.na_value = "NA";
  options.select_cols = {0, 2};
  const auto b = put("b", "p;q;r\n1;x;2\n\"NA\";y;NA\n");
  EXPECT_EQ(text(CsvDataset(Strings{b, b}, {7, 9}, options)), "1; 2 | 7; 9 | 1; 2 | 7; 9");
  options.select_cols = {};
  options.exclude_cols = {1};
  options.buffer_size = 1;
  EXPECT_EQ(text(CsvDataset(Strings{b}, {7, 9}, options)), "1; 2 | 7; 9");
  options.select_cols = {0, 1};
  EXPECT_THROW(CsvDataset(Strings{b}, {7, 9}, options), InvalidArgumentError);
  EXPECT_EQ(text(CsvDataset(Strings{put("c", "1\n\n3")}, {7})), "1 | 7 | 3");
  EXPECT_THROW(CsvDataset(Strings{b}, {}), InvalidArgumentError);
  EXPECT_THROW(CsvDataset(Strings{b}, {DType::kBool}), InvalidArgumentError);
}

TEST_F(FileDatasets, CsvErrorsNameRecordAndFileAndReadingGoesOn) {
  const auto path = put("a", "1,2\n3\n4,5,6\nx,1\n7,\"8\n9\",10\n,1\n7,8\n9,\"1");
  const CsvDataset dataset(Strings{path}, {DType::kInt32, DType::kInt32});
  Iterator iterator = dataset.iterator();
  EXPECT_EQ(iterator.next()[1].item<std::int32_t>(), 2);
  for (const char* expected :
       {"Expect 2 fields but have 1 in record 1 of ", "Expect 2 fields but have 3 in record 2",
        "Field 0 in record 3 of ", "Expect 2 fields but have 3 in record 4",
        "Field 0 is required but missing in record 5"}) {
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { iterator.next(); }),
                HasSubstr(expected));
  }
  EXPECT_EQ(iterator.next()[1].item<std::int32_t>(), 8);
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { iterator.next(); }),
              HasSubstr("Quoted field has to end with quote"));
  EXPECT_THROW(iterator.next(), OutOfRangeError);
}

// As in TensorFlow: an empty line has one empty field, of the first column.
TEST_F(FileDatasets, CsvLinesWithoutAnything) {
  const auto path = put("a", "1,2\n\n3,4\n");
  const auto read = [&](std::vector<std::int64_t> columns, std::vector<std::int64_t> left_out) {
    CsvOptions options;
    options.select_cols = std::move(columns);
    options.exclude_cols = std::move(left_out);
    return events(CsvDataset(Strings{path}, {7}, options));
  };
  EXPECT_THAT(read({0}, {}), ElementsAre("1;", "7;", "3;"));
  EXPECT_THAT(read({}, {1}), ElementsAre("1;", "7;", "3;"));
  const auto missing = HasSubstr("Expect 1 fields but have 0 in record 1 of " + path + " (line 2)");
  EXPECT_THAT(read({1}, {}), ElementsAre("2;", missing, "4;"));
  EXPECT_THAT(read({}, {0}), ElementsAre("2;", missing, "4;"));
  EXPECT_THAT(events(CsvDataset(Strings{path}, {7, 7})),
              ElementsAre("1;2;", HasSubstr("Expect 2 fields but have 1"), "3;4;"));
}

TEST_F(FileDatasets, CsvHeadersThatCannotBeRead) {
  CsvOptions options;
  options.header = true;
  for (const std::int64_t parallel : {0, 2}) {
    options.num_parallel_reads = parallel;
    for (const auto& [content, why] : std::vector<std::pair<std::string, std::string>>{
             {"", "the file is empty"},
             {"a,\"b\n1", "Quoted field has to end with quote"},
             {"a,b\"\n", "Unquoted fields cannot have quotes"},
             {"\"a\"b\n", "Quote inside a string has to be escaped"}}) {
      const Strings files{put("a", content), put("b", "a\n5\n")};
      const auto found = events(CsvDataset(files, {7}, options));
      EXPECT_EQ(found.size(), 2u) << content;
      EXPECT_THAT(found, ::testing::Contains("5;"));
      EXPECT_THAT(found, ::testing::Contains(
                             HasSubstr("Can't read the header of " + files[0] + ": " + why)));
    }
    // What follows the header can be read.
    EXPECT_THAT(events(CsvDataset(Strings{put("a", "x\"\n1\n2\n")}, {7}, options)),
                ElementsAre(HasSubstr("Can't read the header"), "1;", "2;"));
    EXPECT_THAT(events(CsvDataset(Strings{put("a", "\n1\n")}, {7}, options)), ElementsAre("1;"));
    const auto path = put("a", "x\"\n1\n2\n");
    expect_resumes([&] { return CsvDataset(Strings{path}, {7}, options).ignore_errors(); });
  }
}

TEST_F(FileDatasets, CsvErrorsProposeTheHeaderOnTheFirstLine) {
  const auto path = put("a", "width,height\n1,2\nx,y\n");
  Iterator iterator = CsvDataset(Strings{path}, {DType::kInt32, DType::kInt32}).iterator();
  const auto message = [&] {
    return message_of_thrown<InvalidArgumentError>([&] { iterator.next(); });
  };
  EXPECT_THAT(message(),
              HasSubstr("width. If that line names the columns, CsvOptions{.header = true}"));
  iterator.next();
  EXPECT_THAT(message(), ::testing::Not(HasSubstr("header")));
}

// A quoted field may span lines, and a restored iteration goes on counting.
TEST_F(FileDatasets, CsvErrorsNameTheLine) {
  CsvOptions options;
  options.header = true;
  const auto path = put("a", "a,b\n\"1\n2\r\n3\",4\r\nx\n5,6\ny\n\"\n\n\"\n");
  const CsvDataset dataset(Strings{path}, {"", ""}, options);
  Iterator iterator = dataset.iterator();
  iterator.next();
  const auto message = [&] {
    return message_of_thrown<InvalidArgumentError>([&] { iterator.next(); });
  };
  EXPECT_THAT(message(), HasSubstr("record 1 of " + path + " (line 5)"));
  iterator.next();
  const std::string saved = iterator.save();
  EXPECT_THAT(message(), HasSubstr("record 3 of " + path + " (line 7)"));
  EXPECT_THAT(message(), HasSubstr("record 4 of " + path + " (line 8)"));
  iterator = dataset.iterator();
  iterator.restore(saved);
  EXPECT_THAT(message(), HasSubstr("record 3 of " + path + " (line 7)"));
  // A record that is too large counts its lines too.
  options.max_record_bytes = 6;
  iterator = CsvDataset(Strings{path}, {"", ""}, options).iterator();
  EXPECT_THAT(message_of_thrown<ResourceExhaustedError>([&] { iterator.next(); }),
              HasSubstr("record 0 (is a quote missing?), line 2"));
  EXPECT_THAT(message(), HasSubstr("record 1 of " + path + " (line 5)"));
}

// Files that the real TensorFlow wrote (tests/conformance/check_records.py --store).
TEST(FilesOfTensorFlow, AreRead) {
  const std::string folder = "tests/unit/data/tensorflow/";
  for (const std::string compression : {"", "GZIP", "ZLIB"}) {
    TFRecordOptions options;
    options.compression_type = compression;
    const Strings records =
        strings(TFRecordDataset(folder + "theirs" + compression + ".tfrecord", options));
    ASSERT_EQ(records.size(), 22u);
    EXPECT_EQ(records[20], "");
    EXPECT_EQ(records[21].size(), compression.empty() ? 700u : 70000u);
  }
  EXPECT_EQ(strings(TextLineDataset(folder + "lines.txt")).size(), 301u);
  EXPECT_EQ(strings(CsvDataset(Strings{folder + "table.csv"}, {"", "", DType::kString})).size(),
            100u);
}

}  // namespace
}  // namespace tandem::data
