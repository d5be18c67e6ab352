// Programs that end in every way at every moment: each exits cleanly, with its own status.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

extern char** environ;

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// Far more than a program takes, also with sanitizers on a busy machine: one that hangs ends here.
constexpr std::chrono::seconds kPatience{240};

std::string program() {
  const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (tests / "ends").string();
}

class Running {
 public:
  explicit Running(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    std::string path = program();
    std::vector<char*> argv{path.data()};
    for (std::string& argument : arguments_) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int error = ::posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ);
    EXPECT_EQ(error, 0) << path;
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    ::fcntl(output_, F_SETFL, O_NONBLOCK);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    ::kill(pid_, SIGKILL);
    if (!over_) ::waitpid(pid_, &status_, 0);
    ::close(output_);
  }

  // True once it is over; the expectations are then checked.
  bool over() {
    char text[4096];
    for (ssize_t n; (n = ::read(output_, text, sizeof text)) > 0;)
      said_.append(text, static_cast<std::size_t>(n));
    if (::waitpid(pid_, &status_, WNOHANG) != pid_) {
      if (Clock::now() - begun_ < kPatience) return false;
      ADD_FAILURE() << name() << " hangs; it said:\n" << said_;
      return true;
    }
    over_ = true;
    for (ssize_t n; (n = ::read(output_, text, sizeof text)) > 0;)
      said_.append(text, static_cast<std::size_t>(n));
    EXPECT_TRUE(WIFEXITED(status_)) << name() << " ended by signal " << WTERMSIG(status_) << ":\n"
                                    << said_;
    if (WIFEXITED(status_)) {
      EXPECT_EQ(WEXITSTATUS(status_), 0) << name() << ":\n" << said_;
    }
    EXPECT_NE(said_.find("ready\n"), std::string::npos) << name() << ":\n" << said_;
    return true;
  }

 private:
  std::string name() const {
    std::string text = "ends";
    for (const std::string& argument : arguments_) text += " " + argument;
    return text;
  }
  std::vector<std::string> arguments_;
  const Clock::time_point begun_ = Clock::now();
  std::string said_;
  pid_t pid_ = 0;
  int output_ = -1;
  int status_ = 0;
  bool over_ = false;
};

void run_all(const std::string& devices) {
  const std::vector<std::string> moments = {"idle",
                                            "pending",
                                            "detached_eager",
                                            "first_calls",
                                            "detached_predict",
                                            "detached_map",
                                            "detached_loop",
                                            "joined_by_static",
                                            "globals",
                                            "thread_locals",
                                            "static_computes",
                                            "runtime_computing",
                                            "iterator_outlives_runtime",
                                            "scope_outlives",
                                            "tapes",
                                            "shut_down_early"};
  const std::vector<std::string> ways = {"return", "exit", "exit_in_thread", "exit_in_map",
                                         "shutdown"};
  constexpr std::size_t kAtOnce = 3;
  std::list<Running> running;
  const auto wait_until = [&](std::size_t left) {
    while (running.size() > left) {
      running.remove_if([](Running& r) { return r.over(); });
      if (running.size() > left) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  for (const std::string& moment : moments) {
    // Their predictions and conditions are values to look at, which such a device does not have.
    const bool needs_values = moment == "detached_predict" || moment == "detached_loop";
    if (needs_values && devices.find("timed") != std::string::npos) continue;
    for (const std::string& way : ways) {
      wait_until(kAtOnce - 1);
      running.emplace_back(std::vector<std::string>{devices, moment, way});
    }
  }
  wait_until(0);
}

TEST(Ends, OnTheHost) { run_all("cpu"); }
TEST(Ends, OnEmulatedDevices) { run_all("GPU:2,memory=64MiB"); }
TEST(Ends, OnADeviceWithManyStreamsAndLatency) {
  run_all("GPU:1,memory=64MiB,streams=2,latency=2ms");
}
TEST(Ends, OnADeviceThatOnlyTakesTime) { run_all("GPU:1,compute=timed,memory=64MiB"); }

}  // namespace
}  // namespace tandem
