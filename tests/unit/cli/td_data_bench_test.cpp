// td data-bench, as a shell would call it.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tandem/fs/file_system.h"

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TdDataBench : public TdTest {
 protected:
  void SetUp() override {
    // td itself may be built without the examples (TANDEM_BUILD_EXAMPLES=OFF), of which it loads
    // one.
    if (!std::filesystem::exists(example())) {
      GTEST_SKIP() << example() << " is not there: the examples are not built";
    }
  }

  // The example, which the build makes beside this program's folder.
  static std::string example() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
           "pipelines/augment.so";
  }
};

TEST_F(TdDataBench, ReportsStagesBottleneckAndAdvice) {
  const TdResult r = run("data-bench '" + example() + "' --elements 20");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith("20 elements in "));
  EXPECT_THAT(r.out, AllOf(HasSubstr(" elements/s, "), HasSubstr(" MB/s"),
                           HasSubstr("bottleneck: Map"), HasSubstr("stage "), HasSubstr("advice")));
  EXPECT_EQ(r.lines_with("Shuffle").size(), 1u);
}

TEST_F(TdDataBench, PrintsJson) {
  const TdResult r = run("data-bench '" + example() + "' --elements 10 --step 1 --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["elements"], 10);
  const auto& source = json["stages"].back();
  EXPECT_EQ(source["name"], "TensorSlice");
  EXPECT_GE(source["elements"], 320);
  EXPECT_GE(json["seconds"].get<double>(), 0.010);  // ten steps
  EXPECT_LT(json["waiting_share"].get<double>(), 1);
}

TEST_F(TdDataBench, EndsInTime) {
  EXPECT_EQ(run("data-bench '" + example() + "' --seconds 2").code, 0);  // it has no end
}

TEST_F(TdDataBench, FailsWhereNoElementComes) {
  const std::string silent =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "pipelines/silent.so";
  const TdResult r = run("data-bench '" + silent + "' --seconds 0.2");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.out, AllOf(StartsWith("no element yet in "), HasSubstr("Range")));
  EXPECT_THAT(r.err, HasSubstr("the pipeline gave no element in "));
}

// On a slow machine td may not have begun when the signal comes: then it has nothing to report.
TEST_F(TdDataBench, ReportsWhatItMeasuredWhenInterrupted) {
  TdResult r;
  for (int seconds = 2; r.out.empty() && seconds <= 32; seconds *= 2) {
    r = run("data-bench '" + example() + "' --seconds 600",
            "timeout --preserve-status -s INT " + std::to_string(seconds));
  }
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr(" elements in "), HasSubstr("bottleneck: ")));
}

TEST_F(TdDataBench, ReportsWrongUsageFromFailure) {
  expect_wrong_usage({"data-bench", "data-bench x.so --seconds -1", "data-bench x.so --elements 0",
                      "data-bench x.so --step soon"});
  EXPECT_THAT(failure_of("data-bench missing.so"), HasSubstr("missing.so could not be loaded"));
  fs::write_file(path("no.so"), "no library");
  EXPECT_THAT(failure_of("data-bench no.so"), HasSubstr("could not be loaded"));
  EXPECT_THAT(failure_of("data-bench libm.so.6"), HasSubstr("could not be loaded"));
  std::filesystem::path libm;
  for (const auto* folder : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"}) {
    if (std::filesystem::exists(std::filesystem::path(folder) / "libm.so.6")) libm = folder;
  }
  if (!libm.empty()) {
    EXPECT_THAT(failure_of("data-bench " + (libm / "libm.so.6").string()),
                HasSubstr("tandem_dataset(tandem::data::Dataset*)"));
  }
}

}  // namespace
}  // namespace tandem
