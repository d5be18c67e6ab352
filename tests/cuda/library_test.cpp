// How NVIDIA's libraries are found: with files of the stand-in for the driver in folders of the
// test's own, which stand for libraries with the driver's functions.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/device/cuda/internal/nvidia_library.h"

namespace tandem::cuda {
namespace {

namespace files = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class LibrariesOfNvidia : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("TANDEM_CUDA_LIBRARIES");
    root_ = testing::TempDir() + "/nvidia-libraries";
    files::remove_all(root_);
  }
  void TearDown() override {
    unsetenv("TANDEM_CUDA_LIBRARIES");
    files::remove_all(root_);
  }

  std::string folder(const std::string& name) const {
    files::create_directories(root_ + '/' + name);
    return root_ + '/' + name;
  }
  std::string with_file(const std::string& name, const std::string& file) const {
    const std::string made = folder(name);
    files::copy_file(TANDEM_CUDA_STAND_IN, made + '/' + file);
    return made;
  }
  static NvidiaLibrary::Description library() {
    return {
        .name = "cuTest", .file = "libcutest.so.", .majors = {13, 12}, .without = "others serve"};
  }

  std::string root_;
};

using Start = int (*)(unsigned);

TEST_F(LibrariesOfNvidia, AreOpenedWhereTheyAre) {
  const std::string there = with_file("there", "libcutest.so.12");
  NvidiaLibrary found(library(), {folder("empty"), there});
  Start start = nullptr;
  found.find("cuInit", start);
  ASSERT_TRUE(found.usable());
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(found.major(), 12);
  EXPECT_EQ(found.report(), "cuTest 12 (" + there + "/libcutest.so.12)");
  found.set_version("12.9.1");
  EXPECT_THAT(found.report(), StartsWith("cuTest 12.9.1 ("));
}

TEST_F(LibrariesOfNvidia, AreTheNewestThatTheDriverServes) {
  const std::string older = with_file("older", "libcutest.so.12");
  const std::string newer = with_file("newer", "libcutest.so.13");
  EXPECT_EQ(NvidiaLibrary(library(), {older, newer}).major(), 13);
  NvidiaLibrary::Description limited = library();
  limited.majors = {12};
  EXPECT_EQ(NvidiaLibrary(limited, {newer, older}).major(), 12);
}

TEST_F(LibrariesOfNvidia, ThatAreMissingAreReported) {
  const NvidiaLibrary missing(library(), {folder("empty"), "", root_ + "/no-such-folder"});
  EXPECT_FALSE(missing.usable());
  EXPECT_EQ(missing.report(),
            "cuTest is not used: libcutest.so.13 or 12 was not found; others serve");
}

TEST_F(LibrariesOfNvidia, OfAnotherMajorVersionAreNotUsed) {
  const std::string old = with_file("old", "libcutest.so.11");
  const NvidiaLibrary other(library(), {old});
  EXPECT_FALSE(other.usable());
  EXPECT_EQ(other.report(), "cuTest is not used: " + old +
                                "/libcutest.so.11 is of another major version than 13 or 12; "
                                "others serve");
}

TEST_F(LibrariesOfNvidia, ThatLackAFunctionAreNotUsed) {
  const std::string there = with_file("there", "libcutest.so.13");
  NvidiaLibrary lacking(library(), {there});
  Start start = nullptr;
  lacking.find("cuNeverHeardOf", start);
  EXPECT_EQ(start, nullptr);
  EXPECT_FALSE(lacking.usable());
  EXPECT_THAT(lacking.report(), HasSubstr("/libcutest.so.13 has no cuNeverHeardOf; others serve"));
}

TEST_F(LibrariesOfNvidia, ThatCannotBeOpenedAreReportedUnlessAnotherCan) {
  const std::string broken = folder("broken");
  files::copy_file(__FILE__, broken + "/libcutest.so.13");
  const NvidiaLibrary refused(library(), {broken});
  EXPECT_FALSE(refused.usable());
  EXPECT_THAT(refused.report(), HasSubstr("/libcutest.so.13 cannot be opened: "));
  EXPECT_TRUE(NvidiaLibrary(library(), {broken, with_file("there", "libcutest.so.13")}).usable());
}

TEST_F(LibrariesOfNvidia, AreLeftOutOnRequest) {
  const std::string there = with_file("there", "libcutest.so.13");
  setenv("TANDEM_CUDA_LIBRARIES", "none", 1);
  EXPECT_EQ(NvidiaLibrary(library(), {there}).report(),
            "cuTest is not used: TANDEM_CUDA_LIBRARIES leaves it out; others serve");
  setenv("TANDEM_CUDA_LIBRARIES", "cuother,CUTEST", 1);
  EXPECT_TRUE(NvidiaLibrary(library(), {there}).usable());
}

// Folders as the environment names them, the named toolkit first.
TEST_F(LibrariesOfNvidia, AreLookedForInTheToolkitAndInPythonsPackages) {
  const std::string packages = folder("env/lib/python3.12/site-packages/nvidia/cu13/lib");
  setenv("CUDA_HOME", "/toolkit", 1);
  setenv("VIRTUAL_ENV", (root_ + "/env").c_str(), 1);
  const std::vector<std::string> folders = library_folders();
  unsetenv("CUDA_HOME");
  unsetenv("VIRTUAL_ENV");
  EXPECT_EQ(folders.front(), "/toolkit/lib64");
  EXPECT_THAT(folders, testing::Contains(packages));
  EXPECT_THAT(folders, testing::Contains(""));
}

}  // namespace
}  // namespace tandem::cuda
