#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/file_systems.h"
#include "tandem/fs/paths.h"

namespace tandem::fs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Files in memory that writes down what is asked of it, in order.
class LoggedFiles final : public FileSystem {
 public:
  explicit LoggedFiles(std::vector<std::string>& log) : log_(log) {}

  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    return ram_.find(ram(path)).open(ram(path));
  }
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  FileInfo stat(const std::string& path) override { return ram_.find("ram://").stat(ram(path)); }
  std::vector<std::string> list(const std::string& path) override {
    return ram_.find("ram://").list(ram(path));
  }
  void remove(const std::string& path) override {
    log_.push_back("remove " + kind(path));
    ram_.find("ram://").remove(ram(path));
  }
  void rename(const std::string& from, const std::string& to) override {
    log_.push_back("rename " + kind(from) + " to " + kind(to));
    ram_.find("ram://").rename(ram(from), ram(to));
  }
  void make_directories(const std::string& path) override {
    ram_.find("ram://").make_directories(ram(path));
  }
  void sync_directory(const std::string& path) override { log_.push_back("sync folder " + path); }

  static std::string ram(const std::string& path) { return "ram" + path.substr(path.find(':')); }
  // Names of unfinished files hold numbers.
  static std::string kind(const std::string& path) {
    return path.ends_with(".tmp") ? "a temporary file" : std::string(base_name(path));
  }

 private:
  FileSystemRegistry ram_;
  std::vector<std::string>& log_;
};

class LoggedFile final : public WritableFile {
 public:
  LoggedFile(std::unique_ptr<WritableFile> file, std::string name, std::vector<std::string>& log)
      : file_(std::move(file)), name_(std::move(name)), log_(log) {}
  void append(std::string_view bytes) override {
    log_.push_back("append to " + name_);
    file_->append(bytes);
  }
  void sync() override { log_.push_back("sync " + name_); }
  void close() override { log_.push_back("close " + name_); }

 private:
  std::unique_ptr<WritableFile> file_;
  std::string name_;
  std::vector<std::string>& log_;
};

std::unique_ptr<WritableFile> LoggedFiles::create(const std::string& path) {
  log_.push_back("create " + kind(path));
  return std::make_unique<LoggedFile>(ram_.find("ram://").create(ram(path)), kind(path), log_);
}

class StagedFiles : public ::testing::Test {
 protected:
  std::vector<std::string> log_;
  LoggedFiles files_{log_};
};

TEST_F(StagedFiles, AreSyncedBeforeTheyAreRenamedAndTheFolderAfterwards) {
  const auto file = files_.stage("log://folder/model.index");
  file->append("content");
  file->commit();
  EXPECT_THAT(log_,
              ElementsAre("create a temporary file", "append to a temporary file",
                          "sync a temporary file", "close a temporary file",
                          "rename a temporary file to model.index", "sync folder log://folder"));
  EXPECT_THAT(files_.list("log://folder"), ElementsAre("model.index"));
}

TEST_F(StagedFiles, OfACheckpointAreSealedInAnyOrderAndNamedInTheCallers) {
  const auto data = files_.stage("log://c/data");
  const auto index = files_.stage("log://c/index");
  index->append("i");
  data->append("d");
  index->seal();
  EXPECT_THROW(index->append("more"), FailedPreconditionError);
  data->seal();
  EXPECT_THROW(files_.stat("log://c/data"), NotFoundError);
  log_.clear();
  data->commit();
  index->commit();
  EXPECT_THAT(log_, ElementsAre("rename a temporary file to data", "sync folder log://c",
                                "rename a temporary file to index", "sync folder log://c"));
}

TEST_F(StagedFiles, WithoutCommitLeaveTheOldContentAndNothingElse) {
  files_.create("log://c/x")->append("old");
  {
    const auto sealed = files_.stage("log://c/x"), open = files_.stage("log://c/x");
    sealed->append("new");
    sealed->seal();
    open->append("new");
  }
  EXPECT_THAT(files_.list("log://c"), ElementsAre("x"));
  char byte = 0;
  files_.open("log://c/x")->read(0, {&byte, 1});
  EXPECT_EQ(byte, 'o');
}

