#include <sys/resource.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/core/internal/sanitizers.h"
#include "tandem/data/file_datasets.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

FileOptions lines_up_to(std::size_t bytes, const std::string& compression = "") {
  FileOptions options;
  options.compression_type = compression;
  options.buffer_size = 64;
  options.max_record_bytes = bytes;
  return options;
}

// The texts of an iteration, errors as "code: message".
std::vector<std::string> texts(const Dataset& dataset) {
  std::vector<std::string> all;
  auto it = dataset.iterator();
  while (all.size() < 1000) {
    try {
      Element element;
      if (!it.next(element)) break;
      all.push_back(element[0].item<std::string>());
    } catch (const Error& error) {
      all.push_back(std::string(code_name(error.code())) + ": " + error.what());
    }
  }
  return all;
}

TEST(LargeRecords, LinesArePassedOver) {
  const Folder folder;
  const std::string path = folder.file("lines");
  for (const std::size_t size : {101, 1000, 100000}) {
    fs::write_file(path, "a\n" + std::string(size, 'x') + "\nb\n" + std::string(100, 'y') + "\n" +
                             std::string(size, 'z'));
    const auto error = [&](int at) {
      return AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr(path),
                   HasSubstr("the line at byte " + std::to_string(at) + " is larger than 100"));
    };
    const int second = static_cast<int>(2 + size + 1 + 2 + 101);
    const auto expected = ElementsAre("a", error(2), "b", std::string(100, 'y'), error(second));
    EXPECT_THAT(texts(TextLineDataset(path, lines_up_to(100))), expected) << size;
    fs::write_file(path, fs::gzip(fs::read_file(path)));
    EXPECT_THAT(texts(TextLineDataset(path, lines_up_to(100, "GZIP"))), expected) << size;
    EXPECT_THAT(texts(TextLineDataset(path, lines_up_to(100, "GZIP")).ignore_errors()),
                ElementsAre("a", "b", std::string(100, 'y')));
  }
}

TEST(LargeRecords, PassingOverIsSaved) {
  const Folder folder;
  const std::string path = folder.file("lines");
  fs::write_file(path, std::string(1000, 'x') + "\nb\nc");
  const TextLineDataset lines(path, lines_up_to(100));
  auto it = lines.iterator();
  EXPECT_THROW(it.next(), ResourceExhaustedError);
  const std::string state = it.save();
  auto other = lines.iterator();
  other.restore(state);
  EXPECT_EQ(rest(other), rest(it));
}

TEST(LargeRecords, OfCsvArePassedOver) {
  const Folder folder;
  const std::string path = folder.file("csv");
  for (const std::size_t size : {102, 1000, 100000}) {
    fs::write_file(path,
                   "a\n\"" + std::string(size, '\n') + "\"\r\nb\n\"\"\"" + std::string(size, ','));
    CsvOptions options;
    options.buffer_size = 64;
    options.max_record_bytes = 100;
    const auto error = [&](int record) {
      return AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr(path), HasSubstr("larger than 100"),
                   HasSubstr("record " + std::to_string(record) + " (is a quote missing?)"));
    };
    const CsvDataset records({path}, {CsvColumn("")}, options);
    EXPECT_THAT(texts(records), ElementsAre("a", error(1), "b", error(3))) << size;
    EXPECT_THAT(texts(records.ignore_errors()), ElementsAre("a", "b"));
  }
}

TEST(LargeRecords, OfTFRecordArePassedOver) {
  const Folder folder;
  const std::string path = folder.file("records");
  for (const char* compression : {"", "GZIP"}) {
    TFRecordWriter writer(path, {compression});
    for (const std::size_t size : {1, 101, 100, 100000, 2}) writer.write(std::string(size, 'x'));
    writer.close();
    TFRecordOptions options;
    options.compression_type = compression;
    options.buffer_size = 64;
    options.max_record_bytes = 100;
    const auto error = AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr(path));
    EXPECT_THAT(texts(TFRecordDataset(path, options)),
                ElementsAre("x", error, std::string(100, 'x'), error, "xx"));
  }
}

#if !TANDEM_ADDRESS_SANITIZER && !TANDEM_THREAD_SANITIZER
// Sanitizers alone take more of the address space than there is here.
TEST(LargeRecords, LittleMemoryIsAnErrorThatEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Folder folder;
  const std::string path = folder.file("bomb");
  fs::write_file(path, fs::gzip("a\n" + std::string(std::size_t{200} << 20, 'x') + "\nb\n", 1));
  const auto run = [&] {
    const rlimit limit{std::size_t{320} << 20, std::size_t{320} << 20};
    setrlimit(RLIMIT_AS, &limit);
    const auto all = texts(TextLineDataset(path, {.compression_type = "GZIP"}));
    for (const std::string& text : all) std::fprintf(stderr, "%.300s\n", text.c_str());
    std::_Exit(all.size() == 3 && all[0] == "a" && all[2] == "b" &&
                       all[1].find("RESOURCE_EXHAUSTED") == 0 &&
                       all[1].find(path + ": no memory for the line at byte 2") != all[1].npos
                   ? 0
                   : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}
#endif

TEST(DamagedGzip, GivesWhatLiesBeforeTheDamage) {
  const Folder folder;
  const std::string path = folder.file("lines");
  std::string content;
  std::vector<std::string> lines;
  for (int i = 0; i < 20000; ++i) {
    lines.push_back("line " + std::to_string(i * 7919 % 20011));
    content += lines.back() + "\n";
  }
  const std::string whole = fs::gzip(content);
  const std::string half = whole.substr(0, whole.size() / 2);
  fs::write_file(path, half);
  auto all = texts(TextLineDataset(path, {.compression_type = "GZIP"}));
  std::vector<std::string> given;
  auto it = TextLineDataset(path, {.compression_type = "GZIP"}).iterator();
  std::string message;
  try {
    for (;;) given.push_back(it.next()[0].item<std::string>());
  } catch (const DataLossError& error) {
    message = error.what();
  }
  EXPECT_GT(given.size(), 8000u);  // about half of them
  for (std::size_t i = 0; i < given.size(); ++i) ASSERT_EQ(given[i], lines[i]);
  EXPECT_THAT(message, AllOf(HasSubstr(path), HasSubstr("cut off")));
  Element element;
  EXPECT_FALSE(it.next(element));  // not the beginning of a line
  EXPECT_EQ(all.size(), 1000u);

  std::string flipped = whole;
  int damaged = 0;
  for (std::size_t at = 100; at + 10 < whole.size(); at += whole.size() / 50) {
    flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0xff);
    fs::write_file(path, flipped);
    try {
      auto lines_of = TextLineDataset(path, {.compression_type = "GZIP"}).iterator();
      while (lines_of.next(element)) {
      }
      ADD_FAILURE() << "nothing was noticed at " << at;
    } catch (const DataLossError& error) {
      damaged += std::string(error.what()).find("cut off") == std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GE(damaged, 49);
}

}  // namespace
}  // namespace tandem::data
