// What `cache` and `snapshot` say of files that cannot be written or are damaged, and what others
// left over.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/file_datasets.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/stale_files.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

namespace stdfs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// No file of this process may have more bytes.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    signal_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int) = nullptr;
};

TEST(WriteFaults, NoElementIsLostWhereAFileCannotBeWritten) {
  const Folder folder;
  const Dataset whole = range(20000);
  for (const Dataset& ds : {whole.cache(folder.file("cache")), whole.snapshot(folder.file("snap")),
                            whole.cache("/proc/none"), whole.snapshot("/proc/none")}) {
    const SmallFiles small(64 << 10);
    const auto count = std::make_shared<ErrorCount>();
    EXPECT_EQ(numbers(ds.ignore_errors({.count = count}), 30000), upto(20000));
    EXPECT_EQ(count->count(), 1);
  }
}

TEST(WriteFaults, AnElementThatCouldNotBeWrittenIsSaved) {
  const Folder folder;
  const auto make = [&] { return range(20000).cache(folder.file("cache")); };
  const SmallFiles small(64 << 10);
  auto it = make().iterator();
  std::int64_t seen = 0;
  Element element;
  try {
    for (; it.next(element); ++seen) {
    }
    ADD_FAILURE() << "it was written";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Make room there"));
  }
  auto other = make().iterator();
  other.restore(it.save());
  EXPECT_EQ(numbers(other, 30000), numbers(range(seen, 20000), 30000));
}

TEST(WriteFaults, SaysWhatHelps) {
  const Folder folder;
  EXPECT_THAT(message_of_thrown<Error>([] { numbers(range(3).cache("/proc/none")); }),
              AllOf(HasSubstr("in cache, element 0"), Not(HasSubstr("Make room"))));
  const std::string path = folder.file("cache");
  numbers(range(3).cache(path));
  std::string bytes = fs::read_file(path);
  bytes[bytes.size() - 30] = static_cast<char>(bytes[bytes.size() - 30] ^ 1);
  fs::write_file(path, bytes);
  EXPECT_THAT(message_of_thrown<DataLossError>([&] { numbers(range(3).cache(path)); }),
              AllOf(HasSubstr("is damaged at offset"), HasSubstr("Remove it"), Not(HasSubstr("..")),
                    Not(HasSubstr("iterator"))));
}

TEST(WriteFaults, NothingIsReportedToRemoveWhatIsNoCache) {
  const Folder folder;
  for (const char* bytes : {"", "int", "int main() { return 0; }\n"}) {
    fs::write_file(folder.file("main.cpp"), bytes);
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>(
                    [&] { numbers(range(3).cache(folder.file("main.cpp"))); }),
                HasSubstr("is no cache. Give another name"));
    EXPECT_EQ(fs::read_file(folder.file("main.cpp")), bytes);
  }
}

TEST(WriteFaults, DamagedSnapshotsSayWhatToRemove) {
  const Folder folder;
  const Dataset ds = range(9).snapshot(folder.file("snap"), {.num_shards = 2});
  numbers(ds);
  const std::string inner = stdfs::directory_iterator(folder.file("snap"))->path().string();
  stdfs::remove(inner + "/00000001.shard");
  EXPECT_THAT(message_of_thrown<DataLossError>([&] { numbers(ds); }),
              AllOf(HasSubstr("a shard is missing"), HasSubstr("Remove " + inner)));
  stdfs::remove(inner + "/snapshot.metadata");
  EXPECT_THAT(message_of_thrown<DataLossError>([&] { ds.iterator().next(); }),
              AllOf(HasSubstr(inner + ": the snapshot is damaged"), HasSubstr("Remove this")));
}

// A process that ends at once.
void run_and_wait(void (*work)(const std::string&), const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    work(path);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

TEST(WriteFaults, WhatKilledWritersLeftIsRemoved) {
  const Folder folder;
  const std::string path = folder.file("cache");
  run_and_wait([](const std::string& of) { fs::write_file(fs::unfinished_name(of), "left"); },
               path);
  const std::string own = fs::unfinished_name(path), foreign = path + ".0a0b0c0d.1.0.tmp",
                    other = folder.file("cache2") + ".1.0.tmp";
  for (const std::string& file : {own, foreign, other}) fs::write_file(file, "at work");
  EXPECT_EQ(folder.files(), 4u);
  numbers(range(3).cache(path));
  EXPECT_EQ(folder.files(), 4u);  // one removed, one written
  EXPECT_TRUE(stdfs::exists(own) && stdfs::exists(foreign) && stdfs::exists(other));
  // A file of an unknown writer, but old.
  stdfs::last_write_time(foreign, stdfs::file_time_type::clock::now() - std::chrono::hours(25));
  fs::remove_stale_files(path);
  EXPECT_FALSE(stdfs::exists(foreign));
  EXPECT_TRUE(stdfs::exists(own) && stdfs::exists(other));
}

TEST(WriteFaults, WhatKilledWritersLeftBehindALinkIsRemoved) {
  const Folder folder;
  const std::string link = folder.file("cache");
  stdfs::create_directory(folder.file("disk"));
  stdfs::create_symlink("disk/large", link);
  const auto in_disk = [&] {
    std::vector<std::string> names;
    for (const auto& entry : stdfs::directory_iterator(folder.file("disk"))) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  };
  run_and_wait(
      [](const std::string& of) {
        auto* killed = new fs::AtomicFile(of);
        killed->append("left");
      },
      link);
  ASSERT_EQ(in_disk().size(), 1u);
  numbers(range(3).cache(link));
  EXPECT_EQ(in_disk(), std::vector<std::string>{"large"});
  EXPECT_EQ(numbers(range(3).cache(link)), upto(3));
}

TEST(WriteFaults, ErrorsOfNestedDatasetsNameTheOuterElement) {
  const auto nested = [](const Tensor&) {
    return range(2).map([](Tensor x) {
      if (x.item<std::int64_t>() == 1) throw InvalidArgumentError("boom");
      return x;
    });
  };
  for (const std::int64_t calls : {0, 2}) {
    const auto ds = range(3).interleave(nested, {.cycle_length = 1, .num_parallel_calls = calls});
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { numbers(ds); }),
                AllOf(HasSubstr("in map, element 1"), HasSubstr("in interleave, input element 0")));
  }
  const auto count = std::make_shared<ErrorCount>();
  EXPECT_EQ(numbers(range(3).flat_map(nested).ignore_errors({.count = count})),
            (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(count->count(), 3);
}

TEST(WriteFaults, RefusesWhatCannotBe) {
  EXPECT_THAT(
      message_of_thrown<InvalidArgumentError>([] { list_files(std::vector<std::string>{}); }),
      HasSubstr("needs a pattern"));
  for (const char delimiter : {'"', '\n'}) {
    EXPECT_THROW(CsvDataset("a.csv", {DType::kFloat}, {.field_delim = delimiter}),
                 InvalidArgumentError);
  }
  for (const std::int64_t calls : {0, 2}) {
    const auto ds = range(3).map([](const Tensor&) { return Tensor(); },
                                 {.num_parallel_calls = calls, .traced = false});
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { ds.iterator().next(); }),
                AllOf(HasSubstr("undefined tensor"), HasSubstr("in map, element 0")));
  }
}

}  // namespace
}  // namespace tandem::data
