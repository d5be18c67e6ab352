// Stores of objects, moto (S3) and an emulator of Google Cloud Storage, reached directly and
// through a proxy that injects 500, 503, slow, refused and cut answers. run.py starts them.

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/record_file.h"

#include "tests/stores/store_util.h"

namespace tandem::fs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Kind {
  const char* name;
  const char* store;
  const char* variable;
};

class Stores : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const std::string endpoint = server(GetParam().variable);
    if (endpoint.empty()) GTEST_SKIP() << "no server: " << GetParam().variable << " is not set";
    const std::string name = GetParam().name;
    scheme_ = name;
    const auto schemes = registered_file_systems().schemes();
    if (std::find(schemes.begin(), schemes.end(), scheme_) == schemes.end()) {
      register_file_system(scheme_, [endpoint, store = std::string(GetParam().store)] {
        StoreOptions options = quick_options(endpoint);
        options.anonymous = store == "gs";
        return make_store(store, options);
      });
    }
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string test = info->name();
    std::replace(test.begin(), test.end(), '/', '_');
    folder_ = scheme_ + "://bucket/" + test;
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  FileSystem& files() const { return file_system_of(folder_); }

  std::string scheme_, folder_;
};

TEST_P(Stores, HaveFilesAndFolders) {
  write_file(path("a/x y+z%.txt"), "content");
  // The emulator of Google's store does not take files without a byte.
  const std::string none = std::string(GetParam().store) == "gs" ? "-" : "";
  write_file(path("a/empty"), none);
  write_file(path("a/b/z"), "1");
  EXPECT_EQ(read_file(path("a/x y+z%.txt")), "content");
  EXPECT_EQ(read_file(path("a/empty")), none);
  EXPECT_THAT(files().list(folder_), ElementsAre("a"));
  EXPECT_THAT(files().list(path("a/")), ElementsAre("b", "empty", "x y+z%.txt"));
  EXPECT_THAT(files().list_prefix(path("a"), "e"), ElementsAre("empty"));
  const auto entries = files().list_entries(path("a"));
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_TRUE(entries[0].info.is_directory);
  EXPECT_EQ(entries[2].info.size, 7u);
  EXPECT_EQ(files().stat(path("a/b/z")).size, 1u);
  EXPECT_TRUE(files().stat(path("a/b")).is_directory);
  EXPECT_TRUE(files().stat(scheme_ + "://bucket").is_directory);
  EXPECT_TRUE(exists(path("a/b")));
  EXPECT_FALSE(exists(path("a/c")));
  EXPECT_FALSE(exists(path("a/emp")));
  files().make_directories(path("new"));

  files().rename(path("a/b/z"), path("a/b/y"));
  EXPECT_THAT(files().list(path("a/b")), ElementsAre("y"));
  files().rename(path("a"), path("moved"));
  EXPECT_FALSE(exists(path("a")));
  EXPECT_THAT(files().list(path("moved")), ElementsAre("b", "empty", "x y+z%.txt"));
  EXPECT_EQ(read_file(path("moved/x y+z%.txt")), "content");
  EXPECT_THROW(files().remove(path("moved")), FailedPreconditionError);
  files().remove(path("moved/b/y"));
  EXPECT_FALSE(exists(path("moved/b")));
}

