#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/file_datasets.h"
#include "tandem/data/idx.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

// Three files of each kind, of which the second is empty.
class FileState : public ::testing::Test {
 protected:
  Strings lines(bool compressed = false) {
    Strings all;
    for (const std::string content : {"one\ntwo\r\nthree", "", "a\nbb\n\nc\n"}) {
      all.push_back(folder_.file("lines" + std::to_string(all.size())));
      fs::write_file(all.back(), compressed ? fs::gzip(content) : content);
    }
    return all;
  }
  Strings records(const std::string& compression) {
    Strings all;
    for (const std::int64_t count : {4, 0, 3}) {
      all.push_back(folder_.file("records" + compression + std::to_string(all.size())));
      TFRecordWriter writer(all.back(), {compression});
      for (std::int64_t i = 0; i < count; ++i) {
        writer.write(std::string(static_cast<std::size_t>(i * 100), 'x') + std::to_string(i));
      }
      writer.close();
    }
    return all;
  }
  static Dataset words() { return from_tensor_slices(Tensor{"some", "words"}); }
  const Folder folder_;
};

TEST_F(FileState, Lines) {
  const Strings files = lines();
  expect_resumes([&] { return TextLineDataset(files); });
  expect_resumes([&] { return TextLineDataset(files, {.num_parallel_reads = 2}); });
  expect_resumes([&] { return TextLineDataset(files, {.buffer_size = 1}); });
  expect_resumes([&] { return TextLineDataset(files).shuffle(4, {.seed = 1}).repeat(2).batch(3); });
}

TEST_F(FileState, CompressedLines) {
  const Strings files = lines(true);
  expect_resumes([&] { return TextLineDataset(files, {.compression_type = "GZIP"}); });
}

TEST_F(FileState, Records) {
  for (const std::string compression : {"", "GZIP", "ZLIB"}) {
    const Strings files = records(compression);
    for (const std::int64_t parallel : {0, 1, 3}) {
      TFRecordOptions options;
      options.compression_type = compression;
      options.num_parallel_reads = parallel;
      expect_resumes([&] { return TFRecordDataset(files, options); });
    }
  }
}

TEST_F(FileState, RecordsOfOneLength) {
  const Strings files = {folder_.file("a"), folder_.file("b")};
  fs::write_file(files[0],
                 "head"
                 "aabbcc"
                 "end");
  fs::write_file(files[1], "headddend");
  FixedLengthRecordOptions options;
  options.header_bytes = 4;
  options.footer_bytes = 3;
  expect_resumes([&] { return FixedLengthRecordDataset(files, 2, options); });
  options.num_parallel_reads = 2;
  expect_resumes([&] {
    return FixedLengthRecordDataset(files, 2, options).shuffle(3).concatenate(words()).repeat(2);
  });
  options.num_parallel_reads = 0;
  for (const std::string& file : files) fs::write_file(file, fs::gzip(fs::read_file(file)));
  options.compression_type = "GZIP";
  expect_resumes([&] { return FixedLengthRecordDataset(files, 2, options); });
}

TEST_F(FileState, Csv) {
  const Strings files = {folder_.file("a"), folder_.file("b")};
  fs::write_file(files[0], "x,y\n1,\"a\nb\"\n2,c\n");
  fs::write_file(files[1], "x,y\n3,d\n");
  CsvOptions options;
  options.header = true;
  expect_resumes([&] { return CsvDataset(files, {int32, string}, options); });
  options.num_parallel_reads = 2;
  expect_resumes([&] { return CsvDataset(files, {int32, string}, options).shuffle(3).repeat(2); });
  options.select_cols = {1};
  expect_resumes([&] {
    return CsvDataset(files, {string}, options).shuffle(3).concatenate(words()).repeat(2);
  });
}

TEST_F(FileState, RowsInAnIdxFile) {
  const std::string file = folder_.file("rows");
  std::string bytes("\0\0\x08\x02\0\0\0\x05\0\0\0\x02", 12);
  bytes += "abcdefghij";
  fs::write_file(file, bytes);
  expect_resumes([&] { return from_idx({file}).shuffle(3).repeat(2).batch(2); });
  expect_resumes(
      [&] { return from_idx({file}).shuffle(3).concatenate(from_idx({file})).repeat(2); });
}

TEST_F(FileState, NamesFromADataset) {
  const Strings files = lines();
  const auto names = [&] { return from_tensor_slices(Tensor(Array::vector(files))); };
  expect_resumes([&] { return TextLineDataset(names().shuffle(3, {.seed = 5})); });
  expect_resumes([&] { return TextLineDataset(names().batch(2)); });
  for (const std::int64_t calls : {0, 2}) {
    expect_resumes([&] {
      return names().interleave(
          [](const Tensor& name) { return TextLineDataset(name.item<std::string>()); },
          {.cycle_length = 2, .num_parallel_calls = calls});
    });
  }
}

TEST_F(FileState, GoesOnAfterAnError) {
  const Strings files = records("");
  std::string bytes = fs::read_file(files[0]);
  bytes[20] ^= 1;  // in the second record's length or before: one record is lost
  fs::write_file(files[0], bytes);
  expect_resumes([&] { return TFRecordDataset(files).ignore_errors(); });
}

// After a length that cannot be trusted the file's records are over, and the error was reported.
TEST_F(FileState, ReportsAnErrorOnce) {
  for (const std::int64_t parallel : {0, 2}) {
    const Strings files = records("");
    std::string bytes = fs::read_file(files[0]);
    bytes[18] ^= 1;
    fs::write_file(files[0], bytes);
    TFRecordOptions options;
    options.num_parallel_reads = parallel;
    const auto make = [&] { return TFRecordDataset(files, options); };
    const std::size_t count = events(make()).size();
    EXPECT_EQ(count, 5u);
    for (std::size_t stop = 0; stop <= count; ++stop) {
      auto it = make().iterator();
      events(it, stop);
      const std::string saved = it.save();
      auto restored = make().iterator();
      restored.restore(saved);
      EXPECT_EQ(events(restored, 20), events(it, 20)) << "saved after " << stop;
    }
  }
}

TEST_F(FileState, FilesThatChangedAreNoticed) {
  const Strings files = lines();
  auto it = TextLineDataset(files).iterator();
  it.next();
  it.next();
  const std::string state = it.save();
  fs::write_file(files[0], "one");
  auto shorter = TextLineDataset(files).iterator();
  EXPECT_THAT(message_of_thrown<DataLossError>([&] { shorter.restore(state); }),
              HasSubstr(files[0]));
  EXPECT_EQ(shorter.next()[0].item<std::string>(), "one");  // it is as it was
  fs::file_system_of(files[0]).remove(files[0]);
  auto gone = TextLineDataset(files).iterator();
  EXPECT_THROW(gone.restore(state), NotFoundError);
  auto other = TFRecordDataset(files).iterator();
  EXPECT_THROW(other.restore(state), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::data
