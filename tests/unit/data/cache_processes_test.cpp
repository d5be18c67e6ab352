// Cache files between processes: two that write one, and one that is killed while it writes.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/data/cached_rows.h"
#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
  }
  ~Pipe() {
    close(ends_[0]);
    if (ends_[1] >= 0) close_in();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_in() { close(std::exchange(ends_[1], -1)); }
  int out() const { return ends_[0]; }
  int in() const { return ends_[1]; }

 private:
  int ends_[2];
};

// Another process, which has written so many elements when this is made.
class Writer {
 public:
  Writer(const std::string& path, std::int64_t stop) {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "cache_writer";
    std::vector<std::string> texts = {program, path, std::to_string(stop)};
    std::vector<char*> args;
    for (std::string& text : texts) args.push_back(text.data());
    args.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, started_.in(), kRegistered);
    posix_spawn_file_actions_adddup2(&actions, gate_.out(), kGate);
    const int error =
        posix_spawn(&process_, program.c_str(), &actions, nullptr, args.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::system_error(error, std::generic_category());
    started_.close_in();  // else its end would go unnoticed
    char byte = 0;
    EXPECT_EQ(read(started_.out(), &byte, 1), 1);
  }
  ~Writer() {
    if (process_ > 0) kill();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Lets it go on to its end; whether it found all elements right.
  bool finish() {
    const char byte = 0;
    EXPECT_EQ(write(gate_.in(), &byte, 1), 1);
    const int status = wait();
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  void kill() {
    ::kill(process_, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(wait()));
  }

 private:
  int wait() {
    int status = 0;
    EXPECT_EQ(waitpid(process_, &status, 0), process_);
    process_ = 0;
    return status;
  }

  Pipe started_;
  Pipe gate_;
  pid_t process_ = 0;
};

// Each writes a file of its own, and both are whole: the one that ends last gives the name to its.
TEST(CacheProcesses, TwoMayWriteOneFile) {
  const Folder folder;
  const std::string path = folder.file("cache");
  Writer first(path, kElements / 2);
  Writer second(path, kElements / 4);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(folder.files(), 2u);
  EXPECT_TRUE(first.finish());
  const auto made = std::make_shared<std::atomic<int>>(0);
  EXPECT_TRUE(all_right(cached(path, made)));  // the other still writes
  auto reading = cached(path, made).iterator();
  Element element;
  EXPECT_TRUE(reading.next(element) && is_right(element, 0));
  EXPECT_TRUE(second.finish());
  for (std::int64_t i = 1; i < kElements; ++i) {
    ASSERT_TRUE(reading.next(element) && is_right(element, i));
  }
  EXPECT_TRUE(all_right(cached(path, made)));
  EXPECT_EQ(*made, 0);
  EXPECT_EQ(folder.files(), 1u);
}

class KilledCacheWriter : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(KilledCacheWriter, LeavesNothingThatIsRead) {
  const Folder folder;
  const std::string path = folder.file("cache");
  Writer writer(path, GetParam());
  writer.kill();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(folder.files(), 1u);  // what it had written
  const auto made = std::make_shared<std::atomic<int>>(0);
  EXPECT_TRUE(all_right(cached(path, made)));
  EXPECT_EQ(*made, kElements);
  EXPECT_EQ(folder.files(), 1u);  // the cache alone
  EXPECT_TRUE(all_right(cached(path, made)));
  EXPECT_EQ(*made, kElements);
}

// The first element, the middle, and all elements but not the end.
INSTANTIATE_TEST_SUITE_P(CacheProcesses, KilledCacheWriter,
                         ::testing::Values(1, kElements / 2, kElements));

}  // namespace
}  // namespace tandem::data