TEST_P(Stores, ErrorsAreTypedAndNameThePath) {
  write_file(path("x"), "1");
  const auto message = [](auto work) -> std::string {
    try {
      work();
    } catch (const Error& error) {
      return cat(code_name(error.code()), ": ", error.what());
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(message([&] { read_file(path("none")); }),
              HasSubstr("NOT_FOUND: " + path("none") + "; No such file"));
  EXPECT_THAT(message([&] { files().list(path("none")); }), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(message([&] { files().remove(path("none")); }), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(message([&] { files().rename(path("none"), path("y")); }), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(message([&] { read_file(folder_); }), HasSubstr("FAILED_PRECONDITION"));
  EXPECT_THAT(message([&] { files().list(path("x")); }), HasSubstr("FAILED_PRECONDITION"));
  EXPECT_THAT(message([&] { read_file(scheme_ + "://no-such-bucket/x"); }),
              HasSubstr("NOT_FOUND: " + scheme_ + "://no-such-bucket/x"));
  EXPECT_THAT(message([&] { write_file(scheme_ + "://no-such-bucket/x", "1"); }),
              HasSubstr("NOT_FOUND"));
  EXPECT_THAT(message([&] { read_file(scheme_ + ":///x"); }), HasSubstr("INVALID_ARGUMENT"));
}

TEST_P(Stores, LargeFilesAppearOnlyWhenTheyAreCommitted) {
  const std::string bytes = some_bytes(23'456'789, 1);
  {
    const auto file = files().stage(path("large"));
    for (std::size_t at = 0; at < bytes.size(); at += 1'000'003) {
      file->append(std::string_view(bytes).substr(at, 1'000'003));
    }
    file->seal();
    EXPECT_FALSE(exists(path("large"))) << "not yet committed";
    file->commit();
  }
  EXPECT_EQ(files().stat(path("large")).size, bytes.size());
  EXPECT_EQ(crc32c(read_file(path("large"))), crc32c(bytes));
  {
    const auto discarded = files().stage(path("large"));
    discarded->append(std::string_view(bytes).substr(0, 12'000'000));
    const auto never = files().stage(path("never"));
    never->append(std::string_view(bytes).substr(0, 12'000'000));
    never->seal();
  }
  EXPECT_EQ(files().stat(path("large")).size, bytes.size());
  EXPECT_THAT(files().list(folder_), ElementsAre("large"));

  const auto file = files().open(path("large"));
  EXPECT_EQ(file->known_size(), bytes.size());
  std::string in_order;
  for (std::string piece(300'000, '\0');;) {
    const std::size_t got = file->read(in_order.size(), piece);
    in_order.append(piece, 0, got);
    if (got < piece.size()) break;
  }
  EXPECT_EQ(crc32c(in_order), crc32c(bytes));
  std::string there(1000, '\0');
  for (const std::size_t at : {20'000'000, 5, 11'111'111, 23'456'000}) {
    const std::size_t got = file->read(at, there);
    EXPECT_EQ(there.substr(0, got), bytes.substr(at, 1000)) << at;
  }
  EXPECT_EQ(file->read(bytes.size(), there), 0u);
}

TEST_P(Stores, LogsAreVisibleAfterEachSync) {
  if (std::string(GetParam().name) == "gsfaulty") {
    // A request whose answer was lost is repeated; what distinguishes the second from the first is
    // ifGenerationMatch.
    GTEST_SKIP() << "the emulator does not check generations";
  }
  std::string all;
  {
    const auto file = files().create(path("log"));
    EXPECT_FALSE(exists(path("log")));
    for (const std::size_t size : {10, 7'000'000, 0, 20, 30}) {
      const std::string bytes = some_bytes(size, size);
      file->append(bytes);
      all += bytes;
      file->sync();
      EXPECT_EQ(files().stat(path("log")).size, all.size());
    }
    file->append("end");
    all += "end";
    file->close();
    EXPECT_THROW(file->append("more"), FailedPreconditionError);
  }
  EXPECT_EQ(crc32c(read_file(path("log"))), crc32c(all));
  EXPECT_THAT(files().list(folder_), ElementsAre("log"));
}

TEST_P(Stores, FilesReplacedWhileTheyAreReadAreNoticed) {
  write_file(path("x"), some_bytes(300'000, 1));
  const auto file = files().open(path("x"));
  write_file(path("x"), some_bytes(300'000, 2));
  std::string bytes(300'000, '\0');
  if (std::string(GetParam().store) == "gs") {
    // The emulator knows no ifGenerationMatch when it reads.
    GTEST_SKIP() << "the emulator does not check generations";
  }
  EXPECT_THROW(file->read(0, bytes), FailedPreconditionError);
}

TEST_P(Stores, ManyThreadsReadAndWrite) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::string bytes = some_bytes(700'000, static_cast<std::uint64_t>(i));
      write_file(path(std::to_string(i)), bytes);
      EXPECT_EQ(crc32c(read_file(path(std::to_string(i)))), crc32c(bytes));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files().list(folder_).size(), 8u);
}

TEST_P(Stores, RecordFilesAreWrittenAndReadThroughAllFaults) {
  std::uint32_t written = 0;
  {
    RecordWriter writer(path("records"), {.compression = Compression::kNone});
    for (std::size_t i = 0; i < 400; ++i) {
      const std::string record = some_bytes(i * 100, i);
      written = crc32c(record, written);
      writer.write(record);
    }
    writer.close();
  }
  std::uint32_t read = 0;
  RecordReader reader(path("records"));
  std::string_view record;
  int count = 0;
  for (; reader.next(record); ++count) read = crc32c(record, read);
  EXPECT_EQ(count, 400);
  EXPECT_EQ(read, written);
}

INSTANTIATE_TEST_SUITE_P(Of, Stores,
                         ::testing::Values(Kind{"s3test", "s3", "TANDEM_TEST_S3"},
                                           Kind{"s3faulty", "s3", "TANDEM_TEST_S3_FAULTY"},
                                           Kind{"gstest", "gs", "TANDEM_TEST_GS"},
                                           Kind{"gsfaulty", "gs", "TANDEM_TEST_GS_FAULTY"}),
                         [](const auto& kind) { return kind.param.name; });

TEST(S3, ListsOfManyPagesAreWhole) {
  const std::string endpoint = server("TANDEM_TEST_S3");
  if (endpoint.empty()) GTEST_SKIP() << "no server";
  const auto files = make_store("s3", quick_options(endpoint));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = i; k < 1010; k += 8) files->create(cat("s3://bucket/many/", k))->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files->list("s3://bucket/many").size(), 1010u);
  EXPECT_THAT(files->list("s3://"), ::testing::Contains("bucket"));
}

}  // namespace
}  // namespace tandem::fs