TEST(Registry, GivesTheFileSystemOfAScheme) {
  FileSystemRegistry registry;
  std::vector<std::string> log;
  registry.add("log", [&] { return std::make_unique<LoggedFiles>(log); });
  registry.add("log", [&] { return std::make_unique<LoggedFiles>(log); });  // none was made yet
  EXPECT_EQ(&registry.find("log://a"), &registry.find("log://b"));
  EXPECT_NE(&registry.find("log://a"), &registry.find("a"));
  EXPECT_EQ(&registry.find("a"), &registry.find("file:///a"));
  EXPECT_THROW(registry.add("log", [&] { return std::make_unique<LoggedFiles>(log); }),
               AlreadyExistsError);
  EXPECT_THROW(registry.add("file", [&] { return std::make_unique<LoggedFiles>(log); }),
               InvalidArgumentError);
  EXPECT_THROW(registry.add("a b", [&] { return std::make_unique<LoggedFiles>(log); }),
               InvalidArgumentError);
  EXPECT_THROW(registry.find("other://a"), UnimplementedError);
  EXPECT_THAT(registry.schemes(), ElementsAre("gs", "http", "https", "log", "ram", "s3"));
}

TEST(Ram, HasFilesAndFolders) {
  FileSystemRegistry registry;
  FileSystem& files = registry.find("ram://");
  files.make_directories("ram://a/b/c");
  files.create("ram://a/x")->append("12345");
  files.create("ram://a/d/y")->append("");
  EXPECT_THAT(files.list("ram://"), ElementsAre("a"));
  EXPECT_THAT(files.list("ram://a/"), ElementsAre("b", "d", "x"));
  EXPECT_THAT(files.list_prefix("ram://a", "d"), ElementsAre("d"));
  EXPECT_EQ(files.stat("ram://a/x").size, 5u);
  EXPECT_TRUE(files.stat("ram://a/b/").is_directory);
  EXPECT_TRUE(files.stat("ram://a/d").is_directory);
  EXPECT_THROW(files.remove("ram://a"), FailedPreconditionError);
  EXPECT_THROW(files.open("ram://a/b"), FailedPreconditionError);
  EXPECT_THROW(files.open("ram://a/z"), NotFoundError);
  EXPECT_THROW(files.create("ram://a/x/under"), FailedPreconditionError);
  EXPECT_THROW(files.list("ram://z"), NotFoundError);

  const auto open = files.open("ram://a/x");
  files.rename("ram://a", "ram://moved");
  EXPECT_THROW(files.stat("ram://a"), NotFoundError);
  EXPECT_THAT(files.list("ram://moved"), ElementsAre("b", "d", "x"));
  EXPECT_THAT(files.list("ram://moved/b"), ElementsAre("c"));
  files.remove("ram://moved/x");
  std::string bytes(9, ' ');
  EXPECT_EQ(open->read(2, bytes), 3u) << "an open file stays";
}

TEST(Ram, PathsWorkWithEveryFunction) {
  write_file("ram://paths/x", "content");
  EXPECT_EQ(read_file("ram://paths/x"), "content");
  EXPECT_TRUE(exists("ram://paths"));
  EXPECT_FALSE(exists("ram://paths/y"));
  {
    AtomicFile file("ram://paths/x");
    file.append("discarded");
  }
  EXPECT_EQ(read_file("ram://paths/x"), "content");
  EXPECT_THAT(file_system_of("ram://").list("ram://paths"), ElementsAre("x"));
}

TEST(Paths, AreTakenApart) {
  EXPECT_EQ(scheme_of("s3://bucket/a"), "s3");
  EXPECT_EQ(scheme_of("/a/b://c"), "");
  EXPECT_EQ(scheme_of("://a"), "");
  EXPECT_EQ(parent_path("s3://bucket/a/b"), "s3://bucket/a");
  EXPECT_EQ(parent_path("s3://bucket/a"), "s3://bucket");
  EXPECT_EQ(parent_path("s3://bucket"), "");
  EXPECT_EQ(parent_path("a/b"), "a");
  EXPECT_EQ(parent_path("a"), "");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("/a//b"), "/a");
  EXPECT_EQ(parent_path("file:///a"), "file:///");
  EXPECT_EQ(base_name("s3://bucket/a"), "a");
  EXPECT_EQ(join_path("s3://bucket", "a"), "s3://bucket/a");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(without_file_scheme("file:///a"), "/a");
}

}  // namespace
}  // namespace tandem::fs
