#include "tandem/fs/file_system.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/atomic_file.h"

namespace tandem::fs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class E, class F>
std::string message(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/tandem_fs_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  FileSystem& files_ = file_system_of("");
};

TEST_F(Files, AreWrittenAndRead) {
  const std::string binary("a\0b\nc", 5);
  write_file(path("x"), binary);
  EXPECT_EQ(read_file(path("x")), binary);
  EXPECT_EQ(read_file("file://" + path("x")), binary);
  write_file(path("x"), "");
  EXPECT_EQ(read_file(path("x")), "");
  std::string large(3'000'000, 'q');
  large[2'999'999] = 'e';
  write_file(path("large"), large);
  EXPECT_EQ(read_file(path("large")), large);
  EXPECT_EQ(files_.stat(path("large")).size, large.size());
}

TEST_F(Files, OfUnknownSizeAreReadToo) {
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Name:"));
}

TEST_F(Files, ReplaceOldContentInOneStep) {
  write_file(path("x"), std::string(100'000, 'a'));
  std::thread writer([&] {
    for (int i = 0; i < 8; ++i) write_file(path("x"), std::string(100'000, i % 2 ? 'a' : 'b'));
  });
  for (int i = 0; i < 100; ++i) {
    const std::string seen = read_file(path("x"));
    ASSERT_EQ(seen, std::string(100'000, seen[0]));
  }
  writer.join();
  EXPECT_THAT(files_.list(folder_), ElementsAre("x")) << "nothing unfinished is left";
}

TEST_F(Files, LeaveNothingWhenWritingFails) {
  std::filesystem::create_directory(path("folder"));
  EXPECT_THAT(message<FailedPreconditionError>([&] { write_file(path("folder"), "x"); }),
              HasSubstr("; Is a directory"));
  EXPECT_THAT(files_.list(folder_), ElementsAre("folder"));
}

TEST_F(Files, LinksAndPermissionsStay) {
  namespace stdfs = std::filesystem;
  write_file(path("target"), "old");
  stdfs::permissions(path("target"), stdfs::perms::owner_read | stdfs::perms::owner_write);
  stdfs::create_symlink("target", path("link"));
  stdfs::create_symlink("link", path("link_to_link"));
  write_file(path("link_to_link"), "new");
  EXPECT_EQ(read_file(path("target")), "new");
  EXPECT_TRUE(stdfs::is_symlink(path("link")) && stdfs::is_symlink(path("link_to_link")));
  EXPECT_EQ(stdfs::status(path("target")).permissions(),
            stdfs::perms::owner_read | stdfs::perms::owner_write);
  stdfs::create_symlink("not_yet", path("ahead"));
  write_file(path("ahead"), "made");
  EXPECT_EQ(read_file(path("not_yet")), "made");
  EXPECT_TRUE(stdfs::is_symlink(path("ahead")));
  EXPECT_THAT(files_.list(folder_),
              ElementsAre("ahead", "link", "link_to_link", "not_yet", "target"));
}

TEST_F(Files, WhatIsNoRegularFileIsWrittenInPlace) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    std::ifstream in(path("pipe"));
    std::getline(in, got);
  });
  write_file(path("pipe"), "through the pipe\n");
  reader.join();
  EXPECT_EQ(got, "through the pipe");
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
  EXPECT_EQ(message<ResourceExhaustedError>([] { write_file("/dev/full", "x"); }),
            "/dev/full; No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(Files, ErrorsOfWritingNameTheFileAskedFor) {
  EXPECT_EQ(message<NotFoundError>([&] { write_file(path("no/x"), "new"); }),
            path("no/x") + "; No such file or directory: there is no folder '" + path("no") +
                "'. Make it first: td::io::gfile::makedirs");
  EXPECT_EQ(message<FailedPreconditionError>([&] { write_file(folder_, "new"); }),
            folder_ + "; Is a directory");
}

TEST_F(Files, WithoutAnEndAreRefused) {
  EXPECT_THAT(message<ResourceExhaustedError>([] { read_file("/dev/zero"); }),
              HasSubstr("/dev/zero; Has no size"));
  EXPECT_EQ(read_file("/dev/null"), "");
}

TEST_F(Files, AppearWhenTheyAreFinished) {
  {
    AtomicFile file(path("x"));
    file.append("lost");
  }
  EXPECT_THAT(files_.list(folder_), ElementsAre());
  AtomicFile file(path("x"));
  file.append("ke");
  file.append("pt");
  EXPECT_FALSE(exists(path("x")));
  file.finish();
  EXPECT_EQ(read_file(path("x")), "kept");
  EXPECT_THAT(files_.list(folder_), ElementsAre("x"));
}

TEST_F(Files, ErrorsNamePathAndReason) {
  EXPECT_EQ(message<NotFoundError>([&] { read_file(path("none")); }),
            path("none") + "; No such file or directory");
  EXPECT_THROW(write_file(path("no/such"), "x"), NotFoundError);
  EXPECT_THROW(files_.open(path("none")), NotFoundError);
  EXPECT_THROW(files_.list(path("none")), NotFoundError);
  EXPECT_THROW(files_.remove(path("none")), NotFoundError);
  EXPECT_THROW(files_.rename(path("none"), path("other")), NotFoundError);
  EXPECT_EQ(message<FailedPreconditionError>([&] { read_file(folder_); }),
            folder_ + "; Is a directory");
  write_file(path("x"), "");
  EXPECT_THROW(read_file(path("x/y")), FailedPreconditionError);
  EXPECT_THROW(files_.make_directories(path("x/y")), FailedPreconditionError);
  EXPECT_THROW(read_file(std::string(5000, 'a')), InvalidArgumentError);
  EXPECT_EQ(message<ResourceExhaustedError>([] {
              const auto full = file_system_of("").create("/dev/full");
              full->append("x");
            }),
            "/dev/full; No space left on device");
}

TEST_F(Files, AreRefusedWithoutPermission) {
  write_file(path("secret"), "x");
  ASSERT_EQ(chmod(path("secret").c_str(), 0), 0);
  // The superuser may read anything, so it steps down for a moment; the folder is its own.
  const bool super = geteuid() == 0;
  ASSERT_EQ(seteuid(super ? 65534 : geteuid()), 0);
  const std::string reading = message<PermissionDeniedError>([&] { read_file(path("secret")); });
  ASSERT_EQ(seteuid(super ? 0 : geteuid()), 0);
  EXPECT_EQ(reading, path("secret") + "; Permission denied");
}

TEST_F(Files, CanBeAskedFor) {
  write_file(path("x"), "1");
  EXPECT_TRUE(exists(path("x")));
  EXPECT_TRUE(exists(folder_));
  EXPECT_FALSE(exists(path("y")));
  EXPECT_TRUE(files_.stat(folder_).is_directory);
  EXPECT_FALSE(files_.stat(path("x")).is_directory);
}

TEST_F(Files, CanBeListedMovedAndRemoved) {
  files_.make_directories(path("a/b"));
  files_.make_directories(path("a/b"));
  write_file(path("a/2"), "");
  write_file(path("a/1"), "one");
  EXPECT_THAT(files_.list(path("a")), ElementsAre("1", "2", "b"));
  files_.rename(path("a/1"), path("a/2"));
  EXPECT_EQ(read_file(path("a/2")), "one");
  EXPECT_THROW(files_.remove(path("a")), FailedPreconditionError) << "not empty";
  files_.remove(path("a/b"));
  files_.remove(path("a/2"));
  files_.remove(path("a"));
  EXPECT_FALSE(exists(path("a")));
}

TEST_F(Files, AreReadAtAnyPlace) {
  write_file(path("x"), "0123456789");
  const auto file = files_.open(path("x"));
  char buffer[4];
  EXPECT_EQ(file->read(3, buffer), 4u);
  EXPECT_EQ(std::string(buffer, 4), "3456");
  EXPECT_EQ(file->read(8, buffer), 2u);
  EXPECT_EQ(file->read(100, buffer), 0u);
}

TEST_F(Files, OfOtherSchemesAreUnimplemented) {
  EXPECT_THAT(message<UnimplementedError>([] { read_file("hdfs://host/x"); }),
              HasSubstr("File system scheme 'hdfs' not implemented (file: 'hdfs://host/x')"));
  EXPECT_THROW(exists("hdfs://x"), UnimplementedError);
}

}  // namespace
}  // namespace tandem::fs
