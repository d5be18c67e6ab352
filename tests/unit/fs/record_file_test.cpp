#include "tandem/fs/record_file.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"

namespace tandem::fs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

std::string written(const Strings& records, RecordWriterOptions options = {}) {
  const std::string path = ::testing::TempDir() + "tandem_record_file_test";
  RecordWriter writer(path, options);
  for (const std::string& record : records) writer.write(record);
  writer.close();
  std::string bytes = read_file(path);
  std::remove(path.c_str());
  return bytes;
}

Strings read_all(RecordReader& reader) {
  Strings all;
  std::string_view record;
  while (reader.next(record)) all.emplace_back(record);
  return all;
}

Strings read_all(std::string_view bytes, RecordReaderOptions options = {}) {
  RecordReader reader(bytes, "mem", options);
  return read_all(reader);
}

std::string failure(std::string_view bytes, RecordReaderOptions options = {}) {
  try {
    read_all(bytes, options);
  } catch (const DataLossError& error) {
    return error.what();
  }
  return "";
}

TEST(RecordFile, WritesTensorFlowsBytes) {
  const std::string expected(
      "\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2"
      "\5\0\0\0\0\0\0\0\xea\xb2\x04\x3ehello\xbb\x1f\x1c\x19",
      37);
  EXPECT_EQ(written({"", "hello"}), expected);
}

TEST(RecordFile, ReadsWhatItWrote) {
  Strings records = {"", "a", std::string(300'000, 'x'), std::string(70'000, '\0'), "end"};
  for (int i = 0; i < 3000; ++i) records.push_back(std::string(static_cast<std::size_t>(i), 'r'));
  for (const Compression compression :
       {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
    const std::string bytes = written(records, {.compression = compression});
    EXPECT_EQ(read_all(bytes, {.compression = compression}), records);
  }
}

TEST(RecordFile, ReadsFilesThroughSmallBuffers) {
  const std::string path = ::testing::TempDir() + "tandem_record_file_small";
  const Strings records = {"one", std::string(1000, 'q'), "", "last"};
  write_file(path, written(records));
  RecordReader reader(path, {.buffer_bytes = 1});
  EXPECT_EQ(read_all(reader), records);
  std::remove(path.c_str());
  EXPECT_THROW(RecordReader{path}, NotFoundError);
}

TEST(RecordFile, GoesOnAtAnOffset) {
  const Strings records = {"one", "two", "three", "four"};
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    const std::string bytes = written(records, {.compression = compression});
    RecordReader reader(bytes, "mem", {.compression = compression});
    std::string_view record;
    reader.next(record);
    reader.next(record);
    const std::uint64_t offset = reader.offset();
    EXPECT_EQ(offset, 2 * (16u + 3));
    EXPECT_THAT(read_all(reader), ElementsAre("three", "four"));
    reader.seek(offset);
    EXPECT_THAT(read_all(reader), ElementsAre("three", "four"));
    RecordReader fresh(bytes, "mem", {.compression = compression});
    fresh.seek(offset);
    EXPECT_THAT(read_all(fresh), ElementsAre("three", "four"));
  }
}

TEST(RecordFile, SaysWhereItIsCorrupt) {
  const std::string good = written({"abc", "defg", "hij"});
  std::string data = good, length = good;
  data[33] ^= 1;
  length[19] ^= 1;
  EXPECT_THAT(failure(data), HasSubstr("mem: corrupted record at 19: the checksum of its data"));
  EXPECT_THAT(failure(length), HasSubstr("mem: corrupted record at 19: the checksum of its len"));
  EXPECT_THAT(failure("no TFRecords, but text"), HasSubstr("Is this even a TFRecord file?"));
}

TEST(RecordFile, EveryCutIsAnErrorOrTheEnd) {
  const std::string good = written({"abc", "defg"});
  for (std::size_t size = 0; size <= good.size(); ++size) {
    const bool whole = size == 0 || size == 19 || size == good.size();
    EXPECT_EQ(failure(std::string_view(good).substr(0, size)).empty(), whole) << size;
  }
}

