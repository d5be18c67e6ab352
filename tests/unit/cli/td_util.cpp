#include "tests/unit/cli/td_util.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tandem/fs/file_system.h"

namespace tandem {
namespace {

std::string program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin/td";
}

}  // namespace

std::vector<std::string> TdResult::lines_with(const std::string& part) const {
  std::vector<std::string> found;
  std::istringstream text(out);
  for (std::string line; std::getline(text, line);) {
    if (line.find(part) != std::string::npos) found.push_back(line);
  }
  return found;
}

TdTest::TdTest()
    : folder_(::testing::TempDir() + "/td_test_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name()) {
  std::filesystem::create_directories(folder_);
}

TdTest::~TdTest() { std::filesystem::remove_all(folder_); }

TdResult TdTest::run(const std::string& arguments, const std::string& environment) const {
  const std::string command = "cd '" + folder_ + "' && " + environment + " '" + program() + "' " +
                              arguments + " >out.txt 2>err.txt";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, fs::read_file(path("out.txt")),
          fs::read_file(path("err.txt"))};
}

TdResult TdTest::run_into(const std::string& out, const std::string& arguments) const {
  const int status = std::system(
      ("'" + program() + "' " + arguments + " >" + out + " 2>'" + path("err.txt") + "'").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", fs::read_file(path("err.txt"))};
}

void TdTest::expect_wrong_usage(const std::vector<std::string>& arguments) const {
  for (const std::string& a : arguments) {
    const TdResult r = run(a);
    EXPECT_EQ(r.code, 2) << a;
    EXPECT_EQ(r.out, "") << a;
  }
}

std::string TdTest::failure_of(const std::string& arguments) const {
  const TdResult r = run(arguments);
  EXPECT_EQ(r.code, 1) << arguments;
  EXPECT_EQ(r.out, "") << arguments;
  return r.err;
}

}  // namespace tandem
