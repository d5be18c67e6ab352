// What `td devices` says of CUDA drivers that Tandem cannot use, and that all else works: td as it
// is installed, beside a libtandem_cuda.so whose kernels run on the host, with the stand-in for the
// driver as the system's libcuda.so.1.

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

namespace files = std::filesystem;
using ::testing::EndsWith;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

class CudaDriver : public TdTest {
 protected:
  CudaDriver() {
    files::create_directories(path("lib"));
    put(TANDEM_LIBRARY, TANDEM_LIBRARY_NAME);
    put(TANDEM_CUDA_ON_HOST_LIBRARY, "libtandem_cuda.so");
    std::ofstream(path("graph.pbtxt"))
        << R"(node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
                     attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { }
                                                          float_val: 1 } } } }
              node { name: "y" op: "Neg" input: "c" attr { key: "T" value { type: DT_FLOAT } } })";
  }

  // Libraries look beside themselves for others, and links are followed.
  void put(const std::string& from, const std::string& name) const {
    const std::string to = path("lib/" + name);
    std::error_code failed;
    files::create_hard_link(from, to, failed);
    if (failed) files::copy_file(from, to);
  }

  std::string with_libraries(const std::string& environment) const {
    return "TANDEM_PLUGINS= LD_LIBRARY_PATH='" + path("lib") + "' " + environment;
  }

  // The line of `td devices` on CUDA, where there is no GPU; the CPU is there and computes.
  std::string cuda_line(const std::string& environment = "") const {
    const TdResult r = run("devices", with_libraries(environment));
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_THAT(r.lines_with("/device:CPU:0"), SizeIs(1)) << r.out;
    EXPECT_THAT(r.lines_with("GPU:0"), SizeIs(0)) << r.out;
    const TdResult computed =
        run("run graph.pbtxt --fetch y --out results", with_libraries(environment));
    EXPECT_EQ(computed.code, 0) << computed.err;
    const auto lines = r.lines_with("cuda: ");
    EXPECT_THAT(lines, SizeIs(1)) << r.out;
    return lines.empty() ? std::string() : lines[0];
  }
};

TEST_F(CudaDriver, ThatIsThereGivesItsGpus) {
  put(TANDEM_CUDA_STAND_IN, "libcuda.so.1");
  const TdResult r = run("devices", with_libraries("CUDA_VISIBLE_DEVICES=0"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.lines_with("/physical_device:GPU:0"), SizeIs(1)) << r.out;
}

TEST_F(CudaDriver, ThatIsTooOldIsNamedWithWhatIsNeeded) {
  put(TANDEM_CUDA_STAND_IN, "libcuda.so.1");
  EXPECT_THAT(cuda_line("CUDA_STAND_IN_VERSION=11080"),
              EndsWith("the CUDA driver is too old: it is for CUDA 11.8, and this Tandem needs one "
                       "for CUDA 12.0 or later; install NVIDIA's driver 525 or later"));
}

TEST_F(CudaDriver, OfTheOldestVersionThatSufficesIsUsed) {
  put(TANDEM_CUDA_STAND_IN, "libcuda.so.1");
  const TdResult r =
      run("devices", with_libraries("CUDA_VISIBLE_DEVICES=0 CUDA_STAND_IN_VERSION=12000"));
  EXPECT_THAT(r.lines_with("/physical_device:GPU:0"), SizeIs(1)) << r.out;
}

TEST_F(CudaDriver, ThatLacksAFunctionIsNamedWithTheFunction) {
  put(TANDEM_CUDA_PARTIAL_DRIVER, "libcuda.so.1");
  EXPECT_THAT(cuda_line(),
              EndsWith("the CUDA driver for CUDA 12.4 lacks a function that Tandem needs, "
                       "cuGetErrorName; install NVIDIA's driver 525 or later"));
}

TEST_F(CudaDriver, ThatShowsNoGpuSaysSo) {
  put(TANDEM_CUDA_STAND_IN, "libcuda.so.1");
  EXPECT_EQ(cuda_line("CUDA_VISIBLE_DEVICES=-1"), "cuda: the CUDA driver finds no GPU");
}

// On machines that have one the system's own is found.
TEST_F(CudaDriver, ThatIsMissingIsNamed) {
  const TdResult r = run("devices", with_libraries("CUDA_VISIBLE_DEVICES=-1"));
  EXPECT_EQ(r.code, 0) << r.err;
  ASSERT_THAT(r.lines_with("cuda: "), SizeIs(1)) << r.out;
  EXPECT_THAT(r.lines_with("cuda: ")[0], MatchesRegex("cuda: (no CUDA driver .*libcuda.so.1.*|the "
                                                      "CUDA driver finds no GPU)"));
}

TEST_F(CudaDriver, WithoutNvidiasLibrariesHasOneLineForEach) {
  put(TANDEM_CUDA_STAND_IN, "libcuda.so.1");
  const TdResult r =
      run("devices", with_libraries("CUDA_VISIBLE_DEVICES=0 TANDEM_CUDA_LIBRARIES=none"));
  EXPECT_THAT(r.lines_with("/physical_device:GPU:0"), SizeIs(1)) << r.out;
  for (const char* library : {"cuBLASLt", "cuDNN", "NVRTC", "CUPTI"}) {
    EXPECT_THAT(r.lines_with(std::string(library) + " is not used: TANDEM_CUDA_LIBRARIES leaves"),
                SizeIs(1))
        << r.out;
  }
}

}  // namespace
}  // namespace tandem