TEST(RecordFile, EveryCutOfACompressedFileIsAnError) {
  const std::string good = written({"abc", "defg"}, {.compression = Compression::kGzip});
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(
        failure(std::string_view(good).substr(0, size), {.compression = Compression::kGzip}),
        HasSubstr("mem"))
        << size;
  }
}

TEST(RecordFile, GoesOnBehindARecordWhoseDataIsDamaged) {
  std::string bytes = written({"abc", "defg", "hij"});
  bytes[33] ^= 1;
  RecordReader reader(bytes, "mem");
  std::string_view record;
  EXPECT_TRUE(reader.next(record));
  EXPECT_THROW(reader.next(record), DataLossError);
  EXPECT_THAT(read_all(reader), ElementsAre("hij"));
}

TEST(RecordFile, SkipsAndCountsCorruptRecords) {
  const std::string good = written({"abc", "defg", "hij", std::string(1000, 'k'), "lm"});
  std::string bytes = good;
  bytes[33] ^= 1;   // the second one's data
  bytes[40] ^= 64;  // the third one's length
  bytes.resize(bytes.size() - 1);
  RecordReader reader(bytes, "mem", {.skip_corrupt = true});
  EXPECT_THAT(read_all(reader), ElementsAre("abc", std::string(1000, 'k')));
  EXPECT_EQ(reader.num_skipped(), 3);

  const std::string path = ::testing::TempDir() + "tandem_record_file_skip";
  write_file(path, std::string(700, 'z') + good + std::string(5, 'z'));
  RecordReader small(path, {.buffer_bytes = 64, .skip_corrupt = true});
  EXPECT_EQ(read_all(small).size(), 5u);
  EXPECT_EQ(small.num_skipped(), 2);
  std::remove(path.c_str());
}

TEST(RecordFile, AnnouncedSizesAreBounded) {
  // A good checksum of a length of 2^60.
  std::string bytes = written({"x"});
  const std::string header("\0\0\0\0\0\0\0\x10", 8);
  const std::string path = ::testing::TempDir() + "tandem_record_file_header";
  RecordWriter writer(path);
  writer.write(header);
  writer.close();
  const std::string with_crc = read_file(path);  // the header as data, so its checksum follows it
  std::remove(path.c_str());
  EXPECT_THAT(failure(with_crc.substr(12, 12) + "abc"), HasSubstr("are announced"));
  EXPECT_THROW(read_all(written({"abcdef"}), {.max_record_bytes = 5}), ResourceExhaustedError);
}

TEST(RecordFile, CompressedFilesOfSeveralMembers) {
  const std::string one = gzip(written({"a"})), two = gzip(written({"b", "c"}));
  EXPECT_THAT(read_all(one + two, {.compression = Compression::kGzip}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(failure(one + "junk", {.compression = Compression::kGzip}), HasSubstr("mem"));
  EXPECT_THAT(failure(written({"a"}), {.compression = Compression::kZlib}), HasSubstr("another"));
}

TEST(RecordFile, AClosedWriterRefuses) {
  const std::string path = ::testing::TempDir() + "tandem_record_file_closed";
  RecordWriter writer(path);
  writer.write("a");
  writer.flush();
  RecordReader reader(path);
  EXPECT_EQ(read_all(reader).size(), 1u);
  writer.close();
  writer.close();
  EXPECT_THROW(writer.write("b"), FailedPreconditionError);
  const RecordWriter other = std::move(writer);
  EXPECT_THROW(writer.write("b"), FailedPreconditionError);
  EXPECT_THROW(writer.flush(), FailedPreconditionError);
  writer.close();
  EXPECT_THROW(RecordWriter(path, {.level = 0}), InvalidArgumentError);
  EXPECT_THROW(compression_of("LZ4"), InvalidArgumentError);
  std::remove(path.c_str());
}

TEST(RecordFile, ADiskThatIsFullSaysSo) {
  RecordWriter writer("/dev/full");
  writer.write("a");
  EXPECT_THROW(writer.close(), ResourceExhaustedError);
}

}  // namespace
}  // namespace tandem::fs
